package state_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Changes that may make a cohort evictable, and changes that cannot.
func TestCohort_ChangedNodes(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	txn := s.Begin(2)
	whole, elastic, each := jobOf("whole", 20), jobOf("elastic", 20), jobOf("each", 20)
	whole.AllOrNone, elastic.AllOrNone = true, true
	elastic.Groups[0].MinCount = 1
	for _, j := range []*model.Job{whole, elastic, each} {
		if err := txn.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			txn.AllocWriter().Upsert(allocOf(txn, fmt.Sprintf("%s%d", j.ID, i), j.ID, fmt.Sprintf("n%d", i)))
		}
	}
	checked(t, txn)
	for i, c := range []struct {
		name string
		do   func(*Txn)
		want []string
	}{
		{"one begins to work", func(txn *Txn) {
			apply.ClientUpdates(txn, now, []apply.ClientUpdate{{AllocID: "whole0", Status: model.ClientRunning, Started: true, StartTime: 5}})
		}, nil},
		{"one of a job whose instances go one by one ends", func(txn *Txn) {
			apply.ClientUpdates(txn, now, []apply.ClientUpdate{{AllocID: "each0", Status: model.ClientFailed}})
		}, nil},
		{"one more is placed", func(txn *Txn) {
			txn.AllocWriter().Upsert(allocOf(txn, "whole2", "whole", "n0"))
		}, nil},
		{"one more of an elastic job is placed", func(txn *Txn) {
			txn.AllocWriter().Upsert(allocOf(txn, "elastic2", "elastic", "n0"))
		}, []string{"n0", "n1"}},
		{"one is brought to a newer version", func(txn *Txn) {
			newer := jobOf("whole", 10)
			newer.AllOrNone, newer.Version = true, 1
			if err := txn.JobWriter().Upsert(newer); err != nil {
				t.Fatal(err)
			}
			a := *txn.Alloc("whole1")
			a.Job, a.Group = newer, newer.Groups[0]
			txn.AllocWriter().Upsert(&a)
		}, []string{"n0", "n1"}},
		{"one is evicted, and none is left on its node", func(txn *Txn) {
			a := *txn.Alloc("whole1")
			a.Desired = model.DesiredEvict
			txn.AllocWriter().Upsert(&a)
		}, []string{"n0"}},
		{"it is gone, and was evicted before", func(txn *Txn) {
			apply.ClientUpdates(txn, now, []apply.ClientUpdate{{AllocID: "whole1", Status: model.ClientComplete}})
		}, nil},
		{"the job no longer goes whole, but those of its earlier version do", func(txn *Txn) {
			newer := jobOf("whole", 10)
			newer.Version = 2
			if err := txn.JobWriter().Upsert(newer); err != nil {
				t.Fatal(err)
			}
			txn.AllocWriter().Delete("whole2")
		}, []string{"n0"}},
	} {
		txn := s.Begin(uint64(3 + i))
		c.do(txn)
		if d := cmp.Diff(c.want, checked(t, txn).ChangedCohortNodes()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
