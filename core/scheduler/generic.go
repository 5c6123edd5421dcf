package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/scheduler/gang"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
)

// placeCounted plans a service or batch job: a number of instances per group. All
// groups are reconciled before any is placed, so that capacity of stopped instances is
// free for every group.
func (a *attempt) placeCounted() error {
	e, r := a.e, a.r
	r.DetectNodeChanges(e.Eval.TriggeredBy)
	missing := make([][]reconcile.Missing, len(e.Job.Groups))
	for i, g := range e.Job.Groups {
		missing[i] = r.Group(g)
	}
	e.ReleaseStopped()
	if e.Job.AllAtOnce {
		if r.WaitsToRetry() {
			missing = onlyReplacements(missing)
		}
		return gang.Place(e, missing)
	}
	return gang.PlaceInOrder(e, missing)
}

// onlyReplacements removes instances that replace no running allocation. While a
// failed member of a gang waits for its retry, the other missing ones wait as well,
// because they are to be placed together.
func onlyReplacements(missing [][]reconcile.Missing) [][]reconcile.Missing {
	for i, list := range missing {
		missing[i] = slices.DeleteFunc(slices.Clone(list), func(m reconcile.Missing) bool { return m.Replaces == nil })
	}
	return missing
}
