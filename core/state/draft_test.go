package state_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/cede-scheduler/cede/core/state"
)

// Later writes leave the state before a draft unchanged, and the last draft equals
// a snapshot.
func TestDraft_ShowsTheCurrentBranch(t *testing.T) {
	t.Parallel()
	base := seeded(t).Snapshot()
	txn := base.Fork(2)
	var draft *Snapshot
	for i := range 200 {
		txn.AllocWriter().Upsert(allocOf(txn, fmt.Sprintf("d%03d", i), "j1", "n1"))
		draft = txn.Draft()
		if n := draft.JobAllocCount(keyOf("j1")); n != i+1 {
			t.Fatalf("%d allocations after %d writes", n, i+1)
		}
	}
	if err := draft.Check(); err != nil {
		t.Error(err)
	}
	if err := base.Check(); err != nil || base.JobAllocCount(keyOf("j1")) != 0 {
		t.Errorf("the base has %d allocations of j1 (%v)", base.JobAllocCount(keyOf("j1")), err)
	}
	// A fork of a draft leaves it unchanged, if its own branch is not written any
	// more.
	next := draft.Fork(3)
	next.AllocWriter().Delete("d000")
	if err := next.Snapshot().Check(); err != nil {
		t.Error(err)
	}
	if err := draft.Check(); err != nil || draft.Alloc("d000") == nil {
		t.Errorf("the draft lost d000 (%v)", err)
	}
}

// Later writes of the same branch leave the nodes of a node snapshot unchanged. In all else the
// branch equals one that is forked after every write.
func TestNodeSnapshot_RetainsNodes(t *testing.T) {
	t.Parallel()
	base := seeded(t).Snapshot()
	txn, forked := base.Fork(2), base
	pos, _ := base.Position("n1")
	at := int(pos) % ChunkSize
	type view struct {
		sn   *Snapshot
		free []int64
		rows []Row
	}
	var views []view
	for i := range 20 {
		fork := forked.Fork(forked.Index() + 1)
		id := fmt.Sprintf("d%03d", i)
		txn.AllocWriter().Upsert(allocOf(txn, id, "j1", "n1"))
		fork.AllocWriter().Upsert(allocOf(fork, id, "j1", "n1"))
		if i%3 == 2 { // the next write is in place or copies, as that of a new placement
			txn.AllocWriter().Delete(fmt.Sprintf("d%03d", i-1))
			fork.AllocWriter().Delete(fmt.Sprintf("d%03d", i-1))
		}
		sn := txn.NodeSnapshot()
		forked = fork.Snapshot()
		if err := sn.Check(); err != nil {
			t.Fatal(err)
		}
		if sn.Index() != forked.Index() || sn.Alloc(id).ModifyIndex != forked.Alloc(id).ModifyIndex {
			t.Fatalf("index %d, allocation at %d; forked: %d, %d", sn.Index(), sn.Alloc(id).ModifyIndex, forked.Index(), forked.Alloc(id).ModifyIndex)
		}
		chunk := sn.Chunk(int(pos) / ChunkSize)
		views = append(views, view{sn, slices.Clone(chunk.Free(0)), slices.Clone(chunk.Rows(at))})
	}
	for i, v := range views {
		chunk := v.sn.Chunk(int(pos) / ChunkSize)
		if !slices.Equal(chunk.Free(0), v.free) || !slices.Equal(chunk.Rows(at), v.rows) {
			t.Errorf("the nodes of snapshot %d changed", i)
		}
	}
	if err := base.Check(); err != nil || base.JobAllocCount(keyOf("j1")) != 0 {
		t.Errorf("the base has %d allocations of j1 (%v)", base.JobAllocCount(keyOf("j1")), err)
	}
	// A snapshot after it shares nothing with later writes either.
	last := txn.Snapshot()
	n := last.JobAllocCount(keyOf("j1"))
	txn.AllocWriter().Delete("d000")
	if last.JobAllocCount(keyOf("j1")) != n || last.Alloc("d000") == nil {
		t.Error("the snapshot lost d000")
	}
}
