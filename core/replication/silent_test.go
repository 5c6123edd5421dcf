package replication

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Since when a node is down is part of the state once every server notes it, by the
// time of the entry; a cluster whose servers would not takes no job that asks for it.
func TestChangeNodes_NotesSinceWhenANodeIsDown(t *testing.T) {
	s := withJob(t)
	status := func(to model.NodeStatus) int64 {
		s.done(t, &ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Status: new(to)}})
		return s.store.Snapshot().Node("n0").DownSince
	}
	s.done(t, &Bootstrap{ClusterID: "c", Version: downSinceFrom - 1})
	if since := status(model.NodeDown); since != 0 {
		t.Errorf("down since %d, which others of the cluster would not know", since)
	}
	if since := status(model.NodeReady); since != 0 {
		t.Errorf("ready, and down since %d", since)
	}
	s.done(t, &SetVersion{downSinceFrom})
	since := status(model.NodeDown)
	if since == 0 {
		t.Fatal("nobody knows since when it is down")
	}
	if again := status(model.NodeDown); again != since {
		t.Errorf("told again that it is down, it is down since %d, before it was %d", again, since)
	}
	other := newServer()
	if err := other.fsm.Restore(io.NopCloser(bytes.NewReader(s.persist(t)))); err != nil {
		t.Fatal(err)
	}
	if n := other.store.Snapshot().Node("n0"); n.DownSince != since {
		t.Errorf("in a snapshot it is down since %d, before it was %d", n.DownSince, since)
	}
	s.done(t, &RegisterNodes{Nodes: []*model.Node{nodeOf("n0")}})
	if n := s.store.Snapshot().Node("n0"); n.Status != model.NodeReady || n.DownSince != 0 {
		t.Errorf("registered again it is %s, down since %d", n.Status, n.DownSince)
	}
}

func TestVersions_JobsThatAreKeptForSilentNodesNeedTheNewest(t *testing.T) {
	j := countedJob("j", 1)
	j.Groups[0].Disconnect = &model.Disconnect{Replace: true}
	parts := []part{{data: Encode(&Entry{Time: 1, Command: &RegisterJob{Job: j}})}}
	if r := Ours().fit(parts, atVersion(downSinceFrom-1)); r == nil || !strings.Contains(r.Message, "disconnect of Group") {
		t.Errorf("it says %v", r)
	}
	if r := Ours().fit(parts, atVersion(downSinceFrom)); r != nil {
		t.Error(r)
	}
}
