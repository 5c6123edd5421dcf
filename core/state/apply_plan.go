package state

import "github.com/cede-scheduler/cede/core/model"

// ApplyPlan writes the commit groups of a plan that the planner accepted, with
// a follow-up evaluation for every other job or binding that loses something by it.
// It returns those evaluations, ascending by job. The plan stays as it is: what
// is stored are copies.
//
// A group that wants room on a node that takes no work at this index is
// dropped whole, and its job marked dirty: the node went away between the
// planner's check and this entry.
func (t *Txn) ApplyPlan(now int64, plan *model.Plan, committed []int) []*model.Evaluation {
	lost := newFollowUps(model.TriggerPreemption, plan.EvalID)
	for _, i := range committed {
		g := &plan.Groups[i]
		if !t.takesWork(g) {
			t.MarkDirty(plan.Job)
			continue
		}
		for _, s := range g.Stops {
			t.applyStop(now, s)
		}
		for _, e := range g.Evictions {
			if victim := t.applyEviction(now, e); victim != nil && victim.Key() != plan.Job {
				lost.add(victim)
			}
		}
		for _, a := range g.Updates {
			t.applyUpdate(now, a)
		}
		for _, a := range g.Placements {
			t.applyPlacement(now, a)
		}
		for _, c := range g.Claims {
			claim := *c
			t.UpsertClaim(&claim)
		}
		if g.HasBindingChanges() || len(g.Claims) > 0 {
			t.applyBindings(now, plan, g, lost)
		}
	}
	return lost.write(t, now)
}

func (t *Txn) takesWork(g *model.CommitGroup) bool {
	ready := func(nodeID string) bool {
		n := t.Node(nodeID)
		return n != nil && n.IsEligible()
	}
	for _, a := range g.Placements {
		if !ready(a.NodeID) {
			return false
		}
	}
	for _, c := range g.Claims {
		if c.ClusterID == "" && !ready(c.NodeID) {
			return false
		}
	}
	return t.clustersTakeWork(g)
}

func (t *Txn) applyStop(now int64, s model.Stop) {
	old := t.Alloc(s.AllocID)
	if old == nil {
		return
	}
	a := *old
	if a.Desired == model.DesiredRun {
		a.Desired, a.DesiredReason, a.EndTime = model.DesiredStop, s.Reason, now
	}
	a.ModifyTime = now
	// A victim whose node is lost remains a victim, and is gone.
	if s.Lost && !a.Client.Terminal() {
		a.Client = model.ClientLost
	}
	t.upsertAlloc(&a)
}

// applyEviction returns the victim's job; nil when the victim had ended or was
// no longer wanted.
func (t *Txn) applyEviction(now int64, e model.Eviction) *model.Job {
	old := t.Alloc(e.AllocID)
	if old == nil || !old.Live() {
		return nil
	}
	a := *old
	a.Desired, a.DesiredReason, a.PreemptedBy = model.DesiredEvict, "preempted by "+e.By, e.By
	a.EndTime, a.ModifyTime = now, now
	t.upsertAlloc(&a)
	return a.Job
}

// applyUpdate moves an allocation to another version of its job. All that its
// node reported since the plan was made stays.
func (t *Txn) applyUpdate(now int64, u *model.Allocation) {
	old := t.Alloc(u.ID)
	if old == nil || !old.Live() {
		return
	}
	a := *old
	a.Job, a.Group, a.EvalID, a.Devices = u.Job, u.Group, u.EvalID, u.Devices
	a.ModifyTime = now
	t.upsertAlloc(&a)
}

func (t *Txn) applyPlacement(now int64, p *model.Allocation) {
	a := *p
	a.CreateTime, a.ModifyTime = now, now
	t.upsertAlloc(&a)
	t.releaseClaims(a.Job.Key(), a.NodeID)
}

// releaseClaims deletes what a job had reserved on a node: it is placed there.
func (t *Txn) releaseClaims(claimant model.JobKey, nodeID string) {
	pos, ok := t.place(nodeID)
	if !ok {
		return
	}
	var ids []string
	for _, c := range t.chunks[pos/ChunkSize].Claims(int(pos % ChunkSize)) {
		if c.Claimant == claimant {
			ids = append(ids, c.ID)
		}
	}
	for _, id := range ids {
		t.DeleteClaim(id)
	}
}
