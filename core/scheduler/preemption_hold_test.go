package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A job that was run by a confirmed plan evicts nothing for instances that the plan left
// unplaced, and may evict for instances that ran and ended afterwards.
func TestPreemptionHold_UntilUnplacedInstancesArePlaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   model.JobType
		change func(w *fixture, txn *state.Txn, j *model.Job)
		want   string
	}{
		"a second instance never ran": {model.JobService, nil, "g waits for 1"},
		"it ran before and was lost": {model.JobService, func(w *fixture, txn *state.Txn, j *model.Job) {
			gone := coretest.Running("b", j, 0, 1, "n3")
			gone.Desired, gone.EndTime = model.DesiredStop, 500
			txn.AllocWriter().Upsert(gone)
		}, "g waits for 1"},
		"it ran when the plan was run": {model.JobService, func(w *fixture, txn *state.Txn, j *model.Job) {
			gone := coretest.Running("b", j, 0, 1, "n3")
			gone.Desired, gone.EndTime = model.DesiredStop, 501
			txn.AllocWriter().Upsert(gone)
		}, "j.g[1]#1@n2 over l"},
		"it completed before": {model.JobBatch, func(w *fixture, txn *state.Txn, j *model.Job) {
			done := coretest.Running("b", j, 0, 1, "n3")
			done.Client, done.EndTime = model.ClientComplete, 400
			txn.AllocWriter().Upsert(done)
			gone := *txn.Alloc("a")
			gone.Client, gone.EndTime = model.ClientFailed, 600
			txn.AllocWriter().Upsert(&gone)
		}, "j.g[0]#1@n1"},
		"a node came later": {model.JobSystem, nil, "g waits for 1"},
	} {
		w := newFixture(t)
		w.node("n1")
		w.run(job("low", 10, 6, 6).Obj(), "l", "n2")
		j := job("j", 50, 6, 6).Type(c.kind).Count(2).Obj()
		if c.kind.PerNode() {
			j.Groups[0].Count = 1
		}
		w.job(j)
		w.write(func(txn *state.Txn) {
			txn.AllocWriter().Upsert(coretest.Running("a", j, 0, 0, "n1"))
			if c.change != nil {
				c.change(w, txn, j)
			}
		})
		w.node("n2")
		w.write(func(txn *state.Txn) {
			txn.JobWriter().SetPreemptionHold(j.Key(), state.PreemptionHold{Index: w.store.Snapshot().Index() + 1, Time: 500})
		})
		w.now = 1000
		out := w.plan("j")
		if got := format(out); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if why := out.Failed["g"]; why != nil && why.NoEviction != "the plan that the user confirmed did not list these evictions" {
			t.Errorf("%s: unexpected reason %q", name, why.NoEviction)
		}
	}
}

// While a new version waits for free capacity, the old one keeps running.
func TestPreemptionHold_ReplacementsWaitForFreeCapacity(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.run(job("low", 10, 5, 5).Obj(), "l", "n1")
	w.run(job("j", 50, 4, 4).Obj(), "a", "n1")
	next := job("j", 50, 6, 6).Obj()
	w.job(next)
	w.write(func(txn *state.Txn) {
		txn.JobWriter().SetPreemptionHold(next.Key(), state.PreemptionHold{Index: w.store.Snapshot().Index() + 1, Time: 1})
	})
	w.now = 10
	if got := format(w.plan("j")); got != "g waits for 1" {
		t.Errorf("on hold: %q", got)
	}
	w.write(func(txn *state.Txn) { txn.JobWriter().SetPreemptionHold(next.Key(), state.PreemptionHold{}) })
	w.want("j", "j.g[0]#1@n1 over l, stop a")
}
