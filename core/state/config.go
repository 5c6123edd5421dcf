package state

import (
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// PriorityClasses is the priority classes, ascending by name. It is shared and
// read-only.
func (v *View) PriorityClasses() []*model.PriorityClass { return v.priorities }

// PriorityClass is the priority class of this name; nil when there is none.
func (v *View) PriorityClass(name string) *model.PriorityClass {
	if at, ok := v.findPriorityClass(name); ok {
		return v.priorities[at]
	}
	return nil
}

func (v *View) findPriorityClass(name string) (int, bool) {
	return slices.BinarySearchFunc(v.priorities, name, func(c *model.PriorityClass, name string) int {
		return strings.Compare(c.Name, name)
	})
}

// SetConfig replaces what operators set.
func (t *Txn) SetConfig(c *model.SchedulerConfig) {
	if !t.restores {
		c.ModifyIndex = t.index
	}
	t.config = c
	t.touch(TableConfig.All())
}

// UpsertPriorityClass stores a priority class under its name.
func (t *Txn) UpsertPriorityClass(c *model.PriorityClass) {
	at, found := t.findPriorityClass(c.Name)
	t.priorities = slices.Clone(t.priorities)
	if found {
		t.priorities[at] = c
	} else {
		t.priorities = slices.Insert(t.priorities, at, c)
	}
	t.touchClass(c.Name)
}

// DeletePriorityClass forgets a priority class. Jobs keep the priority they
// got from it.
func (t *Txn) DeletePriorityClass(name string) {
	if at, found := t.findPriorityClass(name); found {
		t.priorities = slices.Delete(slices.Clone(t.priorities), at, at+1)
		t.touchClass(name)
	}
}

func className(c *model.PriorityClass) string { return c.Name }

func (t *Txn) touchClass(name string) {
	t.touch(TableConfig.All())
	t.touch(TableClasses.Of(name))
}
