package scheduler

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// heldWhy is why nobody is evicted for a job that is held back.
const heldWhy = "the job was run by a plan that did not show whom this would evict"

// heldBack is whether the job lacks something that the plan by which it was run left
// without a place. Until that has found free room nobody is evicted for the job: whoever
// ran the plan was told of its victims and of no others. An instance that ran after the
// plan and ended is like one of any job, and a job that runs on every node is held back
// until it is run again, as nodes that came later are none that the plan showed.
func heldBack(snap *state.Snapshot, job *model.Job) bool {
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
	shown := map[instance]bool{}
	for _, a := range snap.AppendJobAllocs(nil, job.Key()) {
		if sinceHold(a, job, hold) {
			shown[instance{a.Group.Name, a.Index}] = true
		}
	}
	for _, g := range job.Groups {
		for index := range g.Count {
			if !shown[instance{g.Name, index}] {
				return true
			}
		}
	}
	return false
}

// sinceHold is whether an instance of the job was where the plan left it, or came later.
func sinceHold(a *model.Allocation, job *model.Job, hold state.PreemptionHold) bool {
	switch {
	case a.CreateIndex >= hold.Index:
		return true
	case a.Client == model.ClientComplete && a.Desired == model.DesiredRun && job.Type.Finite():
		return true
	}
	return a.Job.Version == job.Version && (a.Live() || a.EndTime > hold.Time)
}
