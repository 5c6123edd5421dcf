package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/gossip"
)

// If two servers run on one data directory, the second one stops and the first
// continues.
func TestPool_CopyOfDataDirectoryStops(t *testing.T) {
	t.Parallel()
	a, at := pooled(t, nil)
	eventually(t, "the first one leads", leads(a))
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	b, _ := pooled(t, map[string]string{"server.join": at, "data_dir": dir})
	eventually(t, "both vote", func() bool { return voters(a) == 2 && voters(b) == 2 })
	b.end()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	b, _ = pooled(t, map[string]string{"server.join": at, "data_dir": dir})
	eventually(t, "both servers list each other", func() bool { return alive(a) == 2 && alive(b) == 2 })
	second, _ := pooled(t, map[string]string{"server.join": at, "data_dir": copied})
	select {
	case err := <-second.Failed():
		if !strings.Contains(err.Error(), "the data directory was copied") || !strings.Contains(err.Error(), b.server.pool.rpc.Addr()) {
			t.Errorf("the copy ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the copy continues to run")
	}
	select {
	case err := <-b.Failed():
		t.Errorf("the first server ends with %v", err)
	default:
	}
	eventually(t, "both servers list each other as before", func() bool { return alive(a) == 2 && alive(b) == 2 })
}

func alive(s *started) (n int) {
	for _, m := range s.server.pool.gossip.Members() {
		if m.Status == gossip.Alive {
			n++
		}
	}
	return n
}

// A failed server that is in Raft stays listed. Once it is not in Raft, it is removed.
func TestPool_RemovesFailedMemberOutsideRaft(t *testing.T) {
	t.Parallel()
	a, at := pooled(t, nil)
	eventually(t, "the first one leads", leads(a))
	b, _ := pooled(t, map[string]string{"server.join": at})
	eventually(t, "both vote", func() bool { return voters(a) == 2 && voters(b) == 2 })
	other, _ := pooled(t, map[string]string{"server.bootstrap_expect": "3", "server.join": at})
	eventually(t, "all servers are in Raft", func() bool { return alive(a) == 3 && len(a.server.log.Stats().Servers) == 3 })
	id := other.server.id
	other.end()
	eventually(t, "one failed", func() bool { m, _ := a.server.pool.member(id); return m.Status == gossip.Failed })
	a.server.pool.forgetFailedOnce(time.Now().Add(2 * forgetAfter))
	if _, there := a.server.pool.member(id); !there {
		t.Error("a server in Raft is removed from the list")
	}
	eventually(t, "the server is removed from Raft", func() bool { // by the leader, which may be either on a busy machine
		for _, s := range []*started{a, b} {
			_ = s.server.server.RemovePeer(t.Context(), id) // not the leader, or removed already
		}
		return len(a.server.log.Stats().Servers) == 2
	})
	a.server.pool.forgetFailedOnce(time.Now().Add(2 * forgetAfter))
	if _, there := a.server.pool.member(id); there {
		t.Error("the server is not removed from the list")
	}
}

// A failed member outside Raft is removed after an hour, and members in other states never.
func TestForgettable_FailedMembersOutsideRaftAfterAnHour(t *testing.T) {
	t.Parallel()
	now := time.Now()
	members := []gossip.Member{
		{ID: "old", Status: gossip.Failed, Since: now.Add(-forgetAfter - 1)},
		{ID: "recent", Status: gossip.Failed, Since: now.Add(-forgetAfter)},
		{ID: "voter", Status: gossip.Failed, Since: now.Add(-2 * forgetAfter)},
		{ID: "alive", Status: gossip.Alive, Since: now.Add(-2 * forgetAfter)},
		{ID: "left", Status: gossip.Left, Since: now.Add(-2 * forgetAfter)},
	}
	if list := forgettable(members, map[string]bool{"voter": true}, now); len(list) != 1 || list[0].ID != "old" {
		t.Errorf("%+v are removed, want old", list)
	}
	if list := forgettable(members, nil, now); list != nil {
		t.Errorf("%+v are removed without a log", list)
	}
}
