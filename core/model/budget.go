package model

import (
	"fmt"
	"strconv"
	"time"
)

// BudgetKey identifies a disruption budget.
type BudgetKey struct{ Namespace, Name string }

func (k BudgetKey) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name, bytewise.
func (k BudgetKey) Compare(o BudgetKey) int {
	return JobKey{k.Namespace, k.Name}.Compare(JobKey{o.Namespace, o.Name})
}

// Budget says how many allocations with certain labels evictions must leave.
// Exactly one of MinAvailable, MaxUnavailable and MaxEvictions is set.
type Budget struct {
	Namespace      string
	Name           string
	Labels         map[string]string // selects groups of the namespace; empty only with MaxEvictions: all of them
	MinAvailable   *Bound
	MaxUnavailable *Bound
	MaxEvictions   *Rate // how many go in a window, however many are left
	// Strict is whether no eviction may overrun it. Otherwise policies may, and
	// it is reported.
	Strict bool

	CreateIndex uint64
	ModifyIndex uint64

	term LabelTerm // of Labels, set by Compile
	id   string
}

// ID is a text of its own for each key, which is not for people.
func (b *Budget) ID() string { return b.id }

// Key identifies the budget.
func (b *Budget) Key() BudgetKey { return BudgetKey{b.Namespace, b.Name} }

// Compile prepares the selector. The state calls it before it publishes a
// budget.
func (b *Budget) Compile() {
	b.term = LabelTerm{Labels: b.Labels}
	b.term.compile()
	b.id = b.Namespace + "\x00" + b.Name
}

// Matches is whether a compiled budget is about allocations of the group.
func (b *Budget) Matches(g *Group) bool {
	switch {
	case g.Job.Namespace != b.Namespace:
		return false
	case len(b.Labels) == 0:
		return b.MaxEvictions != nil
	}
	return b.term.Matches(g.Labels)
}

// DependsOnDesired is whether the budget depends on how many instances are desired.
func (b *Budget) DependsOnDesired() bool {
	return b.MaxEvictions == nil && (b.MinAvailable == nil || b.MinAvailable.Percent)
}

// BoundCount is how many of its bounds are set, which must be one.
func (b *Budget) BoundCount() (n int) {
	for _, set := range []bool{b.MinAvailable != nil, b.MaxUnavailable != nil, b.MaxEvictions != nil} {
		if set {
			n++
		}
	}
	return n
}

// RequiredAvailable is how many allocations must stay available of so many that are
// desired.
func (b *Budget) RequiredAvailable(desired int) int {
	switch {
	case b.MinAvailable != nil:
		return b.MinAvailable.Of(desired)
	case b.MaxUnavailable != nil:
		return max(0, desired-b.MaxUnavailable.Of(desired))
	}
	return 0
}

// Rate is so many in any window of time.
type Rate struct {
	Number int32         // 0 or more
	Window time.Duration // above 0
}

func (r Rate) String() string {
	if r.Number == 1 {
		return fmt.Sprintf("1 eviction in %s", r.Window)
	}
	return fmt.Sprintf("%d evictions in %s", r.Number, r.Window)
}

// EvictionCount is how many were evicted at a time in Unix nanoseconds.
type EvictionCount struct {
	At int64
	N  int32
}

// Bound is a number of allocations, or a share of those desired.
type Bound struct {
	Number  int32
	Percent bool
}

// Of is the bound in allocations; a share is rounded up.
func (b Bound) Of(desired int) int {
	if !b.Percent {
		return int(b.Number)
	}
	return int((int64(desired)*int64(b.Number) + 99) / 100)
}

func (b Bound) String() string {
	if b.Percent {
		return strconv.Itoa(int(b.Number)) + "%"
	}
	return strconv.Itoa(int(b.Number))
}

// Available is whether the allocation works, so that evicting it costs its
// budgets one. What has a place and has not begun disturbs nobody by losing it.
func (a *Allocation) Available() bool { return a.Started && a.Live() }
