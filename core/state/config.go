package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// configTable holds the settings of operators that the scheduler reads: the
// configuration, priority classes and namespaces.
type configTable struct {
	config     *model.SchedulerConfig // never nil
	priorities cow.SortedList[model.PriorityClass]
	namespaces cow.SortedList[model.Namespace]
}

// smallTables holds the tables that scheduling does not read. A View has one pointer
// to them, so that snapshots stay cheap.
type smallTables struct {
	owner       cow.Owner
	meta        Meta
	policies    cow.SortedList[model.PolicyVersion]
	states      cow.SortedList[model.PolicyState]
	trials      cow.SortedList[model.PolicyTrial]
	uploads     cow.SortedList[Upload]
	tokens      cow.SortedList[model.Token]
	signers     cow.SortedList[model.Signer]
	audit       []*model.AuditRecord // ascending by index, at most MaxAuditRecords
	idempotency idempotencyRing
}

// Meta holds the identity of the cluster.
type Meta struct {
	ClusterID string // "" until the cluster is bootstrapped
	Version   uint32 // of the meaning of log entries
	// Key signs tokens that one server issues and another verifies. It is a secret of
	// the servers and never shown.
	Key [32]byte
	// IndexOffset is added to the index of a log entry to get the index of the state
	// that it leaves. It is positive after the restore of a snapshot with a later index
	// than that of the log: the indexes of a state never decrease.
	IndexOffset uint64
}

// Meta returns the identity of the cluster.
func (v *smallTables) Meta() Meta { return v.meta }

// SetMeta replaces the identity of the cluster.
func (t ConfigWriter) SetMeta(m Meta) {
	t.ownSmall().meta = m
	t.touch(TableConfig.All())
}

// ownSmall returns the small tables for writing.
func (t *branch) ownSmall() *smallTables {
	if t.smallTables.owner != t.owner {
		own := *t.smallTables
		own.owner = t.owner
		t.smallTables = &own
	}
	return t.smallTables
}

// Config returns the scheduler configuration; never nil.
func (v *configTable) Config() *model.SchedulerConfig { return v.config }

// PriorityClasses returns the priority classes, ascending by name. The slice is
// shared and read-only.
func (v *configTable) PriorityClasses() []*model.PriorityClass { return v.priorities }

// PriorityClass returns the priority class with the name, or nil if there is none.
func (v *configTable) PriorityClass(name string) *model.PriorityClass {
	return v.priorities.Get(name, className)
}

// Set replaces the scheduler configuration and sets its index.
func (t ConfigWriter) Set(c *model.SchedulerConfig) {
	if !t.restores {
		c.ModifyIndex = t.index
	}
	t.config = c
	t.touch(TableConfig.All())
}

// Upsert stores a priority class under its name.
func (t PriorityClassWriter) Upsert(c *model.PriorityClass) {
	t.priorities = t.priorities.With(c, className)
	t.touchClass(c.Name)
}

// Delete deletes a priority class, if it exists. Jobs retain the
// priority that they got from it.
func (t PriorityClassWriter) Delete(name string) {
	if next, found := t.priorities.Without(name, className); found {
		t.priorities = next
		t.touchClass(name)
	}
}

func className(c *model.PriorityClass) string { return c.Name }

func (t PriorityClassWriter) touchClass(name string) {
	t.touch(TableConfig.All())
	t.touch(TableClasses.Of(name))
}

func namespaceName(n *model.Namespace) string { return n.Name }

// Namespaces returns the stored namespaces, ascending by name. Objects may be in other
// namespaces as well. The slice is shared and read-only.
func (v *configTable) Namespaces() []*model.Namespace { return v.namespaces }

// Namespace returns the stored namespace with the name, or nil if there is none.
func (v *configTable) Namespace(name string) *model.Namespace {
	return v.namespaces.Get(name, namespaceName)
}

// NamespaceWeight returns the weight of a namespace, which need not be stored.
func (v *configTable) NamespaceWeight(name string) float64 {
	if n := v.Namespace(name); n != nil {
		return n.Weight
	}
	return model.DefaultWeight
}

// WeightsChangeIndex returns the index of the newest change of a weight, or 0 if all
// weights are the default. Deletions do not count: a namespace is deleted only while
// nothing in it uses capacity, so that no policy reads its weight.
func (v *configTable) WeightsChangeIndex() (index uint64) {
	for _, n := range v.namespaces {
		index = max(index, n.WeightIndex)
	}
	return index
}

// Upsert stores a namespace under its name, and sets its indexes.
func (t NamespaceWriter) Upsert(n *model.Namespace) {
	if !t.restores {
		before := model.Namespace{Weight: model.DefaultWeight}
		if old := t.Namespace(n.Name); old != nil {
			before = *old
		}
		t.stamp(&n.CreateIndex, &n.ModifyIndex, before.CreateIndex)
		n.WeightIndex = before.WeightIndex
		if n.Weight != before.Weight {
			n.WeightIndex = t.index
		}
	}
	t.namespaces = t.namespaces.With(n, namespaceName)
	t.touch(TableNamespaces.Of(n.Name))
}

// Delete deletes a namespace, if it exists.
func (t NamespaceWriter) Delete(name string) {
	if next, found := t.namespaces.Without(name, namespaceName); found {
		t.namespaces = next
		t.touch(TableNamespaces.Of(name))
	}
}

// UsesNamespace reports whether any job, binding or budget is in a namespace, which need
// not be stored. Jobs and bindings count until they are garbage collected.
func (v *View) UsesNamespace(name string) bool {
	for range v.JobsPrefix(name, "") {
		return true
	}
	for b := range v.Bindings() {
		if b.Namespace == name {
			return true
		}
	}
	return slices.ContainsFunc(v.Budgets(), func(b *model.Budget) bool { return b.Namespace == name })
}

// NamespaceObjects lists the objects of a namespace, ascending by name.
type NamespaceObjects struct {
	Jobs, Bindings, Budgets []string // IDs or names
	Tokens                  []string // accessors of tokens that are limited to the namespace
}

// IsEmpty reports whether there are no objects.
func (in *NamespaceObjects) IsEmpty() bool {
	return len(in.Jobs)+len(in.Bindings)+len(in.Budgets)+len(in.Tokens) == 0
}

// maxListed bounds how many objects of a kind String lists.
const maxListed = 5

// String lists the objects by kind, for messages.
func (in NamespaceObjects) String() string {
	var kinds []string
	for _, kind := range []struct {
		one, many string
		names     []string
	}{{"job", "jobs", in.Jobs}, {"binding", "bindings", in.Bindings}, {"disruption budget", "disruption budgets", in.Budgets}, {"token", "tokens", in.Tokens}} {
		word, names, more := kind.many, kind.names, ""
		if len(names) == 1 {
			word = kind.one
		}
		if len(names) > maxListed {
			names, more = names[:maxListed], fmt.Sprintf(" and %d more", len(names)-maxListed)
		}
		if len(names) > 0 {
			kinds = append(kinds, word+" "+strings.Join(names, ", ")+more)
		}
	}
	return strings.Join(kinds, "; ")
}

// ObjectsIn returns the objects that are in a namespace at a time in Unix nanoseconds.
// Jobs and bindings that have ended do not count, although they remain until they are
// garbage collected, and neither do expired tokens. It costs a walk over all bindings
// and over the allocations of the namespace.
func (v *View) ObjectsIn(namespace string, now int64) (in NamespaceObjects) {
	for j := range v.JobsPrefix(namespace, "") {
		if !j.Stopped || slices.ContainsFunc(v.AppendJobAllocs(nil, j.Key()), mayRun) {
			in.Jobs = append(in.Jobs, j.ID)
		}
	}
	for b := range v.Bindings() {
		if b.Namespace == namespace && (!b.Stopped || slices.ContainsFunc(v.BindingAssignments(b.Key()), (*model.Assignment).HoldsCapacity)) {
			in.Bindings = append(in.Bindings, b.ID)
		}
	}
	for _, b := range v.Budgets() {
		if b.Namespace == namespace {
			in.Budgets = append(in.Budgets, b.Name)
		}
	}
	for _, token := range v.Tokens() {
		if token.Namespace == namespace && !token.Expired(now) {
			in.Tokens = append(in.Tokens, token.Accessor)
		}
	}
	return in
}

// mayRun reports whether an allocation may still run on its node.
func mayRun(a *model.Allocation) bool { return !a.Client.Terminal() }
