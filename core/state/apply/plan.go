package apply

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Plan writes the commit groups of a plan that the planner accepted. It returns a
// follow-up evaluation for every other job or binding that loses an allocation,
// ascending by key. The plan is not changed: the state stores copies.
//
// If a node or cluster that a group places on is no longer eligible at this index,
// the whole group is dropped and its job marked dirty.
func Plan(t *state.Txn, now int64, plan *model.Plan, committed []int) []*model.Evaluation {
	lost := newFollowUps(model.TriggerPreemption, plan.EvalID)
	for _, i := range committed {
		g := &plan.Groups[i]
		if !targetsEligible(t, g) {
			t.MarkDirty(plan.Job)
			continue
		}
		// Removals come first: placements of the group rely on what they free.
		for _, s := range g.Stops {
			stop(t, now, s)
		}
		for _, e := range g.Evictions {
			if victim := evict(t, now, e); victim != nil && victim.Key() != plan.Job {
				lost.addJob(victim)
			}
		}
		for _, a := range g.Updates {
			updateInPlace(t, now, a)
		}
		for _, a := range g.Placements {
			place(t, now, a)
		}
		for _, c := range g.Claims {
			claim := *c
			t.UpsertClaim(&claim)
		}
		if g.HasBindingChanges() || len(g.Claims) > 0 {
			bindingGroup(t, now, plan, g, lost)
		}
	}
	return lost.write(t, now)
}

// targetsEligible reports whether every node and cluster on which the group needs
// capacity accepts new allocations. It returns false if an allocation has no
// group, because its version of the job no longer exists.
func targetsEligible(t *state.Txn, g *model.CommitGroup) bool {
	eligible := func(nodeID string) bool {
		n := t.Node(nodeID)
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
	for _, c := range g.Claims {
		if c.ClusterID == "" && !eligible(c.NodeID) {
			return false
		}
	}
	return clustersEligible(t, g)
}

func stop(t *state.Txn, now int64, s model.Stop) {
	old := t.Alloc(s.AllocID)
	if old == nil {
		return
	}
	a := *old
	if a.Desired == model.DesiredRun {
		a.Desired, a.DesiredReason, a.EndTime = model.DesiredStop, s.Reason, now
	}
	a.ModifyTime = now
	// A victim on a lost node remains a victim, and has ended.
	if s.Lost && !a.Client.Terminal() {
		a.Client = model.ClientLost
	}
	t.UpsertAllocs(&a)
}

// evict returns the victim's job, or nil if the victim had ended or was already
// stopping.
func evict(t *state.Txn, now int64, e model.Eviction) *model.Job {
	old := t.Alloc(e.AllocID)
	if old == nil || !old.Live() {
		return nil
	}
	a := *old
	a.Desired, a.DesiredReason, a.PreemptedBy = model.DesiredEvict, "preempted by "+e.By, e.By
	a.EndTime, a.ModifyTime = now, now
	t.UpsertAllocs(&a)
	return a.Job
}

// updateInPlace moves an allocation to another version of its job. It retains
// what the node reported since the plan was made.
func updateInPlace(t *state.Txn, now int64, u *model.Allocation) {
	old := t.Alloc(u.ID)
	if old == nil || !old.Live() {
		return
	}
	a := *old
	a.Job, a.Group, a.EvalID, a.Devices = u.Job, u.Group, u.EvalID, u.Devices
	a.ModifyTime = now
	t.UpsertAllocs(&a)
}

func place(t *state.Txn, now int64, p *model.Allocation) {
	a := *p
	a.CreateTime, a.ModifyTime = now, now
	t.UpsertAllocs(&a)
	releaseNodeClaims(t, a.Job.Key(), a.NodeID)
}

// releaseNodeClaims deletes the claims of a job on a node, since the job is placed
// there now.
func releaseNodeClaims(t *state.Txn, claimant model.JobKey, nodeID string) {
	pos, ok := t.Position(nodeID)
	if !ok {
		return
	}
	chunk, i := t.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
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
		t.DeleteClaim(id)
	}
}
