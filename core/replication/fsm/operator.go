package fsm

import (
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (a *applier) bootstrap(c *replication.Bootstrap) *replication.Refusal {
	if a.txn.Meta().ClusterID == "" && c.ClusterID != "" {
		a.txn.SetMeta(state.Meta{ClusterID: c.ClusterID, Version: c.Version, Key: c.Key})
	}
	return nil
}

func (a *applier) setVersion(c *replication.SetVersion) *replication.Refusal {
	m := a.txn.Meta()
	switch {
	case c.Version < m.Version:
		return replication.Refuse(replication.CodeConflict, "the cluster is at version %d and does not go back to %d", m.Version, c.Version)
	case c.Version > m.Version:
		m.Version = c.Version
		a.txn.SetMeta(m)
	}
	return nil
}

func (a *applier) setConfig(c *replication.SetConfig) *replication.Refusal {
	if at := a.txn.Config().ModifyIndex; c.Check != nil && *c.Check != at {
		return replication.Refuse(replication.CodeConflict, "the scheduler configuration was changed: it is at index %d, and %d was named", at, *c.Check)
	}
	a.txn.SetConfig(c.Config)
	a.addEvals(apply.QueuePriorities(a.txn, a.now))
	return nil
}

func (a *applier) upsertPriorityClass(c *replication.UpsertPriorityClass) *replication.Refusal {
	if c.Class.Name == "" {
		return replication.Refuse(replication.CodeInvalid, "a priority class needs a name")
	}
	for _, other := range a.txn.PriorityClasses() {
		if c.Class.GlobalDefault && other.GlobalDefault && other.Name != c.Class.Name {
			return replication.Refuse(replication.CodeConflict, "priority class %s is the global default already", other.Name)
		}
	}
	a.txn.UpsertPriorityClass(c.Class)
	return nil
}

func (a *applier) deletePriorityClass(c *replication.DeletePriorityClass) *replication.Refusal {
	if a.txn.PriorityClass(c.Name) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no priority class %q", c.Name)
	}
	a.txn.DeletePriorityClass(c.Name)
	return nil
}

func (a *applier) upsertBudget(c *replication.UpsertBudget) *replication.Refusal {
	b := c.Budget
	switch {
	case b.Namespace == "" || b.Name == "":
		return replication.Refuse(replication.CodeInvalid, "a disruption budget needs a namespace and a name")
	case len(b.Labels) == 0 && b.MaxEvictions == nil:
		return replication.Refuse(replication.CodeInvalid, "disruption budget %s selects nothing: it needs labels", b.Key())
	case b.BoundCount() != 1:
		return replication.Refuse(replication.CodeInvalid, "disruption budget %s needs one of minAvailable, maxUnavailable and maxEvictions", b.Key())
	case b.MaxEvictions != nil && (b.MaxEvictions.Number < 0 || b.MaxEvictions.Window <= 0):
		return replication.Refuse(replication.CodeInvalid, "disruption budget %s allows %s: it needs a number of 0 or more, and a window", b.Key(), b.MaxEvictions)
	}
	a.txn.UpsertBudget(b)
	return nil
}

func (a *applier) deleteBudget(c *replication.DeleteBudget) *replication.Refusal {
	key := c.Key
	if a.txn.Budget(key) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no disruption budget %s", key)
	}
	a.txn.DeleteBudget(key)
	return nil
}

func (a *applier) putToken(c *replication.PutToken) *replication.Refusal {
	switch same := a.txn.TokenByHash(c.Token.Hash); {
	case c.Token.Accessor == "":
		return replication.Refuse(replication.CodeInvalid, "a token needs an accessor")
	case c.Bootstrap && len(a.txn.Tokens()) > 0:
		return replication.Refuse(replication.CodeConflict, "there are tokens already: the first one was made before")
	case same != nil && same.Accessor != c.Token.Accessor:
		return replication.Refuse(replication.CodeExists, "token %s has the same secret", same.Accessor)
	}
	a.txn.UpsertToken(c.Token)
	return nil
}

func (a *applier) deleteToken(c *replication.DeleteToken) *replication.Refusal {
	if a.txn.Token(c.Accessor) == nil {
		return replication.Refuse(replication.CodeNotFound, "there is no token %s", c.Accessor)
	}
	a.txn.DeleteToken(c.Accessor)
	return nil
}
