package server

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// A server that is down would miss a new key, and could not rejoin.
func TestKeyring_ReportsServersThatAreDown(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		down := w.follower()
		down.halt()
		expect := func(want map[string]bool) {
			t.Helper()
			got := map[string]bool{}
			answers, err := w.leader().server.Keyring(w.ctx, rpc.KeyUse, make([]byte, 32))
			for _, a := range answers {
				got[a.Server] = a.Err == nil && len(a.Keys) > 0
				if a.Server == down.id && (a.Err == nil || !strings.Contains(a.Err.Error(), "server is down")) {
					t.Errorf("error for the server that is down: %v", a.Err)
				}
			}
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("servers that changed keys: %v, %v; want %v", got, err, want)
			}
		}
		want := map[string]bool{"s1": true, "s2": true, "s3": true}
		want[down.id] = false
		expect(want)
		// Gossip does not list a server that was down when all others started.
		w.pool.mu.Lock()
		was := w.pool.members[down.id]
		delete(w.pool.members, down.id)
		w.pool.mu.Unlock()
		expect(want)
		was.Status = membership.MemberLeft
		w.pool.mu.Lock()
		w.pool.members[down.id] = was
		w.pool.notify() // the leader removes it
		w.pool.mu.Unlock()
		time.Sleep(time.Minute)
		delete(want, down.id)
		expect(want)
		w.pool.set(down.id, membership.MemberFailed)
	})
}
