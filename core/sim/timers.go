package sim

import (
	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// addEnd adds the end of an allocation that has started, unless it runs for ever.
func (e *engine) addEnd(a *model.Allocation) {
	e.timers.AddStarted(a, e.file.Duration(a.Job, a.Group, a.Index), e.now())
}

// addBindingEnd adds the end of an assignment whose binding has a duration.
func addBindingEnd(ends *lifetime.Ends, snap *state.Snapshot, of *model.Assignment) {
	if b := snap.Binding(of.Binding); b != nil && b.Duration > 0 {
		ends.Add(lifetime.End{At: max(of.StartTime+b.Duration, 0), Alloc: of.ID, Binding: true})
	}
}
