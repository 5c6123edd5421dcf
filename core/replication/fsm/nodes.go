package fsm

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// registerNodes leaves what operators decided about a node as it is.
func (a *applier) registerNodes(c *replication.RegisterNodes) *replication.Refusal {
	var down []string
	for i, n := range c.Nodes {
		if n == nil || n.ID == "" {
			return replication.Refuse(replication.CodeInvalid, "node %d has no id", i)
		}
		old := a.txn.Node(n.ID)
		if old == nil {
			continue
		}
		if old.SecretHash != n.SecretHash && old.SecretHash != ([32]byte{}) {
			return replication.Refuse(replication.CodeConflict, "node %s is registered with another secret: delete it first, if it was set up anew", n.ID)
		}
		if old.Status == model.NodeDown {
			down = append(down, n.ID)
		}
		n.Drain, n.Ineligible = old.Drain, old.Ineligible
		if set := slices.DeleteFunc(slices.Clone(old.Taints), func(t model.Taint) bool { return !t.Set }); len(set) > 0 {
			n.Taints = model.MergeTaints(n.Taints, set)
		}
	}
	evals, err := apply.Nodes(a.txn, a.now, c.Nodes...)
	if err != nil {
		return replication.Refuse(replication.CodeInvalid, "nodes: %v", err)
	}
	a.addEvals(evals)
	a.result.Returned = a.areUp(down)
	for _, n := range c.Nodes {
		if n.IsEligible() {
			a.result.Freed = append(a.result.Freed, n.ID)
		}
	}
	return nil
}

// downSinceFrom is the version of the cluster since which the state says since when a
// node is down. Groups that want to know cannot be registered before.
const downSinceFrom = 2

func (a *applier) changeNodes(c *replication.ChangeNodes) *replication.Refusal {
	if r := a.areThere(c.IDs); r != nil {
		return r
	}
	down := slices.DeleteFunc(slices.Clone(c.IDs), func(id string) bool {
		n := a.txn.Node(id)
		return n == nil || n.Status != model.NodeDown
	})
	change := c.Change
	if a.txn.Meta().Version < downSinceFrom {
		change = change.WithoutDownTime()
	}
	a.addEvals(apply.NodeStatus(a.txn, a.now, c.IDs, change))
	a.result.Returned = a.areUp(down)
	for _, id := range c.IDs {
		if n := a.txn.Node(id); n != nil && n.IsEligible() && n.ModifyIndex == a.txn.Index() {
			a.result.Freed = append(a.result.Freed, id)
		}
	}
	return nil
}

// areUp is which of these nodes are up now.
func (a *applier) areUp(ids []string) (up []string) {
	for _, id := range ids {
		if n := a.txn.Node(id); n != nil && n.Status == model.NodeReady {
			up = append(up, id)
		}
	}
	return up
}

func (a *applier) deleteNodes(c *replication.DeleteNodes) *replication.Refusal {
	if r := a.areThere(c.IDs); r != nil {
		return r
	}
	a.addEvals(apply.NodeDelete(a.txn, a.now, c.IDs))
	return nil
}

// areThere refuses a single node that is not there. Of many that were chosen by
// the state some may be gone meanwhile, and the rest still counts.
func (a *applier) areThere(ids []string) *replication.Refusal {
	if len(ids) == 1 && a.txn.Node(ids[0]) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no node %s", ids[0])
	}
	return nil
}

func (a *applier) updateAllocs(c *replication.UpdateAllocs) *replication.Refusal {
	for i := range c.Updates {
		if c.Updates[i].Status.Terminal() {
			a.roomOf(c.Updates[i].AllocID)
		}
	}
	a.addEvals(apply.ClientUpdates(a.txn, a.now, c.Updates))
	return nil
}

// over is whether nothing of the allocation will ever run again.
func over(v *state.View, alloc *model.Allocation) bool {
	return alloc.Client.Terminal() || alloc.Desired != model.DesiredRun && v.Node(alloc.NodeID) == nil
}

// collect forgets what is over. A job goes with everything of it; of one that
// stays, work that was done is remembered, since it would be done again.
func (a *applier) collect(c *replication.Collect) *replication.Refusal {
	for _, key := range c.Jobs {
		a.collectJob(key)
	}
	for _, id := range c.Allocs {
		alloc := a.txn.Alloc(id)
		if alloc == nil || !over(&a.txn.View, alloc) {
			continue
		}
		job := a.txn.Job(alloc.Job.Key())
		done := alloc.Client == model.ClientComplete && alloc.Desired == model.DesiredRun
		if job != nil && !job.Stopped && job.Type.Finite() && done {
			continue
		}
		a.txn.DeleteAllocs(id)
	}
	for _, id := range c.Evals {
		if e := a.txn.Eval(id); e != nil && e.Status.Final() {
			a.txn.DeleteEvals(id)
		}
	}
	var gone []string
	for _, id := range c.Nodes {
		n := a.txn.Node(id)
		if n != nil && n.Status == model.NodeDown && len(a.txn.AppendNodeAllocs(nil, id)) == 0 {
			gone = append(gone, id)
		}
	}
	a.addEvals(apply.NodeDelete(a.txn, a.now, gone))
	for _, id := range c.Policies {
		if v := a.txn.PolicyVersion(id); v != nil && !a.playsRole(v) {
			a.forgetVersion(v)
		}
	}
	return nil
}

func (a *applier) collectJob(key model.JobKey) {
	j := a.txn.Job(key)
	if j != nil && !j.Stopped && !j.Type.Finite() {
		return
	}
	allocs, evals := a.txn.AppendJobAllocs(nil, key), a.txn.EvalsOfJob(key)
	for _, alloc := range allocs {
		if !over(&a.txn.View, alloc) {
			return
		}
	}
	for _, e := range evals {
		if !e.Status.Final() {
			return
		}
	}
	for _, alloc := range allocs {
		a.txn.DeleteAllocs(alloc.ID)
	}
	for _, e := range evals {
		a.txn.DeleteEvals(e.ID)
	}
	a.txn.DeleteJob(key)
}
