package fsm

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// registerNodes retains the settings of operators on a node: drain, eligibility and
// their taints. An agent does not report them, and would clear them otherwise. The
// secret prevents another machine from taking over the ID.
func (a *applier) registerNodes(c *replication.RegisterNodes) *replication.Refusal {
	var down []string
	for i, n := range c.Nodes {
		if n == nil || n.ID == "" {
			return replication.Refuse(replication.CodeInvalid, "node %d: ID is required", i)
		}
		old := a.txn.Node(n.ID)
		if old == nil {
			continue
		}
		if old.SecretHash != n.SecretHash && old.SecretHash != ([32]byte{}) {
			return replication.Refuse(replication.CodeConflict, "node %s is registered with another secret: if it was rebuilt, delete it first", n.ID)
		}
		if old.Status == model.NodeDown {
			down = append(down, n.ID)
		}
		n.NodeDrain, n.Ineligible = old.NodeDrain, old.Ineligible
		if set := slices.DeleteFunc(slices.Clone(old.Taints), func(t model.Taint) bool { return !t.Set }); len(set) > 0 {
			n.Taints = model.MergeTaints(n.Taints, set)
		}
	}
	ids := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		ids[i] = n.ID
	}
	was := eligibleNodes(&a.txn.View, ids)
	evals, err := apply.Nodes(a.txn, a.now, c.Nodes...)
	if err != nil {
		return replication.Refuse(replication.CodeInvalid, "register nodes: %v", err)
	}
	a.addEvals(evals)
	a.result.Returned = readyNodes(&a.txn.View, down)
	for _, n := range c.Nodes {
		if n.IsEligible() {
			a.result.Freed = append(a.result.Freed, n.ID)
		}
	}
	a.result.Left = leftNodes(&a.txn.View, was)
	return nil
}

// eligibleNodes returns the set of those of the nodes that are eligible.
func eligibleNodes(v *state.View, ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		if n := v.Node(id); n != nil && n.IsEligible() {
			set[id] = true
		}
	}
	return set
}

// leftNodes returns those of the nodes that were eligible and are no longer, or are removed,
// in no defined order.
func leftNodes(v *state.View, wasEligible map[string]bool) (left []string) {
	for id := range wasEligible {
		if n := v.Node(id); n == nil || !n.IsEligible() {
			left = append(left, id)
		}
	}
	return left
}

// downSinceFrom is the first cluster version that records when a node went down.
// Jobs that depend on it are refused before (codec.FitVersion).
const downSinceFrom = 2

// changeNodes changes status, drain, eligibility or taints of nodes. Nodes that became
// eligible count as freed.
func (a *applier) changeNodes(c *replication.ChangeNodes) *replication.Refusal {
	if r := checkExists(&a.txn.View, c.IDs); r != nil {
		return r
	}
	down := slices.DeleteFunc(slices.Clone(c.IDs), func(id string) bool {
		n := a.txn.Node(id)
		return n == nil || n.Status != model.NodeDown
	})
	was, change := eligibleNodes(&a.txn.View, c.IDs), c.Change
	if a.txn.Meta().Version < downSinceFrom {
		change = change.WithoutDownTime()
	}
	a.addEvals(apply.NodeStatus(a.txn, a.now, c.IDs, change))
	a.result.Returned = readyNodes(&a.txn.View, down)
	for _, id := range c.IDs {
		if n := a.txn.Node(id); n != nil && n.IsEligible() && n.ModifyIndex == a.txn.Index() {
			a.result.Freed = append(a.result.Freed, id)
		}
	}
	a.result.Left = leftNodes(&a.txn.View, was)
	return nil
}

// readyNodes returns those of the nodes that are ready. The callers pass nodes that
// were down, which the result lists as returned.
func readyNodes(v *state.View, ids []string) (up []string) {
	for _, id := range ids {
		if n := v.Node(id); n != nil && n.Status == model.NodeReady {
			up = append(up, id)
		}
	}
	return up
}

// deleteNodes deletes nodes. Their allocations are lost.
func (a *applier) deleteNodes(c *replication.DeleteNodes) *replication.Refusal {
	if r := checkExists(&a.txn.View, c.IDs); r != nil {
		return r
	}
	was := eligibleNodes(&a.txn.View, c.IDs)
	a.addEvals(apply.NodeDelete(a.txn, a.now, c.IDs))
	a.result.Left = leftNodes(&a.txn.View, was)
	return nil
}

// checkExists refuses a single node that does not exist. Several nodes were selected from
// an older state: some of them may be gone, and the others are processed.
func checkExists(v *state.View, ids []string) *replication.Refusal {
	if len(ids) == 1 && v.Node(ids[0]) == nil {
		return replication.Refuse(replication.CodeNotFound, "node %s not found", ids[0])
	}
	return nil
}

// updateAllocs applies the reports of nodes. Allocations that ended free capacity.
// Nodes are recorded before the change, while their allocations are live.
func (a *applier) updateAllocs(c *replication.UpdateAllocs) *replication.Refusal {
	for i := range c.Updates {
		if c.Updates[i].Status.Terminal() {
			a.recordFreedNode(c.Updates[i].AllocID)
		}
	}
	a.addEvals(apply.ClientUpdates(a.txn, a.now, c.Updates))
	return nil
}
