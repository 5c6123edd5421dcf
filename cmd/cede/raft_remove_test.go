package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The leader removes a server that has failed. It refuses to remove itself, a server that
// is alive, and an unknown one.
func TestOperatorRaftRemove_RemovesFailedServer(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	eventually(t, "all three servers vote", func() bool { return p.voterCount(p.waitLeader()) == 3 })
	remove := func(id string) (string, error) {
		return cede(t, "operator", "raft", "remove", id, "--addr", p.waitLeader().c.Address())
	}
	var failed *poolServer
	var id string
	eventually(t, "the removals are refused", func() bool { // another server may lead meanwhile
		lead := p.waitLeader()
		failed = p.follower(lead)
		st, err := failed.status()
		must(t, err)
		leads, err := lead.status()
		must(t, err)
		id = st.ServerID
		for id, want := range map[string]string{leads.ServerID: "is the leader", id: "is alive", "UNKNOWN": "does not belong"} {
			out, err := remove(id)
			if err == nil {
				t.Fatalf("%s was removed: %s", id, out)
			}
			if !strings.Contains(out, want) {
				t.Logf("removal of %s returned %v, want an error with %q: %s", id, err, want, out)
				return false
			}
		}
		return true
	})
	failed.kill()
	eventually(t, "the failed server is removed", func() bool {
		_, err := remove(id) // refused until gossip has marked the server as failed
		return err == nil
	})
	now, err := p.waitLeader().status()
	must(t, err)
	if len(now.Servers) != 2 || slices.ContainsFunc(now.Servers, func(s *client.RaftServer) bool { return s.ID == id }) {
		t.Errorf("servers = %+v, want two without the removed one", now.Servers)
	}
	_, err = p.c.Jobs().Register(t.Context(), simJob("after"), nil)
	must(t, err)
}

// voterCount returns the number of voters in the configuration of a server.
func (p *processPool) voterCount(s *poolServer) (n int) {
	st, err := s.status()
	for i := range st.Servers {
		if err == nil && st.Servers[i].Voter {
			n++
		}
	}
	return n
}
