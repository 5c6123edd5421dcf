package scheduler_test

import (
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// recordWaiting records how long preemptors have waited.
type waits struct{ seen *[]int64 }

func (waits) Info() sdk.Info { return sdk.Info{Name: "waits", Delta: 1} }
func (w waits) PriorityDelta(in *sdk.Candidates, _ []int32, _ *sdk.Recheck) error {
	*w.seen = append(*w.seen, in.Preemptor.Waiting)
	return nil
}

// A service that ran for days and is evicted has waited since the eviction. Otherwise it
// would return as if it had starved since its submission.
func TestMissingSince_StartsAtEndOfPredecessor(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.JobType{model.JobService, model.JobSystem} {
		var seen []int64
		w := newFixture(t, func() sdk.Policy { return waits{&seen} })
		w.node("n1")
		w.run(job("low", 10, 6, 6).Obj(), "l", "n1")
		j := job("j", 50, 6, 6).Type(kind).Change(func(j *model.Job) { j.Policy, j.SubmitTime = "waits", 100 }).Obj()
		w.job(j)
		w.now = 150
		w.plan("j")
		w.write(func(txn *state.Txn) {
			gone := coretest.Running("was", j, 0, 0, "n1")
			gone.Desired, gone.EndTime = model.DesiredEvict, 900
			txn.AllocWriter().Upsert(gone)
		})
		w.now = 1000
		w.plan("j")
		w.now = 850 // a clock that was set back
		w.plan("j")
		if want := []int64{50, 100, 0}; !slices.Equal(seen, want) {
			t.Errorf("%s waited %v, want %v", kind, seen, want)
		}
	}
}

// richest evicts from namespaces that have more than 12.
type richest struct{}

func (richest) Info() sdk.Info {
	return sdk.Info{Name: "richest", Delta: 1, Columns: sdk.SharedTables | sdk.JobColumns}
}

func (richest) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	for i := range in.Len() {
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			at := slices.Index(in.Shared.Namespaces.Name, in.Rows.Namespace[row])
			if in.Shared.Namespaces.Use[0][at] > 12 {
				out.Pick(int(row))
			}
		}
		out.Next()
	}
	return nil
}

// If a policy uses shares, a failure depends on every node and does not exclude nodes
// that have not changed since.
func TestFailureCache_SkipsPoliciesWithShares(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func() sdk.Policy { return richest{} })
	w.node("n1")
	w.node("n2")
	w.run(job("high", 99, 10, 10).Obj(), "h", "n2")
	w.run(job("low", 10, 10, 10).Change(func(j *model.Job) { j.Namespace = "rich" }).Obj(), "l", "n1")
	w.job(job("j", 50, 10, 10).Change(func(j *model.Job) { j.Policy = "richest" }).Obj())
	if out := w.plan("j"); out.Placed() {
		t.Fatal(format(out))
	}
	// The namespace gets more on another node, with too high a priority.
	w.write(func(txn *state.Txn) {
		txn.AllocWriter().Upsert(func() *model.Allocation {
			gone := *txn.Alloc("h")
			gone.Desired = model.DesiredStop
			return &gone
		}())
	})
	w.run(job("crown", 98, 10, 10).Change(func(j *model.Job) { j.Namespace = "rich" }).Obj(), "c", "n2")
	if out := w.plan("j"); !out.Placed() || !slices.Contains(out.Plan.Groups[0].Placements[0].Preempted, "l") {
		t.Error(format(out))
	}
}
