package fsm

import (
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// bootstrap names the cluster. It has no effect on a cluster that has a name, so that every
// server may propose it.
func (a *applier) bootstrap(c *replication.Bootstrap) *replication.Refusal {
	if a.txn.Meta().ClusterID == "" && c.ClusterID != "" {
		a.txn.SetMeta(state.Meta{ClusterID: c.ClusterID, Version: c.Version, Key: c.Key})
	}
	return nil
}

// setVersion raises the cluster version.
func (a *applier) setVersion(c *replication.SetVersion) *replication.Refusal {
	m := a.txn.Meta()
	switch {
	case c.Version < m.Version:
		return replication.Refuse(replication.CodeConflict, "cannot lower the cluster version from %d to %d", m.Version, c.Version)
	case c.Version > m.Version:
		m.Version = c.Version
		a.txn.SetMeta(m)
	}
	return nil
}

// setConfig replaces the scheduler configuration. Bindings whose queue priority
// changes are evaluated again.
func (a *applier) setConfig(c *replication.SetConfig) *replication.Refusal {
	if at := a.txn.Config().ModifyIndex; c.Check != nil && *c.Check != at {
		return replication.Refuse(replication.CodeConflict, "the scheduler configuration was changed: it is at index %d, want %d", at, *c.Check)
	}
	a.txn.SetConfig(c.Config)
	a.addEvals(apply.QueuePriorities(a.txn, a.now))
	return nil
}

// upsertPriorityClass stores a priority class. At most one is the global default.
func (a *applier) upsertPriorityClass(c *replication.UpsertPriorityClass) *replication.Refusal {
	if c.Class.Name == "" {
		return replication.Refuse(replication.CodeInvalid, "priority class: name is required")
	}
	for _, other := range a.txn.PriorityClasses() {
		if c.Class.GlobalDefault && other.GlobalDefault && other.Name != c.Class.Name {
			return replication.Refuse(replication.CodeConflict, "priority class %s is already the global default", other.Name)
		}
	}
	a.txn.UpsertPriorityClass(c.Class)
	return nil
}

func (a *applier) deletePriorityClass(c *replication.DeletePriorityClass) *replication.Refusal {
	if a.txn.PriorityClass(c.Name) == nil {
		return replication.Refuse(replication.CodeNotFound, "priority class %q not found", c.Name)
	}
	a.txn.DeletePriorityClass(c.Name)
	return nil
}

// upsertBudget stores a disruption budget. Budgets with a rate may apply to every job; others
// require labels.
func (a *applier) upsertBudget(c *replication.UpsertBudget) *replication.Refusal {
	b := c.Budget
	switch {
	case b.Namespace == "" || b.Name == "":
		return replication.Refuse(replication.CodeInvalid, "disruption budget: namespace and name are required")
	case len(b.Labels) == 0 && b.MaxEvictions == nil:
		return replication.Refuse(replication.CodeInvalid, "disruption budget %s: labels are required", b.Key())
	case b.BoundCount() != 1:
		return replication.Refuse(replication.CodeInvalid, "disruption budget %s: exactly one of minAvailable, maxUnavailable and maxEvictions is required", b.Key())
	case b.MaxEvictions != nil && (b.MaxEvictions.Number < 0 || b.MaxEvictions.Window <= 0):
		return replication.Refuse(replication.CodeInvalid, "disruption budget %s: invalid maxEvictions %s: want a number of 0 or more, and a positive window", b.Key(), b.MaxEvictions)
	}
	a.txn.UpsertBudget(b)
	return nil
}

func (a *applier) deleteBudget(c *replication.DeleteBudget) *replication.Refusal {
	key := c.Key
	if a.txn.Budget(key) == nil {
		return replication.Refuse(replication.CodeNotFound, "disruption budget %s not found", key)
	}
	a.txn.DeleteBudget(key)
	return nil
}

// putToken stores a token. Two tokens never share a secret.
func (a *applier) putToken(c *replication.PutToken) *replication.Refusal {
	switch same := a.txn.TokenByHash(c.Token.Hash); {
	case c.Token.Accessor == "":
		return replication.Refuse(replication.CodeInvalid, "token: accessor is required")
	case c.Bootstrap && len(a.txn.Tokens()) > 0:
		return replication.Refuse(replication.CodeConflict, "cannot create the first token: tokens already exist")
	case same != nil && same.Accessor != c.Token.Accessor:
		return replication.Refuse(replication.CodeExists, "token %s already has this secret", same.Accessor)
	}
	a.txn.UpsertToken(c.Token)
	return nil
}

func (a *applier) deleteToken(c *replication.DeleteToken) *replication.Refusal {
	if a.txn.Token(c.Accessor) == nil {
		return replication.Refuse(replication.CodeNotFound, "token %s not found", c.Accessor)
	}
	a.txn.DeleteToken(c.Accessor)
	return nil
}
