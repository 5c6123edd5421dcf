package fsm

import (
	"cmp"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// bootstrap names the cluster. It has no effect on a cluster that has a name, so that
// every server may propose it. The first to be committed wins.
func bootstrap(config state.ConfigWriter, c *replication.Bootstrap) *replication.Refusal {
	m := config.Meta()
	if m.ClusterID == "" && c.ClusterID != "" {
		m.ClusterID, m.Version, m.Key = c.ClusterID, c.Version, c.Key
		config.SetMeta(m)
	}
	return nil
}

// setVersion raises the cluster version. Servers of older releases halt at this entry,
// so the leader proposes it only if every server supports the version.
func setVersion(config state.ConfigWriter, c *replication.SetVersion) *replication.Refusal {
	m := config.Meta()
	switch {
	case c.Version < m.Version:
		return replication.Refuse(replication.CodeConflict, "cannot lower the cluster version from %d to %d", m.Version, c.Version)
	case c.Version > m.Version:
		m.Version = c.Version
		config.SetMeta(m)
	}
	return nil
}

// setConfig replaces the scheduler configuration. Bindings whose queue priority
// changes are evaluated again.
func (a *applier) setConfig(c *replication.SetConfig) *replication.Refusal {
	if r := checkOperatorIndex(c.Check, "the scheduler configuration", a.txn.Config().ModifyIndex); r != nil {
		return r
	}
	a.txn.ConfigWriter().Set(c.Config)
	a.addEvals(apply.QueuePriorities(a.txn.EvalWriter(), a.now))
	return nil
}

// checkOperatorIndex is checkIndex for the objects of operators, which have no form of
// refusal that Nomad's clients recognize.
func checkOperatorIndex(check *uint64, subject string, index uint64) *replication.Refusal {
	if check == nil || *check == index {
		return nil
	}
	return replication.Refuse(replication.CodeConflict, "%s was changed: it is at index %d, want %d", subject, index, *check)
}

// upsertPriorityClass stores a priority class. At most one is the global default.
// Existing jobs keep the priority that they were registered with.
func upsertPriorityClass(classes state.PriorityClassWriter, c *replication.UpsertPriorityClass) *replication.Refusal {
	if c.Class.Name == "" {
		return replication.Refuse(replication.CodeInvalid, "priority class: name is required")
	}
	for _, other := range classes.PriorityClasses() {
		if c.Class.GlobalDefault && other.GlobalDefault && other.Name != c.Class.Name {
			return replication.Refuse(replication.CodeConflict, "priority class %s is already the global default", other.Name)
		}
	}
	classes.Upsert(c.Class)
	return nil
}

// deletePriorityClass deletes a priority class; jobs of it are not changed.
func deletePriorityClass(classes state.PriorityClassWriter, c *replication.DeletePriorityClass) *replication.Refusal {
	if classes.PriorityClass(c.Name) == nil {
		return replication.Refuse(replication.CodeNotFound, "priority class %q not found", c.Name)
	}
	classes.Delete(c.Name)
	return nil
}

// upsertNamespace stores a namespace. The endpoint has validated it; a weight that is
// not positive would make shares meaningless, so that it is refused here as well.
func upsertNamespace(namespaces state.NamespaceWriter, c *replication.UpsertNamespace) *replication.Refusal {
	n := c.Namespace
	if n.Name == "" {
		return replication.Refuse(replication.CodeInvalid, "namespace: name is required")
	}
	stored := namespaces.Namespace(n.Name)
	index, weight := uint64(0), model.DefaultWeight
	if stored != nil {
		index, weight = stored.ModifyIndex, stored.Weight
	}
	if r := checkOperatorIndex(c.Check, "namespace "+n.Name, index); r != nil {
		return r
	}
	if n.Weight = cmp.Or(n.Weight, weight); fieldcheck.NamespaceWeight(n.Weight).Found() {
		return replication.Refuse(replication.CodeInvalid, "namespace %s: weight: %s", n.Name, fieldcheck.NamespaceWeight(n.Weight).Text)
	}
	namespaces.Upsert(n)
	return nil
}

// deleteNamespace deletes a namespace that contains nothing. Otherwise its objects
// would remain, with another weight.
func deleteNamespace(a *applier, c *replication.DeleteNamespace) *replication.Refusal {
	switch in := a.txn.ObjectsIn(c.Name, a.now); {
	case c.Name == model.DefaultNamespace:
		return replication.Refuse(replication.CodeInvalid, "namespace %s cannot be deleted", c.Name)
	case !in.IsEmpty():
		return replication.Refuse(replication.CodeConflict, "namespace %s contains %s", c.Name, in)
	case a.txn.Namespace(c.Name) == nil:
		return replication.Refuse(replication.CodeNotFound, "namespace %q not found", c.Name)
	}
	if r := checkOperatorIndex(c.Check, "namespace "+c.Name, a.txn.Namespace(c.Name).ModifyIndex); r != nil {
		return r
	}
	a.txn.NamespaceWriter().Delete(c.Name)
	return nil
}

// upsertBudget stores a disruption budget. Budgets with a rate may apply to every job; others
// require labels.
func upsertBudget(budgets state.BudgetWriter, c *replication.UpsertBudget) *replication.Refusal {
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
	budgets.Upsert(b)
	return nil
}

// deleteBudget deletes a disruption budget, which may permit evictions at once.
func deleteBudget(budgets state.BudgetWriter, c *replication.DeleteBudget) *replication.Refusal {
	key := c.Key
	if budgets.Budget(key) == nil {
		return replication.Refuse(replication.CodeNotFound, "disruption budget %s not found", key)
	}
	budgets.Delete(key)
	return nil
}

// putToken stores a token. Two tokens never share a secret. The state holds hashes
// alone. With Bootstrap, it succeeds only while there are no tokens, so that of two
// concurrent calls one is refused.
func putToken(tokens state.TokenWriter, c *replication.PutToken) *replication.Refusal {
	switch same := tokens.TokenByHash(c.Token.Hash); {
	case c.Token.Accessor == "":
		return replication.Refuse(replication.CodeInvalid, "token: accessor is required")
	case c.Bootstrap && len(tokens.Tokens()) > 0:
		return replication.Refuse(replication.CodeConflict, "cannot create the first token: tokens already exist")
	case same != nil && same.Accessor != c.Token.Accessor:
		return replication.Refuse(replication.CodeExists, "token %s already has this secret", same.Accessor)
	}
	tokens.Upsert(c.Token)
	return nil
}

// deleteToken deletes a token. Requests that were authorized before are completed.
func deleteToken(tokens state.TokenWriter, c *replication.DeleteToken) *replication.Refusal {
	if tokens.Token(c.Accessor) == nil {
		return replication.Refuse(replication.CodeNotFound, "token %s not found", c.Accessor)
	}
	tokens.Delete(c.Accessor)
	return nil
}

// maxSigners bounds the keys of signers. A pool has a few servers, and each publishes one
// key for each data directory that it had.
const maxSigners = 1024

// putSigner stores the key of a server's certificates. A key belongs to one server for ever.
func putSigner(signers state.SignerWriter, c *replication.PutSigner) *replication.Refusal {
	s := c.Signer
	switch stored := signers.Signer(s.Key); {
	case s.ServerID == "" || s.Key == [32]byte{}:
		return replication.Refuse(replication.CodeInvalid, "signer: server and key are required")
	case stored != nil && stored.ServerID != s.ServerID:
		return replication.Refuse(replication.CodeExists, "server %s already has this key", stored.ServerID)
	case stored != nil:
		return nil
	case len(signers.Signers()) >= maxSigners:
		return replication.Refuse(replication.CodeTooLarge, "%d keys of signers are stored: no more are accepted", maxSigners)
	}
	signers.Upsert(s)
	return nil
}
