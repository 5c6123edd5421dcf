package state

import (
	"maps"

	"github.com/cede-scheduler/cede/core/model"
)

// ApplyClusters registers member clusters, or new versions of them. What a
// cluster is says who may be there: where that changes, there is at most one
// evaluation for each binding that may go to it now and does not have all that it
// wants, or is there and may no longer be. More room alone makes none: those who
// wait for it are woken by it. The first clusters of all make one for everybody who
// waits, so that nobody goes on saying that there are none. Nothing is written when
// it fails.
func (t *Txn) ApplyClusters(now int64, clusters ...*model.Cluster) ([]*model.Evaluation, error) {
	rs := make([]model.Resources, len(clusters))
	for i, c := range clusters {
		rs[i] = c.Capacity
	}
	if err := t.grow(rs...); err != nil {
		return nil, err
	}
	affected := newFollowUps(model.TriggerNodeUpdate, "")
	first := !t.hasClusters()
	var others []*model.Cluster
	for _, c := range clusters {
		old := t.Cluster(c.ID)
		if err := t.UpsertCluster(c); err != nil {
			return nil, err
		}
		if old != nil && old.Down == c.Down && maps.Equal(old.Attributes, c.Attributes) {
			continue
		}
		others = append(others, c)
		for _, a := range t.ClusterAssignments(c.ID) {
			if b := t.Binding(a.Binding); b != nil && a.Live() && !b.IsFeasible(c) {
				affected.addBinding(b)
			}
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	for b := range t.Bindings() {
		if !b.Stopped && !t.bound(b) && (first || admitsAny(b, others)) {
			affected.addBinding(b)
		}
	}
	return affected.write(t, now), nil
}

func (v *View) hasClusters() bool {
	for range v.Clusters() {
		return true
	}
	return false
}

// ApplyLeases replaces what a cluster keeps for other pools by claims.
func (t *Txn) ApplyLeases(cluster string, leases []*model.Claim) {
	for _, c := range t.ClusterClaims(cluster) { // each deletion makes another list
		if c.IsForeign() {
			t.DeleteClaim(c.ID)
		}
	}
	for _, c := range leases {
		t.UpsertClaim(c)
	}
}

// ApplyClusterDelete forgets a member cluster, if it is there, with the claims on
// it and what holds room there. There is at most one evaluation for each binding
// that loses something by it: they are returned, ascending by binding.
func (t *Txn) ApplyClusterDelete(now int64, id string) []*model.Evaluation {
	lost := newFollowUps(model.TriggerNodeUpdate, "")
	for _, c := range t.ClusterClaims(id) { // each deletion makes another list
		if b := t.Binding(c.Claimant); b != nil {
			lost.addBinding(b)
		}
		t.DeleteClaim(c.ID)
	}
	for _, a := range t.ClusterAssignments(id) {
		if b := t.Binding(a.Binding); b != nil && a.Live() {
			lost.addBinding(b)
		}
		t.DeleteAssignment(a.ID)
	}
	t.DeleteCluster(id)
	return lost.write(t, now)
}

func admitsAny(b *model.Binding, clusters []*model.Cluster) bool {
	for _, c := range clusters {
		if !c.Down && b.IsFeasible(c) {
			return true
		}
	}
	return false
}

// bound is whether a binding has all the replicas that it wants divided. What is
// duplicated wants more with every cluster.
func (t *Txn) bound(b *model.Binding) bool {
	missing := b.Replicas
	for _, a := range t.BindingAssignments(b.Key()) {
		if a.CountsAsPlaced() {
			missing -= a.Replicas
		}
	}
	return missing <= 0 && !b.Duplicated
}

// applyBindings writes what a commit group does to bindings, behind its other
// parts.
func (t *Txn) applyBindings(now int64, plan *model.Plan, g *model.CommitGroup, lost *followUps) {
	for i := range g.Withdrawals {
		w := &g.Withdrawals[i]
		old := t.Assignment(w.AssignmentID)
		if old == nil || !old.Live() {
			if b := t.Binding(plan.Job); b != nil && old != nil && old.CountsAsPlaced() && w.By == "" && len(g.Assignments) > 0 {
				lost.addBinding(b) // it did its work meanwhile, so what is assigned in its place may be too much
			}
			continue
		}
		if w.Remaining > 0 {
			t.shrink(now, old, w)
			if b := t.Binding(old.Binding); b != nil {
				lost.addBinding(b)
			}
			continue
		}
		a := *old
		a.Desired, a.DesiredReason = model.DesiredStop, w.Reason
		if w.By != "" {
			a.Desired, a.DesiredReason = model.DesiredEvict, "preempted by "+w.By
			a.PreemptedBy, a.PolicyVersion = w.By, w.Policy
		}
		a.EndTime = now
		t.UpsertAssignment(&a)
		if b := t.Binding(a.Binding); b != nil && a.Binding != plan.Job {
			lost.addBinding(b)
		}
	}
	for _, id := range g.ReleasedClaims {
		if c := t.Claim(id); c != nil && c.Claimant == plan.Job {
			t.DeleteClaim(id)
		}
	}
	t.outrank(plan, g, lost)
	for _, planned := range g.Assignments {
		a := *planned
		t.releaseClaimsOn(a.ClusterID, plan.Job) // it has what it claimed
		if old := t.Assignment(a.ID); old != nil {
			a.CreateTime, a.StartTime = old.CreateTime, old.StartTime
		} else {
			a.CreateTime, a.StartTime = now, now
		}
		t.UpsertAssignment(&a)
	}
}

// shrink takes replicas off an assignment. They hold their room until they are
// gone, as an assignment of their own.
func (t *Txn) shrink(now int64, old *model.Assignment, w *model.Withdrawal) {
	if w.Remaining >= old.Replicas {
		return
	}
	rest, part := *old, *old
	rest.Replicas, part.Replicas = w.Remaining, old.Replicas-w.Remaining
	for d, all := range old.Vec { // a whole number of equal replicas
		rest.Vec[d] = all / int64(old.Replicas) * int64(rest.Replicas)
		part.Vec[d] = all - rest.Vec[d]
	}
	rest.Ready = min(rest.Ready, rest.Replicas)
	part.ID, part.CreateIndex, part.Ready = model.PartID(old.ID, w.By), 0, 0
	part.Desired, part.DesiredReason = model.DesiredEvict, "preempted by "+w.By
	part.PreemptedBy, part.PolicyVersion, part.EndTime = w.By, w.Policy, now
	t.UpsertAssignment(&rest)
	t.UpsertAssignment(&part)
}

// outrank has those looked at again whose claims a plan of a higher priority need
// not heed: what they wait for may never come.
func (t *Txn) outrank(plan *model.Plan, g *model.CommitGroup, lost *followUps) {
	on := func(cluster string) {
		for _, c := range t.ClusterClaims(cluster) {
			if b := t.Binding(c.Claimant); b != nil && c.Claimant != plan.Job && c.Priority < plan.Priority {
				lost.addBinding(b)
			}
		}
	}
	for _, a := range g.Assignments {
		on(a.ClusterID)
	}
	for _, c := range g.Claims {
		on(c.ClusterID)
	}
}

// clustersTakeWork is whether every cluster takes work on which the group wants
// room.
func (v *View) clustersTakeWork(g *model.CommitGroup) bool {
	ready := func(id string) bool {
		c := v.Cluster(id)
		return c != nil && !c.Down
	}
	for _, a := range g.Assignments {
		if !ready(a.ClusterID) {
			return false
		}
	}
	for _, c := range g.Claims {
		if c.ClusterID != "" && !ready(c.ClusterID) {
			return false
		}
	}
	return true
}

// ApplyAssignmentEnds writes that assignments have ended: what was told to stop
// is gone, what was not has done its work. Ids that are not there, or ended
// before, are skipped. It returns the clusters on which there is room by it,
// each once, in the order of ids.
func (t *Txn) ApplyAssignmentEnds(now int64, ids ...string) (clusters []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		old := t.Assignment(id)
		if old == nil || old.Done {
			continue
		}
		if !seen[old.ClusterID] {
			seen[old.ClusterID] = true
			clusters = append(clusters, old.ClusterID)
		}
		if !old.Live() {
			t.DeleteAssignment(id)
			continue
		}
		a := *old
		a.Done, a.EndTime = true, now
		t.UpsertAssignment(&a)
	}
	return clusters
}
