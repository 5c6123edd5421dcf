package fsm

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (a *applier) registerJob(c *replication.RegisterJob) *replication.Refusal {
	j := c.Job
	if j == nil || j.ID == "" || j.Namespace == "" {
		return replication.Refuse(replication.CodeInvalid, "a job needs a namespace and an id")
	}
	old := a.txn.Job(j.Key())
	if r := holds(c.Check, old, j.Key()); r != nil {
		return r
	}
	if r := a.storeJob(old, j); r != nil {
		return r
	}
	if c.Eval != nil {
		if c.Eval.JobKey() != j.Key() {
			return replication.Refuse(replication.CodeInvalid, "evaluation %s of job %s comes with job %s", c.Eval.ID, c.Eval.JobKey(), j.Key())
		}
		if r := a.storeEvals([]*model.Evaluation{c.Eval}); r != nil {
			return r
		}
	}
	a.txn.SetPreemptionHold(j.Key(), state.PreemptionHold{})
	if c.Batch == nil {
		return nil
	}
	if changed := a.txn.RulesChangeIndex(); c.Rules != 0 && changed > c.Rules {
		return replication.Refuse(replication.CodeConflict, "the plan no longer holds: policies or the scheduler's configuration changed at index %d", changed)
	}
	if r := a.applyWhole(c.Batch, a.txn.Job(j.Key())); r != nil {
		return r
	}
	a.hold(c)
	return nil
}

// hold has what a plan leaves without a place wait for free room: whoever confirmed the
// plan was shown no other victims.
func (a *applier) hold(c *replication.RegisterJob) {
	if c.Eval != nil && !c.Eval.Status.Final() && a.txn.Meta().Version >= heldFrom {
		a.txn.SetPreemptionHold(c.Job.Key(), state.PreemptionHold{Index: a.txn.Index(), Time: a.now})
	}
}

// heldFrom is the version of the cluster since which plans hold back what they leave
// without a place: servers of the one before would have another state.
const heldFrom = 2

// holds is whether the check of a job's index holds.
func holds(check *uint64, old *model.Job, key model.JobKey) *replication.Refusal {
	if old == nil {
		return holdsAt(check, "job", key, 0)
	}
	return holdsAt(check, "job", key, old.ModifyIndex)
}

// holdsAt is holds for what was last changed at an index; 0: it is not there.
func holdsAt(check *uint64, what string, key model.JobKey, index uint64) *replication.Refusal {
	switch {
	case check == nil || *check == index:
		return nil
	case index == 0:
		return replication.Refuse(replication.CodeConflict, "%s %s is not there, and index %d of it was named", what, key, *check)
	case *check == 0:
		return replication.Refuse(replication.CodeConflict, "%s %s is there already, at index %d", what, key, index)
	}
	return replication.Refuse(replication.CodeConflict, "%s %s was changed: it is at index %d, and %d was named", what, key, index, *check)
}

// storeJob stores another version where the specification changed. Where it did
// not the job stays, and is looked at again.
func (a *applier) storeJob(old, j *model.Job) *replication.Refusal {
	if j.SubmitTime == 0 {
		j.SubmitTime = a.now
	}
	j.Version, j.CreateIndex, j.ModifyIndex = 0, 0, 0
	if old != nil {
		if codec.JobHash(old) == codec.JobHash(j) {
			a.txn.MarkDirty(j.Key())
			return nil
		}
		j.Version, j.SubmitTime = old.Version+1, old.SubmitTime
	}
	if err := a.txn.UpsertJob(j); err != nil {
		return replication.Refuse(replication.CodeInvalid, "job %s: %v", j.Key(), err)
	}
	return nil
}

func (a *applier) stopJob(c *replication.StopJob) *replication.Refusal {
	old := a.txn.Job(c.Key)
	if old == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no job %s", c.Key)
	}
	if r := holds(c.Check, old, c.Key); r != nil {
		return r
	}
	switch {
	case c.Purge:
		a.txn.DeleteJob(c.Key)
	case old.Stopped:
		a.txn.MarkDirty(c.Key)
	default:
		j := *old
		j.Stopped, j.Version = true, old.Version+1
		if err := a.txn.UpsertJob(&j); err != nil {
			return replication.Refuse(replication.CodeInvalid, "job %s: %v", c.Key, err)
		}
	}
	if c.Eval == nil {
		return nil
	}
	if c.Eval.JobKey() != c.Key {
		return replication.Refuse(replication.CodeInvalid, "evaluation %s of job %s comes with job %s", c.Eval.ID, c.Eval.JobKey(), c.Key)
	}
	return a.storeEvals([]*model.Evaluation{c.Eval})
}

func (a *applier) stopAllocs(c *replication.StopAllocs) *replication.Refusal {
	if len(c.IDs) == 1 && a.txn.Alloc(c.IDs[0]) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no allocation %s", c.IDs[0])
	}
	evals, nodes := apply.Stops(a.txn, a.now, c.IDs, c.Reason)
	a.addEvals(evals)
	a.result.Freed = append(a.result.Freed, nodes...)
	return nil
}

func (a *applier) writeEvals(c *replication.WriteEvals) *replication.Refusal {
	return a.storeEvals(c.Evals)
}

// storeEvals stores evaluations. One that has ended stays as it ended: whoever
// still works on it comes too late.
func (a *applier) storeEvals(evals []*model.Evaluation) *replication.Refusal {
	seen := make(map[string]struct{}, len(evals))
	for _, e := range evals {
		if e == nil || e.ID == "" || e.Namespace == "" || e.JobID == "" {
			return replication.Refuse(replication.CodeInvalid, "an evaluation needs an id, a namespace and a job")
		}
		if _, twice := seen[e.ID]; twice {
			return replication.Refuse(replication.CodeInvalid, "evaluation %s is written twice", e.ID)
		}
		seen[e.ID] = struct{}{}
		if old := a.txn.Eval(e.ID); old != nil && old.JobKey() != e.JobKey() {
			return replication.Refuse(replication.CodeInvalid, "evaluation %s is of job %s, not of %s", e.ID, old.JobKey(), e.JobKey())
		}
	}
	for _, e := range evals {
		e.ModifyTime = a.now
		switch old := a.txn.Eval(e.ID); {
		case old != nil && old.Status.Final() && !e.Status.Final():
			continue
		case old != nil:
			e.CreateTime = old.CreateTime
		case e.CreateTime == 0:
			e.CreateTime = a.now
		}
		a.txn.UpsertEvals(e)
		a.result.Evals = append(a.result.Evals, e)
	}
	return nil
}
