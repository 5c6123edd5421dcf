package fsm

import (
	"cmp"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// registerJob stores a job with its evaluation, and a confirmed plan of it if there is one:
// all of that, or nothing. Registering a job ends a preemption hold.
func (a *applier) registerJob(c *replication.RegisterJob) *replication.Refusal {
	j := c.Job
	if j == nil || j.ID == "" || j.Namespace == "" {
		return replication.Refuse(replication.CodeInvalid, "job: namespace and ID are required")
	}
	old := a.txn.Job(j.Key())
	if r := checkJob(c.Check, old, j.Key()); r != nil {
		return r
	}
	if r := a.storeJob(old, j); r != nil {
		return r
	}
	a.result.ModifyIndex = a.txn.Job(j.Key()).ModifyIndex
	if c.Eval != nil {
		if c.Eval.JobKey() != j.Key() {
			return replication.Refuse(replication.CodeInvalid, "evaluation %s is for job %s, want job %s", c.Eval.ID, c.Eval.JobKey(), j.Key())
		}
		if r := a.storeEvals([]*model.Evaluation{c.Eval}); r != nil {
			return r
		}
	}
	a.txn.JobWriter().SetPreemptionHold(j.Key(), state.PreemptionHold{})
	if c.Batch == nil {
		return nil
	}
	// The plan was computed with other policies or settings, so its victims are no
	// longer those that they would select.
	if changed := a.txn.RulesChangeIndex(); c.Rules != 0 && changed > c.Rules {
		return replication.Refuse(replication.CodeConflict, "plan is out of date: policies or the scheduler configuration changed at index %d", changed)
	}
	if r := a.applyAllOrNone(c.Batch, a.txn.Job(j.Key())); r != nil {
		return r
	}
	a.holdPreemption(c)
	return nil
}

// holdPreemption suspends preemption for the rest of the job that a confirmed plan did not place: the user
// confirmed these victims and no others. The rest waits for free capacity.
func (a *applier) holdPreemption(c *replication.RegisterJob) {
	if c.Eval != nil && !c.Eval.Status.Final() && a.txn.Meta().Version >= heldFrom {
		a.txn.JobWriter().SetPreemptionHold(c.Job.Key(), state.PreemptionHold{Index: a.txn.Index(), Time: a.now})
	}
}

// heldFrom is the first cluster version with preemption holds. Servers of an older
// release would derive another state.
const heldFrom = 2

// checkJob refuses a command if the job is not at the index that it requires.
func checkJob(check *uint64, old *model.Job, key model.JobKey) *replication.Refusal {
	if old == nil {
		return checkIndex(check, "job", key, 0)
	}
	return checkIndex(check, "job", key, old.ModifyIndex)
}

// checkIndex refuses a command if its subject is not at the required index. Index 0
// means that the subject does not exist; a nil check requires nothing.
func checkIndex(check *uint64, what string, key model.JobKey, index uint64) *replication.Refusal {
	switch {
	case check == nil || *check == index:
		return nil
	case index == 0:
		return replication.Refuse(replication.CodeConflict, "%s %s does not exist (%s %d: it does not exist)", what, key, enforcedIndex, *check)
	case *check == 0:
		return replication.Refuse(replication.CodeConflict, "%s %s already exists (%s 0: it is at index %d)", what, key, enforcedIndex, index)
	}
	return replication.Refuse(replication.CodeConflict, "%s %s was changed (%s %d: it is at index %d)", what, key, enforcedIndex, *check, index)
}

// enforcedIndex begins the reason of a refusal, in parentheses. Nomad's clients
// recognize a conflict by it.
const enforcedIndex = "Enforcing job modify index"

// storeJob stores a new version if the specification changed. Otherwise the job is
// unchanged and marked dirty, so that it is evaluated again.
func (a *applier) storeJob(old, j *model.Job) *replication.Refusal {
	j.SubmitTime = cmp.Or(j.SubmitTime, a.now)
	j.Version, j.CreateIndex, j.ModifyIndex = 0, 0, 0
	if old != nil {
		if codec.JobHash(old) == codec.JobHash(j) {
			a.txn.JobWriter().MarkDirty(j.Key())
			return nil
		}
		apply.NextVersion(&a.txn.View, old, j, a.now)
	}
	if err := a.txn.JobWriter().Upsert(j); err != nil {
		return replication.Refuse(replication.CodeInvalid, "job %s: %v", j.Key(), err)
	}
	addArrival(a.txn, a.now, j)
	return nil
}

// stopJob stops or purges a job. Its evaluation stops the allocations. A purge keeps no
// version, so the job can be registered anew from version 0.
func (a *applier) stopJob(c *replication.StopJob) *replication.Refusal {
	old := a.txn.Job(c.Key)
	if old == nil {
		return replication.Refuse(replication.CodeNotFound, "job %s not found", c.Key)
	}
	if r := checkJob(c.Check, old, c.Key); r != nil {
		return r
	}
	switch {
	case c.Purge:
		a.txn.JobWriter().Delete(c.Key)
	case old.Stopped:
		a.txn.JobWriter().MarkDirty(c.Key)
	default:
		j := *old
		j.Stopped, j.Version = true, old.Version+1
		if err := a.txn.JobWriter().Upsert(&j); err != nil {
			return replication.Refuse(replication.CodeInvalid, "job %s: %v", c.Key, err)
		}
	}
	if j := a.txn.Job(c.Key); j != nil {
		a.result.ModifyIndex = j.ModifyIndex
	}
	if c.Eval == nil {
		return nil
	}
	if c.Eval.JobKey() != c.Key {
		return replication.Refuse(replication.CodeInvalid, "evaluation %s is for job %s, want job %s", c.Eval.ID, c.Eval.JobKey(), c.Key)
	}
	return a.storeEvals([]*model.Evaluation{c.Eval})
}

// stopAllocs stops allocations and derives an evaluation for each job. Of several, those
// that no longer exist are skipped.
func (a *applier) stopAllocs(c *replication.StopAllocs) *replication.Refusal {
	if len(c.IDs) == 1 && a.txn.Alloc(c.IDs[0]) == nil {
		return replication.Refuse(replication.CodeNotFound, "allocation %s not found", c.IDs[0])
	}
	evals, nodes := apply.Stops(a.txn, a.now, c.IDs, c.Reason)
	a.addEvals(evals)
	a.result.Freed = append(a.result.Freed, nodes...)
	return nil
}

// writeEvals stores evaluations of workers and of the leader.
func (a *applier) writeEvals(c *replication.WriteEvals) *replication.Refusal {
	return a.storeEvals(c.Evals)
}

// storeEvals stores evaluations. A final evaluation stays final: a worker that still
// processes it is late. All are checked before the first is stored.
func (a *applier) storeEvals(evals []*model.Evaluation) *replication.Refusal {
	seen := make(map[string]struct{}, len(evals))
	for _, e := range evals {
		if e == nil || e.ID == "" || e.Namespace == "" || e.JobID == "" {
			return replication.Refuse(replication.CodeInvalid, "evaluation: ID, namespace and job are required")
		}
		if _, twice := seen[e.ID]; twice {
			return replication.Refuse(replication.CodeInvalid, "duplicate evaluation %s", e.ID)
		}
		seen[e.ID] = struct{}{}
		if old := a.txn.Eval(e.ID); old != nil && old.JobKey() != e.JobKey() {
			return replication.Refuse(replication.CodeInvalid, "evaluation %s is for job %s, want %s", e.ID, old.JobKey(), e.JobKey())
		}
	}
	for _, e := range evals {
		e.ModifyTime = a.now
		switch old := a.txn.Eval(e.ID); {
		case old != nil && old.Status.Final() && !e.Status.Final():
			continue
		case old != nil && old.Status == model.EvalCancelled && e.Status != model.EvalCancelled:
			// A worker that received the evaluation just before it was cancelled reports
			// its result. The cancellation was confirmed, so it remains.
			continue
		case old != nil:
			e.CreateTime = old.CreateTime
		case e.CreateTime == 0:
			e.CreateTime = a.now
		}
		a.txn.EvalWriter().Upsert(e)
		a.result.Evals = append(a.result.Evals, e)
	}
	return nil
}
