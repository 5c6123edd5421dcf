package apply

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Clusters registers member clusters, or new versions of them. If the attributes or the
// status of a cluster change, it derives at most one evaluation for each binding that
// may be placed there now and has replicas missing, or that is there and no longer
// feasible. More capacity alone derives none: blocked evaluations are unblocked by it.
// The first clusters derive one for every pending binding, with the explanation "no
// clusters" until then. Nothing is written if it fails. It costs a walk over all
// bindings, but only if attributes or status changed: a heartbeat that reports the same
// ends before it.
func Clusters(t *state.Txn, now int64, clusters ...*model.Cluster) ([]*model.Evaluation, error) {
	rs := make([]model.Resources, len(clusters))
	for i, c := range clusters {
		rs[i] = c.Capacity
	}
	if err := t.RequireDimensions(rs...); err != nil {
		return nil, err
	}
	affected := newFollowUps(model.TriggerNodeUpdate, "")
	first := !hasClusters(&t.View)
	var changed []*model.Cluster
	for _, c := range clusters {
		old := t.Cluster(c.ID)
		if err := t.ClusterWriter().Upsert(c); err != nil {
			return nil, err
		}
		if old != nil && old.Down == c.Down && maps.Equal(old.Attributes, c.Attributes) {
			continue
		}
		changed = append(changed, c)
		for _, a := range t.ClusterAssignments(c.ID) {
			if b := t.Binding(a.Binding); b != nil && a.Live() && !b.IsFeasible(c) {
				affected.addBinding(b)
			}
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	for b := range t.Bindings() {
		if !b.Stopped && !isFullyPlaced(&t.View, b) && (first || feasibleOnAny(b, changed)) {
			affected.addBinding(b)
		}
	}
	return affected.write(t, now), nil
}

func hasClusters(v *state.View) bool {
	for range v.Clusters() {
		return true
	}
	return false
}

// Leases replaces the claims by which a cluster reserves capacity for other pools. The
// member's report is complete: a lease that it does not list has ended.
func Leases(claims state.ClaimWriter, cluster string, leases []*model.Claim) {
	for _, c := range claims.ClusterClaims(cluster) { // each deletion replaces the list
		if c.IsForeign() {
			claims.Delete(c.ID)
		}
	}
	for _, c := range leases {
		claims.Upsert(c)
	}
}

// ClusterDelete deletes a member cluster, if it exists, with its claims and
// assignments. It returns at most one evaluation for each binding that loses a claim or
// replicas, ascending by binding. The replicas themselves may still run there, outside
// the control of the pool.
func ClusterDelete(t *state.Txn, now int64, id string) []*model.Evaluation {
	lost := newFollowUps(model.TriggerNodeUpdate, "")
	for _, c := range t.ClusterClaims(id) { // each deletion replaces the list
		if b := t.Binding(c.Claimant); b != nil {
			lost.addBinding(b)
		}
		t.ClaimWriter().Delete(c.ID)
	}
	for _, a := range t.ClusterAssignments(id) {
		if b := t.Binding(a.Binding); b != nil && a.Live() {
			lost.addBinding(b)
		}
		t.AssignmentWriter().Delete(a.ID)
	}
	t.ClusterWriter().Delete(id)
	return lost.write(t, now)
}

// feasibleOnAny reports whether some of the clusters is up and the binding's
// constraints allow it. Capacity does not matter here.
func feasibleOnAny(b *model.Binding, clusters []*model.Cluster) bool {
	return slices.ContainsFunc(clusters, func(c *model.Cluster) bool { return !c.Down && b.IsFeasible(c) })
}

// isFullyPlaced reports whether all replicas of a divided binding are placed. A
// duplicated binding is never fully placed: each new cluster adds replicas.
func isFullyPlaced(v *state.View, b *model.Binding) bool {
	missing := b.Replicas
	for _, a := range v.BindingAssignments(b.Key()) {
		if a.CountsAsPlaced() {
			missing -= a.Replicas
		}
	}
	return missing <= 0 && !b.Duplicated
}

// clustersEligible reports whether every cluster on which the group needs capacity
// accepts new assignments.
func clustersEligible(v *state.View, g *model.CommitGroup) bool {
	eligible := func(id string) bool {
		c := v.Cluster(id)
		return c != nil && !c.Down
	}
	for _, a := range g.Assignments {
		if !eligible(a.ClusterID) {
			return false
		}
	}
	for _, c := range g.Claims {
		if c.ClusterID != "" && !eligible(c.ClusterID) {
			return false
		}
	}
	return true
}

// QueuePriority updates the pending evaluations of a binding to its priority, and
// returns those that changed, ascending by ID. Final evaluations keep the priority with
// which they were processed.
func QueuePriority(evals state.EvalWriter, now int64, b *model.Binding) (changed []*model.Evaluation) {
	priority := evals.Config().QueuePriority(b)
	for _, old := range evals.PendingEvals(b.Key()) {
		if old.Priority == priority {
			continue
		}
		e := *old
		e.ModifyTime = now
		evals.Upsert(&e) // sets the priority
		changed = append(changed, &e)
	}
	return changed
}

// QueuePriorities calls QueuePriority for all bindings, after a change of the
// scheduler configuration.
func QueuePriorities(evals state.EvalWriter, now int64) (changed []*model.Evaluation) {
	for b := range evals.Bindings() {
		changed = append(changed, QueuePriority(evals, now, b)...)
	}
	return changed
}
