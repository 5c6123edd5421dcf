package replication

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// A server that restores a snapshot knows when a rate was used, and allows no more
// than the one that wrote it.
func TestSnapshot_KeepsWhatARateRemembers(t *testing.T) {
	one := newServer()
	txn := one.store.Begin(1)
	txn.UpsertBudget(&model.Budget{
		Namespace: "default", Name: "slowly", Strict: true, MaxEvictions: &model.Rate{Number: 5, Window: time.Hour},
	})
	want := []model.EvictionCount{{At: 7, N: 2}, {At: 9, N: 1}}
	txn.RestoreEvictions(model.BudgetKey{Namespace: "default", Name: "slowly"}, want)
	txn.Commit()
	other := newServer()
	if err := other.fsm.Restore(io.NopCloser(bytes.NewReader(one.persist(t)))); err != nil {
		t.Fatal(err)
	}
	sn := other.store.Snapshot()
	if got := sn.RecentEvictions(0); !slices.Equal(got, want) || sn.DisruptionsAllowed(0, 10) != 2 {
		t.Errorf("it remembers %v and allows %d", got, sn.DisruptionsAllowed(0, 10))
	}
	if b := sn.Budgets()[0]; b.MaxEvictions == nil || *b.MaxEvictions != (model.Rate{Number: 5, Window: time.Hour}) {
		t.Errorf("the budget is %+v", b)
	}
}
