package bound

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/state"
)

// A Decision is the outcome of one evaluation of a job.
type Decision struct {
	Eval    string
	Now     int64 // Unix nanoseconds
	Job     *model.Job
	Placed  []int // instances by group
	Queued  []int // instances that could not be placed, by group
	Victims []*model.Allocation
	Moved   []*model.Allocation // of other jobs, on the nodes that they left

	before *state.Snapshot
	snap   *state.Snapshot // before, without the allocations that the plan stops
	// on holds the nodes of per-node jobs that received instances, by group.
	on []map[string]bool
}

// NewDecision returns the decision of an evaluation. It returns nil if nothing was evicted,
// moved or left unplaced, if a part of a plan was rejected, and for bindings.
func NewDecision(e sim.Evaluated) *Decision {
	d := describe(e)
	if d == nil || len(d.Victims)+len(d.Moved) == 0 && sum(d.Queued) == 0 {
		return nil
	}
	return d
}

// describe returns the decision of an evaluation, also if it evicts nothing.
func describe(e sim.Evaluated) *Decision {
	r := e.Report
	if r.Outcome == nil || len(r.Plans) > 1 {
		return nil
	}
	d := &Decision{Eval: r.Eval.ID, Now: e.Now, Job: e.Before.Job(r.Eval.JobKey()), before: e.Before, snap: e.Before}
	if d.Job == nil || d.Job.Stopped {
		return nil
	}
	d.Placed, d.Queued = make([]int, len(d.Job.Groups)), make([]int, len(d.Job.Groups))
	d.on = make([]map[string]bool, len(d.Job.Groups))
	for i, g := range d.Job.Groups {
		d.Queued[i] = r.Outcome.Queued[g.Name]
	}
	if len(r.Plans) == 1 {
		if !r.Results[0].FullyCommitted() {
			return nil
		}
		d.apply(r.Plans[0])
	}
	return d
}

// apply reads the placements, victims and moves of a plan, and applies its other stops.
func (d *Decision) apply(plan *model.Plan) {
	before := d.before
	var txn *state.Txn
	for i := range plan.Groups {
		g := &plan.Groups[i]
		for _, a := range g.Placements {
			if a.MovedFrom != "" {
				continue // an instance of another job, which is described by its stop
			}
			at := a.Group.Position
			d.Placed[at]++
			if d.on[at] == nil {
				d.on[at] = map[string]bool{}
			}
			d.on[at][a.NodeID] = true
		}
		for _, e := range g.Evictions {
			if a := before.Alloc(e.AllocID); a != nil && a.Live() {
				d.Victims = append(d.Victims, a)
			}
		}
		if len(g.Stops)+len(g.Updates) > 0 && txn == nil {
			txn = before.Fork(before.Index() + 1)
		}
		for _, s := range g.Stops {
			a := before.Alloc(s.AllocID)
			switch {
			case a == nil:
			case s.MovedTo != "":
				d.Moved = append(d.Moved, a)
			default:
				gone := *a
				gone.Desired = model.DesiredStop
				txn.AllocWriter().Upsert(&gone)
			}
		}
		for _, a := range g.Updates {
			updated := *a
			txn.AllocWriter().Upsert(&updated)
		}
	}
	if txn != nil {
		d.snap = txn.Snapshot()
	}
}

// instances returns the number of instances that the evaluation placed.
func (d *Decision) instances() (n int) {
	for _, k := range d.Placed {
		n += k
	}
	return n
}
