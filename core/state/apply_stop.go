package state

import "github.com/cede-scheduler/cede/core/model"

// ApplyStops ends allocations that somebody wants gone, with at most one
// evaluation for each job, which are returned, ascending by job: whether there
// shall be a replacement is for the scheduler to say. What is no longer wanted
// already, and ids that are not there, are skipped. It also returns the nodes
// of what it ended.
func (t *Txn) ApplyStops(now int64, ids []string, reason string) (evals []*model.Evaluation, nodes []string) {
	missing := newFollowUps(model.TriggerAllocStop, "")
	for _, id := range ids {
		old := t.Alloc(id)
		if old == nil || !old.Live() {
			continue
		}
		a := *old
		a.Desired, a.DesiredReason, a.EndTime, a.ModifyTime = model.DesiredStop, reason, now, now
		t.upsertAlloc(&a)
		missing.add(a.Job)
		nodes = append(nodes, a.NodeID)
	}
	return missing.write(t, now), nodes
}
