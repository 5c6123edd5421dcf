package fsm_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// The state records when a node went down, by the time of the entry, from the cluster
// version that supports it.
func TestChangeNodes_RecordsWhenANodeWentDown(t *testing.T) {
	s := withJob(t)
	status := func(to model.NodeStatus) int64 {
		s.MustDo(t, &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Status: new(to)}})
		return s.Store.Snapshot().Node("n0").DownSince
	}
	s.MustDo(t, &replication.Bootstrap{ClusterID: "c", Version: fsm.DownSinceFrom - 1})
	if since := status(model.NodeDown); since != 0 {
		t.Errorf("down since %d, before the version that records it", since)
	}
	if since := status(model.NodeReady); since != 0 {
		t.Errorf("ready node is down since %d", since)
	}
	s.MustDo(t, &replication.SetVersion{Version: fsm.DownSinceFrom})
	since := status(model.NodeDown)
	if since == 0 {
		t.Fatal("the time was not recorded")
	}
	if again := status(model.NodeDown); again != since {
		t.Errorf("down since %d after a repetition, want %d", again, since)
	}
	other := newServer()
	if err := other.FSM.Restore(io.NopCloser(bytes.NewReader(s.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	if n := other.Store.Snapshot().Node("n0"); n.DownSince != since {
		t.Errorf("down since %d after a restore, want %d", n.DownSince, since)
	}
	s.MustDo(t, &replication.RegisterNodes{Nodes: []*model.Node{replicationtest.Node("n0")}})
	if n := s.Store.Snapshot().Node("n0"); n.Status != model.NodeReady || n.DownSince != 0 {
		t.Errorf("after a registration: %s, down since %d", n.Status, n.DownSince)
	}
}

// The FSM halts before it applies a cluster version that this release does not
// support.
func TestFSM_HaltsBeforeUnsupportedVersion(t *testing.T) {
	store := state.New()
	f := fsm.New(&fsm.Config{Store: store, Versions: replication.Versions{Oldest: 1, Newest: 1}, Logger: slog.New(slog.DiscardHandler)})
	responses := f.ApplyBatch([]*raft.Log{
		{Index: 1, Data: codec.Encode(&replication.Entry{Command: &replication.Bootstrap{ClusterID: "c", Version: 1}})},
		{Index: 2, Data: codec.Encode(&replication.Entry{Command: &replication.SetVersion{Version: 2}})},
	})
	if err, ok := responses[1].(error); !ok || f.Err() == nil || !strings.Contains(err.Error(), "the cluster is at version 2") {
		t.Errorf("the FSM continued: %v", responses[1])
	}
	if version := store.Snapshot().Meta().Version; version != 1 {
		t.Errorf("the state has version %d, want 1", version)
	}
}
