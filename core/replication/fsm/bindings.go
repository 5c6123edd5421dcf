package fsm

import (
	"cmp"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// upsertClusters registers member clusters, by an agent or an operator. Agents send
// their secret, which later reports must match; operators do not have it.
func (a *applier) upsertClusters(c *replication.UpsertClusters) *replication.Refusal {
	return a.storeClusters(c.Clusters)
}

// storeClusters stores clusters. One without a secret comes from an operator, and retains the
// secret and the report of its agent.
func (a *applier) storeClusters(clusters []*model.Cluster) *replication.Refusal {
	for i, c := range clusters {
		if c == nil || c.ID == "" {
			return replication.Refuse(replication.CodeInvalid, "cluster %d: ID is required", i)
		}
		old := a.txn.Cluster(c.ID)
		switch {
		case old == nil:
		case c.SecretHash == [32]byte{}:
			c.SecretHash, c.Reported = old.SecretHash, old.Reported
		case c.SecretHash != old.SecretHash && old.SecretHash != [32]byte{}:
			return replication.Refuse(replication.CodeConflict, "cluster %s is registered with another secret: if it was rebuilt, delete it first", c.ID)
		}
	}
	// Resource names are the only reason to fail.
	evals, err := apply.Clusters(a.txn, a.now, clusters...)
	if err != nil {
		return replication.Refuse(replication.CodeInvalid, "register clusters: %v", err)
	}
	// Blocked bindings are evaluated again on every cluster that is up: its capacity
	// may have grown, or it may have returned.
	a.addEvals(evals)
	for _, c := range clusters {
		if !c.Down {
			a.addFreedCluster(c.ID)
		}
	}
	return nil
}

// changeClusters applies the reports of agents, or missed heartbeats. It skips unknown
// clusters: a cluster may be deleted while a report is in flight. All leases are
// checked before the first change, so that a refused command has no effect. A change
// without Reports affects the status alone: a missed heartbeat reports no capacity.
func (a *applier) changeClusters(c *replication.ChangeClusters) *replication.Refusal {
	changes := c.Changes
	var next []*model.Cluster
	for i := range changes {
		for _, c := range changes[i].Leases {
			if c == nil || c.ID == "" || c.ClusterID != changes[i].ID || !c.IsForeign() {
				return replication.Refuse(replication.CodeInvalid, "cluster %s reports an invalid lease: want a lease of another pool on this cluster", changes[i].ID)
			}
		}
	}
	for i := range changes {
		change := &changes[i]
		old := a.txn.Cluster(change.ID)
		if old == nil {
			continue
		}
		c := *old
		c.Down = change.Down
		if change.Reports {
			c.Reported = change.Reported
			apply.Leases(a.txn.ClaimWriter(), c.ID, change.Leases)
		}
		next = append(next, &c)
	}
	return a.storeClusters(next)
}

// deleteCluster deletes a member cluster. With Force, its assignments are deleted as
// well and their bindings are evaluated again. The agent may register the cluster
// again, with any secret.
func (a *applier) deleteCluster(c *replication.DeleteCluster) *replication.Refusal {
	if a.txn.Cluster(c.ID) == nil {
		return replication.Refuse(replication.CodeNotFound, "cluster %s not found", c.ID)
	}
	if n := len(a.txn.ClusterAssignments(c.ID)); n > 0 && !c.Force {
		return replication.Refuse(replication.CodeConflict, "cluster %s has %d assignments: stop its bindings first, or force the deletion", c.ID, n)
	}
	a.addEvals(apply.ClusterDelete(a.txn, a.now, c.ID))
	return nil
}

// upsertBinding stores a new version if the specification changed. Otherwise the
// binding is unchanged and marked dirty, so that it is evaluated again. The version
// starts at 0 and counts changes of the specification; the submit time is that of the
// first version, because waiting times are measured from it.
func (a *applier) upsertBinding(c *replication.UpsertBinding) *replication.Refusal {
	b := c.Binding
	if b == nil {
		return replication.Refuse(replication.CodeInvalid, "binding is required")
	}
	if problems := b.Validate(); len(problems) > 0 {
		return replication.Refuse(replication.CodeInvalid, "binding %s: %s", b.Key(), strings.Join(problems, "; "))
	}
	if c.Eval != nil && (c.Eval.JobKey() != b.Key() || c.Eval.Type != model.JobBinding) {
		return replication.Refuse(replication.CodeInvalid, "evaluation %s is for %s %s, want binding %s", c.Eval.ID, c.Eval.Type, c.Eval.JobKey(), b.Key())
	}
	b.SubmitTime = cmp.Or(b.SubmitTime, a.now)
	b.Version, b.CreateIndex, b.ModifyIndex = 0, 0, 0
	old := a.txn.Binding(b.Key())
	if r := checkBinding(c.Check, old, b.Key()); r != nil {
		return r
	}
	if old != nil {
		b.Version, b.SubmitTime = old.Version, old.SubmitTime
	}
	if old != nil && codec.SameBinding(old, b) {
		a.txn.JobWriter().MarkDirty(b.Key())
	} else {
		if old != nil {
			b.Version++
		}
		if err := a.txn.BindingWriter().Upsert(b); err != nil {
			return replication.Refuse(replication.CodeInvalid, "binding %s: %v", b.Key(), err)
		}
		a.addEvals(apply.QueuePriority(a.txn.EvalWriter(), a.now, b))
	}
	a.result.ModifyIndex = a.txn.Binding(b.Key()).ModifyIndex
	if c.Eval == nil {
		return nil
	}
	return a.storeEvals([]*model.Evaluation{c.Eval})
}

// checkBinding refuses a command if the binding is not at the index that it requires.
func checkBinding(check *uint64, old *model.Binding, key model.JobKey) *replication.Refusal {
	if old == nil {
		return checkIndex(check, "binding", key, 0)
	}
	return checkIndex(check, "binding", key, old.ModifyIndex)
}

// stopBinding stores the binding as stopped. Its evaluation withdraws the assignments.
// A stopped binding remains registered, with its history, until it is deleted.
func (a *applier) stopBinding(c *replication.StopBinding) *replication.Refusal {
	old := a.txn.Binding(c.Key)
	if old == nil {
		return replication.Refuse(replication.CodeNotFound, "binding %s not found", c.Key)
	}
	if r := checkBinding(c.Check, old, c.Key); r != nil {
		return r
	}
	stopped := *old
	stopped.Stopped = true
	return a.upsertBinding(&replication.UpsertBinding{Binding: &stopped, Eval: c.Eval})
}

// deleteBinding deletes a binding whose assignments hold no capacity. It frees the
// claims, which may unblock others.
func (a *applier) deleteBinding(c *replication.DeleteBinding) *replication.Refusal {
	key := c.Key
	if a.txn.Binding(key) == nil {
		return replication.Refuse(replication.CodeNotFound, "binding %s not found", key)
	}
	assigned := a.txn.BindingAssignments(key)
	for _, x := range assigned {
		if x.HoldsCapacity() {
			return replication.Refuse(replication.CodeConflict, "binding %s has replicas on cluster %s: stop it first", key, x.ClusterID)
		}
	}
	for _, id := range a.txn.ClaimIDs(key) {
		a.addFreedCluster(a.txn.Claim(id).ClusterID)
	}
	for _, x := range assigned {
		a.txn.AssignmentWriter().Delete(x.ID)
	}
	a.txn.BindingWriter().Delete(key)
	return nil
}

// endAssignments records that assignments without an agent have ended by the clock.
func (a *applier) endAssignments(c *replication.EndAssignments) *replication.Refusal {
	for _, cluster := range apply.AssignmentEnds(a.txn.AssignmentWriter(), a.now, c.IDs...) {
		a.addFreedCluster(cluster)
	}
	return nil
}

// updateAssignments applies the reports of an agent on its assignments.
func (a *applier) updateAssignments(c *replication.UpdateAssignments) *replication.Refusal {
	evals, clusters := apply.AssignmentUpdates(a.txn, a.now, c.Updates)
	a.addEvals(evals)
	for _, cluster := range clusters {
		a.addFreedCluster(cluster)
	}
	return nil
}

// stopAssignments stops assignments at an operator's request and evaluates their
// bindings again.
func (a *applier) stopAssignments(c *replication.StopAssignments) *replication.Refusal {
	evals, clusters := apply.AssignmentStops(a.txn, a.now, c.IDs, c.Reason)
	a.addEvals(evals)
	for _, cluster := range clusters {
		a.addFreedCluster(cluster)
	}
	return nil
}

// addFreedCluster adds a cluster on which capacity may have become free to the result.
// The leader offers it to blocked evaluations after the commit. A cluster may be added
// several times. ApplyEntry removes duplicates.
func (a *applier) addFreedCluster(id string) {
	a.result.Freed = append(a.result.Freed, model.ClusterLocation(id))
}

// recordFreedClusters records the clusters on which a commit group may free
// capacity: those of released claims, of withdrawals, of assignments that shrink, and
// of claims that an assignment gives up. It must be called before the group is applied.
func (a *applier) recordFreedClusters(key model.JobKey, g *model.CommitGroup) {
	for _, id := range g.ReleasedClaims {
		if c := a.txn.Claim(id); c != nil && c.Claimant == key {
			a.addFreedCluster(c.ClusterID)
		}
	}
	for i := range g.Withdrawals { // plans may use its capacity before it has ended
		if x := a.txn.Assignment(g.Withdrawals[i].AssignmentID); x != nil {
			a.addFreedCluster(x.ClusterID)
		}
	}
	for _, x := range g.Assignments {
		old := a.txn.Assignment(x.ID)
		if old != nil && old.Replicas > x.Replicas || a.txn.HasClaimOn(x.ClusterID, key) {
			a.addFreedCluster(x.ClusterID)
		}
	}
}
