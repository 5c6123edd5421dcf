package state_test

import (
	"fmt"
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
