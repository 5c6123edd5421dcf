package replication

import (
	"bytes"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (a *applier) upsertClusters(clusters []*model.Cluster) *Refusal {
	for i, c := range clusters {
		if c == nil || c.ID == "" {
			return refuse(CodeInvalid, "cluster %d has no id", i)
		}
		old := a.txn.Cluster(c.ID)
		switch {
		case old == nil:
		case c.SecretHash == [32]byte{}:
			c.SecretHash, c.Reported = old.SecretHash, old.Reported
		case c.SecretHash != old.SecretHash && old.SecretHash != [32]byte{}:
			return refuse(CodeConflict, "cluster %s is registered with another secret: delete it first, if it was set up anew", c.ID)
		}
	}
	evals, err := apply.Clusters(a.txn, a.now, clusters...)
	if err != nil {
		return refuse(CodeInvalid, "clusters: %v", err)
	}
	a.derived(evals)
	for _, c := range clusters {
		if !c.Down {
			a.clusterRoom(c.ID)
		}
	}
	return nil
}

func (a *applier) changeClusters(changes []model.ClusterChange) *Refusal {
	var next []*model.Cluster
	for i := range changes {
		for _, c := range changes[i].Leases {
			if c == nil || c.ID == "" || c.ClusterID != changes[i].ID || !c.IsForeign() {
				return refuse(CodeInvalid, "cluster %s reports a lease that is not another pool's", changes[i].ID)
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
	return a.upsertClusters(next)
}

func (a *applier) deleteCluster(c *DeleteCluster) *Refusal {
	if a.txn.Cluster(c.ID) == nil {
		return refuse(CodeNotFound, "there is no cluster %s", c.ID)
	}
	if n := len(a.txn.ClusterAssignments(c.ID)); n > 0 && !c.Force {
		return refuse(CodeConflict, "cluster %s has %d assignments: stop the bindings that are there, or force it", c.ID, n)
	}
	a.derived(apply.ClusterDelete(a.txn, a.now, c.ID))
	return nil
}

// upsertBinding stores another version where the specification changed. Where it
// did not the binding stays, and is looked at again.
func (a *applier) upsertBinding(c *UpsertBinding) *Refusal {
	b := c.Binding
	if b == nil {
		return refuse(CodeInvalid, "a binding without a binding")
	}
	if problems := b.Validate(); len(problems) > 0 {
		return refuse(CodeInvalid, "binding %s: %s", b.Key(), strings.Join(problems, "; "))
	}
	if c.Eval != nil && (c.Eval.JobKey() != b.Key() || c.Eval.Type != model.JobBinding) {
		return refuse(CodeInvalid, "evaluation %s of %s %s comes with binding %s", c.Eval.ID, c.Eval.Type, c.Eval.JobKey(), b.Key())
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
	if old != nil && sameBinding(old, b) {
		a.txn.MarkDirty(b.Key())
	} else {
		if old != nil {
			b.Version++
		}
		if err := a.txn.UpsertBinding(b); err != nil {
			return refuse(CodeInvalid, "binding %s: %v", b.Key(), err)
		}
		a.derived(apply.QueuePriority(a.txn, a.now, b))
	}
	if c.Eval == nil {
		return nil
	}
	return a.writeEvals([]*model.Evaluation{c.Eval})
}

// bindingHolds is whether the check of a binding's index holds.
func bindingHolds(check *uint64, old *model.Binding, key model.JobKey) *Refusal {
	if old == nil {
		return holdsAt(check, "binding", key, 0)
	}
	return holdsAt(check, "binding", key, old.ModifyIndex)
}

func (a *applier) stopBinding(c *StopBinding) *Refusal {
	old := a.txn.Binding(c.Key)
	if old == nil {
		return refuse(CodeNotFound, "there is no binding %s", c.Key)
	}
	if r := bindingHolds(c.Check, old, c.Key); r != nil {
		return r
	}
	stopped := *old
	stopped.Stopped = true
	return a.upsertBinding(&UpsertBinding{Binding: &stopped, Eval: c.Eval})
}

// sameBinding is whether two bindings want the same.
func sameBinding(x, y *model.Binding) bool {
	var w writer
	p, q := w.binding(x), w.binding(y)
	p.CreateIndex, p.ModifyIndex = q.CreateIndex, q.ModifyIndex
	return bytes.Equal(mustMarshal(sorted, p), mustMarshal(sorted, q))
}

func (a *applier) deleteBinding(key model.JobKey) *Refusal {
	if a.txn.Binding(key) == nil {
		return refuse(CodeNotFound, "there is no binding %s", key)
	}
	assigned := a.txn.BindingAssignments(key)
	for _, x := range assigned {
		if x.HoldsCapacity() {
			return refuse(CodeConflict, "binding %s has replicas on cluster %s: stop it first", key, x.ClusterID)
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

func (a *applier) endAssignments(ids []string) *Refusal {
	for _, cluster := range apply.AssignmentEnds(a.txn, a.now, ids...) {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) updateAssignments(updates []apply.AssignmentUpdate) *Refusal {
	evals, clusters := apply.AssignmentUpdates(a.txn, a.now, updates)
	a.derived(evals)
	for _, cluster := range clusters {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) stopAssignments(c *StopAssignments) *Refusal {
	evals, clusters := apply.AssignmentStops(a.txn, a.now, c.IDs, c.Reason)
	a.derived(evals)
	for _, cluster := range clusters {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) clusterRoom(id string) {
	a.result.Rooms = append(a.result.Rooms, model.ClusterLocation(id))
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
