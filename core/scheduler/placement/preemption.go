package placement

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// MayPreempt reports whether evaluations of a job may evict at all.
func MayPreempt(snap *state.Snapshot, job *model.Job) bool {
	return mayPreempt(snap.Config(), job) && !IsHeld(snap, job)
}

func mayPreempt(c *model.SchedulerConfig, job *model.Job) bool {
	return c.Preemption[job.Type] && !job.NeverPreempts
}

// Observes reports whether decisions to evict for a job are recorded and not carried out.
func Observes(snap *state.Snapshot, job *model.Job) bool {
	return job != nil && snap.Config().Observes(job.Type) && !job.NeverPreempts && !IsHeld(snap, job)
}

// reasonHeld states why a job with preemption on hold evicts nothing.
const reasonHeld = "the plan that the user confirmed did not list these evictions"

// IsHeld reports whether preemption is on hold for a job: it was run by a
// confirmed plan, and some instance that the plan left unplaced still is. Until
// free capacity was found for it, nothing is evicted, because the user confirmed
// the victims that the plan listed and no others.
//
// An instance that ran after the plan and ended is like one of any job. A system
// job stays on hold until it is run again, since the plan could not list nodes
// that joined later.
func IsHeld(snap *state.Snapshot, job *model.Job) bool {
	hold := snap.PreemptionHold(job.Key())
	if hold == (state.PreemptionHold{}) || job.Stopped {
		return false
	}
	if job.Type.PerNode() {
		return true
	}
	type instance struct {
		group string
		index int
	}
	placed := map[instance]bool{}
	for _, a := range snap.AppendJobAllocs(nil, job.Key()) {
		if placedSince(a, job, hold) {
			placed[instance{a.Group.Name, a.Index}] = true
		}
	}
	for _, g := range job.Groups {
		for index := range g.Count {
			if !placed[instance{g.Name, index}] {
				return true
			}
		}
	}
	return false
}

// placedSince reports whether an instance of the job was placed when the plan was
// confirmed, or was placed later.
func placedSince(a *model.Allocation, job *model.Job, hold state.PreemptionHold) bool {
	switch {
	case a.CreateIndex >= hold.Index:
		return true
	case job.Type.Finite() && a.IsDone(job):
		return true
	}
	return a.Job.Version == job.Version && (a.Live() || a.EndTime > hold.Time)
}

// noEviction returns why the evaluation may not evict at all, or "" if it may.
func (e *Evaluation) noEviction() string {
	switch {
	case e.Preemption.Allowed:
		return ""
	case e.Job.NeverPreempts:
		return "the job's preemptionPolicy is Never"
	case e.Policy.Fault != nil:
		return proposal.FaultReason
	case e.held:
		return reasonHeld
	}
	if e.State.Base.Config().Observes(e.Job.Type) {
		return fmt.Sprintf("preemption is only observed for %s jobs", e.Job.Type)
	}
	return fmt.Sprintf("preemption is off for %s jobs", e.Job.Type)
}
