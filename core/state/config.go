package state

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// configTable holds the settings of operators that the scheduler reads.
type configTable struct {
	config     *model.SchedulerConfig // never nil
	priorities cow.SortedList[model.PriorityClass]
}

// smallTables holds the tables that scheduling does not read. A View has one pointer
// to them, so that snapshots stay cheap.
type smallTables struct {
	owner       cow.Owner
	meta        Meta
	policies    cow.SortedList[model.PolicyVersion]
	states      cow.SortedList[model.PolicyState]
	uploads     cow.SortedList[Upload]
	tokens      cow.SortedList[model.Token]
	idempotency idempotencyRing
}

// Meta holds the identity of the cluster.
type Meta struct {
	ClusterID string // "" until the cluster is bootstrapped
	Version   uint32 // of the meaning of log entries
	// Key signs tokens that one server issues and another verifies. It is a secret of
	// the servers and never shown.
	Key [32]byte
}

// Meta returns the identity of the cluster.
func (v *View) Meta() Meta { return v.small.meta }

// SetMeta replaces the identity of the cluster.
func (t *Txn) SetMeta(m Meta) {
	t.ownSmall().meta = m
	t.touch(TableConfig.All())
}

// ownSmall returns the small tables for writing.
func (t *Txn) ownSmall() *smallTables {
	if t.small.owner != t.owner {
		own := *t.small
		own.owner = t.owner
		t.small = &own
	}
	return t.small
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

// SetConfig replaces the scheduler configuration and sets its index.
func (t *Txn) SetConfig(c *model.SchedulerConfig) {
	if !t.restores {
		c.ModifyIndex = t.index
	}
	t.config = c
	t.touch(TableConfig.All())
}

// UpsertPriorityClass stores a priority class under its name.
func (t *Txn) UpsertPriorityClass(c *model.PriorityClass) {
	t.priorities = t.priorities.With(c, className)
	t.touchClass(c.Name)
}

// DeletePriorityClass deletes a priority class, if it exists. Jobs retain the
// priority that they got from it.
func (t *Txn) DeletePriorityClass(name string) {
	if next, found := t.priorities.Without(name, className); found {
		t.priorities = next
		t.touchClass(name)
	}
}

func className(c *model.PriorityClass) string { return c.Name }

func (t *Txn) touchClass(name string) {
	t.touch(TableConfig.All())
	t.touch(TableClasses.Of(name))
}
