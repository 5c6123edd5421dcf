package sim

import (
	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/state"
)

// addEnd adds the end of an allocation that has started, unless it runs for ever.
func addEnd(ends *lifetime.Ends, f *scenario.Resolved, a *model.Allocation, now int64) {
	ends.AddStarted(a, f.Duration(a.Job, a.Group, a.Index), now)
}

// addBindingEnd adds the end of an assignment whose binding has a duration.
func addBindingEnd(ends *lifetime.Ends, snap *state.Snapshot, of *model.Assignment) {
	if b := snap.Binding(of.Binding); b != nil && b.Duration > 0 {
		ends.Add(lifetime.End{At: max(of.StartTime+b.Duration, 0), Alloc: of.ID, Binding: true})
	}
}
