package raftnode_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// Earlier states are computed from the log, and from snapshots with the entries after them,
// while the server goes on. States that the log no longer reaches are refused.
func TestNode_StateAtEqualsEarlierStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &durable{id: "s", dir: filepath.Join(t.TempDir(), "data")}
		d.start(t)
		defer func() { d.stop(t) }()
		if err := d.node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		d.lead(t)
		var earlier []*state.Snapshot
		do := func(n int) {
			t.Helper()
			for range n {
				if r, err := d.node.Apply(t.Context(), register("a", len(earlier))); err != nil || r.Err != nil {
					t.Fatalf("%v, %+v", err, r)
				}
				earlier = append(earlier, d.store.Snapshot())
			}
		}
		check := func(want *state.Snapshot) bool {
			t.Helper()
			got, err := d.node.StateAt(t.Context(), want.Index())
			if errors.Is(err, raftnode.ErrPastGone) {
				return false
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Index() != want.Index() || snapshot.Hash(got) != snapshot.Hash(want) {
				t.Errorf("state at %d has index %d and another hash", want.Index(), got.Index())
			}
			return true
		}
		do(20)
		for _, want := range earlier {
			if !check(want) {
				t.Errorf("state at %d is gone, though the log is whole", want.Index())
			}
		}
		for range 3 { // two snapshots are kept, and five entries before the newest
			if err := d.node.TakeSnapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			do(4)
		}
		var writing sync.WaitGroup
		writing.Go(func() {
			for n := range 20 {
				if _, err := d.node.Apply(t.Context(), register("b", n)); err != nil {
					t.Error(err)
				}
			}
		})
		newest := 0
		for i, want := range earlier {
			if check(want) {
				newest++
			} else if i > len(earlier)-8 {
				t.Errorf("state at %d is gone", want.Index())
			}
		}
		if newest == len(earlier) {
			t.Error("no state is gone, though the log is truncated")
		}
		writing.Wait()
		future := d.store.Snapshot().Index() + 5
		if _, err := d.node.StateAt(t.Context(), future); err == nil || errors.Is(err, raftnode.ErrPastGone) {
			t.Errorf("a state that does not exist yet: %v", err)
		}
	})
}

// An index that no command has yields the state before it, and never a later one.
func TestNode_StateAtIndexWithoutCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		leader := c.Leader()
		first, err := leader.Node.Apply(t.Context(), register("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Node.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		second, err := leader.Node.Apply(t.Context(), register("a", 1))
		if err != nil {
			t.Fatal(err)
		}
		if second.Index != first.Index+2 {
			t.Fatalf("indexes %d and %d, want a barrier between them", first.Index, second.Index)
		}
		if snap, err := leader.Node.StateAt(t.Context(), first.Index+1); err != nil || snap.Index() != first.Index {
			t.Errorf("state at a barrier: %v, %v", snap, err)
		}
	})
}
