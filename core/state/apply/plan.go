package apply

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Plan writes the commit groups of a plan that the planner accepted. It returns a
// follow-up evaluation for every other job or binding that loses an allocation,
// ascending by key. The plan is not changed: the state stores copies.
//
// If a node or cluster that a group places on is no longer eligible at this index, the
// whole group is dropped and its job marked dirty. It verifies nothing else: the
// planner has done so on the state before this index, and dropping a group is the only
// correction that all servers make in the same way.
func Plan(t *state.Txn, now int64, plan *model.Plan, committed []int) []*model.Evaluation {
	lost := newFollowUps(model.TriggerPreemption, plan.EvalID)
	for _, i := range committed {
		g := &plan.Groups[i]
		if !targetsEligible(&t.View, g) {
			t.JobWriter().MarkDirty(plan.Job)
			continue
		}
		// Removals come first: placements of the group rely on what they free.
		for _, s := range g.Stops {
			if job := stop(t, now, s); job != nil && s.MovedTo != "" {
				// An evaluation of the job that is in progress may have read the state
				// before the move: its plan would stop the wrong allocation.
				t.JobWriter().MarkDirty(job.Key())
			}
		}
		for _, e := range g.Evictions {
			if victim := evict(t.AllocWriter(), now, e); victim != nil && victim.Key() != plan.Job {
				lost.addJob(victim)
			}
		}
		for _, a := range g.Updates {
			updateInPlace(t.AllocWriter(), now, a)
		}
		for _, a := range g.Placements {
			place(t, now, a)
		}
		for _, c := range g.Claims {
			claim := *c
			t.ClaimWriter().Upsert(&claim)
		}
		if g.HasBindingChanges() || len(g.Claims) > 0 {
			bindingGroup(t, now, plan, g, lost)
		}
	}
	return lost.write(t, now)
}

// targetsEligible reports whether every node and cluster on which the group needs
// capacity accepts new allocations. It returns false if an allocation has no
// group, because its version of the job no longer exists, or if an allocation to be moved
// has ended: its second half would repeat work that is done.
func targetsEligible(v *state.View, g *model.CommitGroup) bool {
	eligible := func(nodeID string) bool {
		n := v.Node(nodeID)
		return n != nil && n.IsEligible()
	}
	for _, a := range g.Placements {
		if a.Group == nil || !eligible(a.NodeID) {
			return false
		}
	}
	for _, a := range g.Updates {
		if a.Group == nil {
			return false
		}
	}
	for i := range g.Stops {
		if s := &g.Stops[i]; s.MovedTo != "" {
			if a := v.Alloc(s.AllocID); a == nil || !a.Live() {
				return false
			}
		}
	}
	for _, c := range g.Claims {
		if c.ClusterID == "" && !eligible(c.NodeID) {
			return false
		}
	}
	return clustersEligible(v, g)
}

// stop ends an allocation, or records that a stopping one is lost. Its EndTime is that
// of the first decision. It returns the allocation's job, or nil if there is no such
// allocation, or if it has ended: one that has completed must still count as done.
func stop(t *state.Txn, now int64, s model.Stop) *model.Job {
	allocs := t.AllocWriter()
	old := allocs.Alloc(s.AllocID)
	if old == nil || old.Client.Terminal() && t.Meta().Version >= RerunFrom {
		return nil
	}
	a := *old
	if a.Desired == model.DesiredRun {
		a.Desired, a.DesiredReason, a.EndTime, a.MovedTo = model.DesiredStop, s.Reason, now, s.MovedTo
	}
	a.ModifyTime = now
	// A victim on a lost node remains a victim, and has ended.
	if s.Lost && !a.Client.Terminal() {
		a.Client = model.ClientLost
	}
	allocs.Upsert(&a)
	return a.Job
}

// evict returns the victim's job, or nil if the victim had ended or was already
// stopping. A victim that ended before its eviction was applied does not change.
func evict(allocs state.AllocWriter, now int64, e model.Eviction) *model.Job {
	old := allocs.Alloc(e.AllocID)
	if old == nil || !old.Live() {
		return nil
	}
	a := *old
	a.Desired, a.DesiredReason, a.PreemptedBy = model.DesiredEvict, "preempted by "+e.By, e.By
	a.EndTime, a.ModifyTime = now, now
	allocs.Upsert(&a)
	return a.Job
}

// updateInPlace moves an allocation to another version of its job. It retains
// what the node reported since the plan was made.
func updateInPlace(allocs state.AllocWriter, now int64, u *model.Allocation) {
	old := allocs.Alloc(u.ID)
	if old == nil || !old.Live() {
		return
	}
	a := *old
	a.Job, a.Group, a.EvalID, a.Devices = u.Job, u.Group, u.EvalID, u.Devices
	a.ModifyTime = now
	allocs.Upsert(&a)
}

// place stores a new allocation and releases the claims by which its job reserved
// capacity on the node.
func place(t *state.Txn, now int64, p *model.Allocation) {
	a := *p
	a.CreateTime, a.ModifyTime = now, now
	t.AllocWriter().Upsert(&a)
	releaseNodeClaims(t.ClaimWriter(), a.Job.Key(), a.NodeID)
}

// releaseNodeClaims deletes the claims of a job on a node, since the job is placed
// there now.
func releaseNodeClaims(claims state.ClaimWriter, claimant model.JobKey, nodeID string) {
	pos, ok := claims.Position(nodeID)
	if !ok {
		return
	}
	chunk, i := claims.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	// Nearly all nodes have no claims.
	if chunk.HasClaims()>>i&1 == 0 {
		return
	}
	// Each deletion replaces the list, so the IDs are collected first.
	var ids []string
	for _, c := range chunk.Claims(i) {
		if c.Claimant == claimant {
			ids = append(ids, c.ID)
		}
	}
	for _, id := range ids {
		claims.Delete(id)
	}
}
