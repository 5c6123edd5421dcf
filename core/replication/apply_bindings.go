package replication

import (
	"bytes"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

func (a *applier) upsertClusters(clusters []*model.Cluster) *Refusal {
	for i, c := range clusters {
		if c == nil || c.ID == "" {
			return refuse(CodeInvalid, "cluster %d has no id", i)
		}
	}
	evals, err := a.txn.ApplyClusters(a.now, clusters...)
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
	}
	if c.Eval == nil {
		return nil
	}
	return a.writeEvals([]*model.Evaluation{c.Eval})
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
		if x.Holds() {
			return refuse(CodeConflict, "binding %s has replicas on cluster %s: stop it first", key, x.ClusterID)
		}
	}
	for _, id := range a.txn.ClaimsOf(key) {
		a.clusterRoom(a.txn.Claim(id).ClusterID)
	}
	for _, x := range assigned {
		a.txn.DeleteAssignment(x.ID)
	}
	a.txn.DeleteBinding(key)
	return nil
}

func (a *applier) endAssignments(ids []string) *Refusal {
	for _, cluster := range a.txn.ApplyAssignmentEnds(a.now, ids...) {
		a.clusterRoom(cluster)
	}
	return nil
}

func (a *applier) clusterRoom(id string) {
	a.result.Rooms = append(a.result.Rooms, model.ClusterPlace(id))
}

// noticeBindings notes the clusters on which a group may make room.
func (a *applier) noticeBindings(key model.JobKey, g *model.CommitGroup) {
	for _, id := range g.Release {
		if c := a.txn.Claim(id); c != nil && c.Claimant == key {
			a.clusterRoom(c.ClusterID)
		}
	}
	for i := range g.Withdraw { // it has yet to go, and others may plan with its room
		if x := a.txn.Assignment(g.Withdraw[i].AssignmentID); x != nil {
			a.clusterRoom(x.ClusterID)
		}
	}
	for _, x := range g.Assign { // it may give up a claim, or replicas
		a.clusterRoom(x.ClusterID)
	}
}
