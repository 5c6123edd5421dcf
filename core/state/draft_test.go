package state_test

import (
	"fmt"
	. "github.com/cede-scheduler/cede/core/state"
	"testing"
)

// Whatever is written behind a draft, what was there before it stays as it was, and
// the last draft is what a snapshot would be.
func TestDraft_IsTheBranchAsItIs(t *testing.T) {
	base := seeded(t).Snapshot()
	txn := base.Fork(2)
	var draft *Snapshot
	for i := range 200 {
		txn.UpsertAllocs(allocOf(txn, fmt.Sprintf("d%03d", i), "j1", "n1"))
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
	// What goes on from a draft leaves it as it is, once nobody writes to its branch.
	next := draft.Fork(3)
	next.DeleteAllocs("d000")
	if err := next.Snapshot().Check(); err != nil {
		t.Error(err)
	}
	if err := draft.Check(); err != nil || draft.Alloc("d000") == nil {
		t.Errorf("the draft lost d000 (%v)", err)
	}
}
