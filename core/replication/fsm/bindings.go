package fsm

import (
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (a *applier) upsertClusters(c *replication.UpsertClusters) *replication.Refusal {
	return a.storeClusters(c.Clusters)
}

func (a *applier) storeClusters(clusters []*model.Cluster) *replication.Refusal {
	for i, c := range clusters {
		if c == nil || c.ID == "" {
			return replication.Refuse(replication.CodeInvalid, "cluster %d has no id", i)
		}
		old := a.txn.Cluster(c.ID)
		switch {
		case old == nil:
		case c.SecretHash == [32]byte{}:
			c.SecretHash, c.Reported = old.SecretHash, old.Reported
		case c.SecretHash != old.SecretHash && old.SecretHash != [32]byte{}:
			return replication.Refuse(replication.CodeConflict, "cluster %s is registered with another secret: delete it first, if it was set up anew", c.ID)
		}
	}
	evals, err := apply.Clusters(a.txn, a.now, clusters...)
	if err != nil {
		return replication.Refuse(replication.CodeInvalid, "clusters: %v", err)
	}
	a.addEvals(evals)
	for _, c := range clusters {
		if !c.Down {
			a.clusterRoom(c.ID)
		}
	}
	return nil
}

func (a *applier) changeClusters(c *replication.ChangeClusters) *replication.Refusal {
	changes := c.Changes
	var next []*model.Cluster
	for i := range changes {
		for _, c := range changes[i].Leases {
			if c == nil || c.ID == "" || c.ClusterID != changes[i].ID || !c.IsForeign() {
				return replication.Refuse(replication.CodeInvalid, "cluster %s reports a lease that is not another pool's", changes[i].ID)
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
			apply.Leases(a.txn, c.ID, change.Leases)
		}
		next = append(next, &c)
	}
	return a.storeClusters(next)
}

func (a *applier) deleteCluster(c *replication.DeleteCluster) *replication.Refusal {
	if a.txn.Cluster(c.ID) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no cluster %s", c.ID)
	}
	if n := len(a.txn.ClusterAssignments(c.ID)); n > 0 && !c.Force {
		return replication.Refuse(replication.CodeConflict, "cluster %s has %d assignments: stop the bindings that are there, or force it", c.ID, n)
	}
	a.addEvals(apply.ClusterDelete(a.txn, a.now, c.ID))
	return nil
}

// upsertBinding stores another version where the specification changed. Where it
// did not the binding stays, and is looked at again.
func (a *applier) upsertBinding(c *replication.UpsertBinding) *replication.Refusal {
	b := c.Binding
	if b == nil {
		return replication.Refuse(replication.CodeInvalid, "a binding without a binding")
	}
	if problems := b.Validate(); len(problems) > 0 {
		return replication.Refuse(replication.CodeInvalid, "binding %s: %s", b.Key(), strings.Join(problems, "; "))
	}
	if c.Eval != nil && (c.Eval.JobKey() != b.Key() || c.Eval.Type != model.JobBinding) {
		return replication.Refuse(replication.CodeInvalid, "evaluation %s of %s %s comes with binding %s", c.Eval.ID, c.Eval.Type, c.Eval.JobKey(), b.Key())
	}
	if b.SubmitTime == 0 {
		b.SubmitTime = a.now
	}
	b.Version, b.CreateIndex, b.ModifyIndex = 0, 0, 0
	old := a.txn.Binding(b.Key())
	if r := bindingHolds(c.Check, old, b.Key()); r != nil {
		return r
	}
	if old != nil {
		b.Version, b.SubmitTime = old.Version, old.SubmitTime
	}
	if old != nil && codec.SameBinding(old, b) {
		a.txn.MarkDirty(b.Key())
	} else {
		if old != nil {
			b.Version++
		}
		if err := a.txn.UpsertBinding(b); err != nil {
			return replication.Refuse(replication.CodeInvalid, "binding %s: %v", b.Key(), err)
		}
		a.addEvals(apply.QueuePriority(a.txn, a.now, b))
	}
	if c.Eval == nil {
		return nil
	}
	return a.storeEvals([]*model.Evaluation{c.Eval})
}

// bindingHolds is whether the check of a binding's index holds.
func bindingHolds(check *uint64, old *model.Binding, key model.JobKey) *replication.Refusal {
	if old == nil {
		return holdsAt(check, "binding", key, 0)
	}
	return holdsAt(check, "binding", key, old.ModifyIndex)
}

func (a *applier) stopBinding(c *replication.StopBinding) *replication.Refusal {
	old := a.txn.Binding(c.Key)
	if old == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no binding %s", c.Key)
	}
	if r := bindingHolds(c.Check, old, c.Key); r != nil {
		return r
	}
	stopped := *old
	stopped.Stopped = true
	return a.upsertBinding(&replication.UpsertBinding{Binding: &stopped, Eval: c.Eval})
}

func (a *applier) deleteBinding(c *replication.DeleteBinding) *replication.Refusal {
	key := c.Key
	if a.txn.Binding(key) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no binding %s", key)
	}
	assigned := a.txn.BindingAssignments(key)
	for _, x := range assigned {
		if x.HoldsCapacity() {
			return replication.Refuse(replication.CodeConflict, "binding %s has replicas on cluster %s: stop it first", key, x.ClusterID)
		}
	}
	for _, id := range a.txn.ClaimIDs(key) {
		a.clusterRoom(a.txn.Claim(id).ClusterID)
	}
	for _, x := range assigned {
		a.txn.DeleteAssignment(x.ID)
	}
	a.txn.DeleteBinding(key)
	return nil
}

func (a *applier) endAssignments(c *replication.EndAssignments) *replication.Refusal {
	for _, cluster := range apply.AssignmentEnds(a.txn, a.now, c.IDs...) {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) updateAssignments(c *replication.UpdateAssignments) *replication.Refusal {
	evals, clusters := apply.AssignmentUpdates(a.txn, a.now, c.Updates)
	a.addEvals(evals)
	for _, cluster := range clusters {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) stopAssignments(c *replication.StopAssignments) *replication.Refusal {
	evals, clusters := apply.AssignmentStops(a.txn, a.now, c.IDs, c.Reason)
	a.addEvals(evals)
	for _, cluster := range clusters {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) clusterRoom(id string) {
	a.result.Freed = append(a.result.Freed, model.ClusterLocation(id))
}

// noticeBindings notes the clusters on which a group may make room.
func (a *applier) noticeBindings(key model.JobKey, g *model.CommitGroup) {
	for _, id := range g.ReleasedClaims {
		if c := a.txn.Claim(id); c != nil && c.Claimant == key {
			a.clusterRoom(c.ClusterID)
		}
	}
	for i := range g.Withdrawals { // it has yet to go, and others may plan with its room
		if x := a.txn.Assignment(g.Withdrawals[i].AssignmentID); x != nil {
			a.clusterRoom(x.ClusterID)
		}
	}
	for _, x := range g.Assignments {
		old := a.txn.Assignment(x.ID)
		if old != nil && old.Replicas > x.Replicas || a.txn.HasClaimOn(x.ClusterID, key) { // which it gives up
			a.clusterRoom(x.ClusterID)
		}
	}
}
