package fsm

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// isOver reports whether an allocation has ended for good: its client reported so, or it
// should not run and its node is gone.
func isOver(v *state.View, alloc *model.Allocation) bool {
	return alloc.Client.Terminal() || alloc.Desired != model.DesiredRun && v.Node(alloc.NodeID) == nil
}

// collect deletes rows that have ended. A job is deleted with its allocations and
// evaluations. Completed allocations of a job that remains are retained: without them
// the scheduler would run them again. The leader chose the rows on an older state,
// so each is checked again: one that is no longer terminal is retained.
func (a *applier) collect(c *replication.Collect) *replication.Refusal {
	for _, key := range c.Jobs {
		a.collectJob(key)
	}
	for _, id := range c.Allocs {
		alloc := a.txn.Alloc(id)
		if alloc == nil || !isOver(&a.txn.View, alloc) {
			continue
		}
		if job := a.txn.Job(alloc.Job.Key()); job != nil && isDone(&a.txn.View, alloc, job) {
			continue
		}
		a.txn.AllocWriter().Delete(id)
	}
	for _, id := range c.Evals {
		if e := a.txn.Eval(id); e != nil && e.Status.Final() {
			a.txn.EvalWriter().Delete(id)
		}
	}
	var gone []string
	for _, id := range c.Nodes {
		n := a.txn.Node(id)
		if n != nil && n.Status == model.NodeDown && len(a.txn.AppendNodeAllocs(nil, id)) == 0 {
			gone = append(gone, id)
		}
	}
	a.addEvals(apply.NodeDelete(a.txn, a.now, gone))
	for _, id := range c.Policies {
		if v := a.txn.PolicyVersion(id); v != nil && !isInUse(&a.txn.View, v) {
			a.deleteVersion(v)
		}
	}
	return nil
}

// isDone reports whether an instance of a job does not run again. Before apply.RerunFrom, completed
// instances never did.
func isDone(v *state.View, alloc *model.Allocation, job *model.Job) bool {
	if v.Meta().Version < apply.RerunFrom {
		return job.Type.Finite() && alloc.Completed() && !job.Stopped
	}
	return alloc.IsDone(job)
}

// collectJob deletes a job that can no longer run anything: it is stopped, or finite,
// and all of its allocations and evaluations have ended. A job that was deleted already
// may still have rows, which are collected in the same way.
func (a *applier) collectJob(key model.JobKey) {
	j := a.txn.Job(key)
	if j != nil && !j.Stopped && !j.Type.Finite() {
		return
	}
	allocs, evals := a.txn.AppendJobAllocs(nil, key), a.txn.EvalsOfJob(key)
	for _, alloc := range allocs {
		if !isOver(&a.txn.View, alloc) {
			return
		}
	}
	for _, e := range evals {
		if !e.Status.Final() {
			return
		}
	}
	for _, alloc := range allocs {
		a.txn.AllocWriter().Delete(alloc.ID)
	}
	for _, e := range evals {
		a.txn.EvalWriter().Delete(e.ID)
	}
	a.txn.JobWriter().Delete(key)
}
