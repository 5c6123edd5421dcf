package replication

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (a *applier) bootstrap(c *Bootstrap) *Refusal {
	if a.txn.Meta().ClusterID == "" && c.ClusterID != "" {
		a.txn.SetMeta(state.Meta{ClusterID: c.ClusterID, Version: c.Version, Key: c.Key})
	}
	return nil
}

func (a *applier) setVersion(c *SetVersion) *Refusal {
	m := a.txn.Meta()
	switch {
	case c.Version < m.Version:
		return refuse(CodeConflict, "the cluster is at version %d and does not go back to %d", m.Version, c.Version)
	case c.Version > m.Version:
		m.Version = c.Version
		a.txn.SetMeta(m)
	}
	return nil
}

func (a *applier) setConfig(c *SetConfig) *Refusal {
	if at := a.txn.Config().ModifyIndex; c.Check != nil && *c.Check != at {
		return refuse(CodeConflict, "the scheduler configuration was changed: it is at index %d, and %d was named", at, *c.Check)
	}
	a.txn.SetConfig(c.Config)
	a.derived(apply.QueuePriorities(a.txn, a.now))
	return nil
}

func (a *applier) upsertPriorityClass(c *UpsertPriorityClass) *Refusal {
	if c.Class.Name == "" {
		return refuse(CodeInvalid, "a priority class needs a name")
	}
	for _, other := range a.txn.PriorityClasses() {
		if c.Class.GlobalDefault && other.GlobalDefault && other.Name != c.Class.Name {
			return refuse(CodeConflict, "priority class %s is the global default already", other.Name)
		}
	}
	a.txn.UpsertPriorityClass(c.Class)
	return nil
}

func (a *applier) deletePriorityClass(c *DeletePriorityClass) *Refusal {
	if a.txn.PriorityClass(c.Name) == nil {
		return refuse(CodeNotFound, "there is no priority class %q", c.Name)
	}
	a.txn.DeletePriorityClass(c.Name)
	return nil
}

func (a *applier) upsertBudget(b *model.Budget) *Refusal {
	switch {
	case b.Namespace == "" || b.Name == "":
		return refuse(CodeInvalid, "a disruption budget needs a namespace and a name")
	case len(b.Labels) == 0 && b.MaxEvictions == nil:
		return refuse(CodeInvalid, "disruption budget %s selects nothing: it needs labels", b.Key())
	case b.BoundCount() != 1:
		return refuse(CodeInvalid, "disruption budget %s needs one of minAvailable, maxUnavailable and maxEvictions", b.Key())
	case b.MaxEvictions != nil && (b.MaxEvictions.Number < 0 || b.MaxEvictions.Window <= 0):
		return refuse(CodeInvalid, "disruption budget %s allows %s: it needs a number of 0 or more, and a window", b.Key(), b.MaxEvictions)
	}
	a.txn.UpsertBudget(b)
	return nil
}

func (a *applier) deleteBudget(key model.BudgetKey) *Refusal {
	if a.txn.Budget(key) == nil {
		return refuse(CodeNotFound, "there is no disruption budget %s", key)
	}
	a.txn.DeleteBudget(key)
	return nil
}

func (a *applier) putToken(c *PutToken) *Refusal {
	switch same := a.txn.TokenByHash(c.Token.Hash); {
	case c.Token.Accessor == "":
		return refuse(CodeInvalid, "a token needs an accessor")
	case c.Bootstrap && len(a.txn.Tokens()) > 0:
		return refuse(CodeConflict, "there are tokens already: the first one was made before")
	case same != nil && same.Accessor != c.Token.Accessor:
		return refuse(CodeExists, "token %s has the same secret", same.Accessor)
	}
	a.txn.UpsertToken(c.Token)
	return nil
}

func (a *applier) deleteToken(c *DeleteToken) *Refusal {
	if a.txn.Token(c.Accessor) == nil {
		return refuse(CodeNotFound, "there is no token %s", c.Accessor)
	}
	a.txn.DeleteToken(c.Accessor)
	return nil
}
