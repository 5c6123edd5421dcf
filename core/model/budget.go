package model

import (
	"strconv"
	"sync/atomic"
	"time"
)

// BudgetKey identifies a disruption budget.
type BudgetKey struct{ Namespace, Name string }

func (k BudgetKey) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name, bytewise.
func (k BudgetKey) Compare(o BudgetKey) int {
	return JobKey{k.Namespace, k.Name}.Compare(JobKey{o.Namespace, o.Name})
}

// A Budget bounds how many allocations with certain labels may be evicted. Exactly
// one of MinAvailable, MaxUnavailable and MaxEvictions is set.
type Budget struct {
	Namespace      string
	Name           string
	Labels         map[string]string // selects groups of the namespace; empty only with MaxEvictions: all of them
	MinAvailable   *Bound
	MaxUnavailable *Bound
	MaxEvictions   *Rate // evictions in a window, however many are available
	// Strict forbids every eviction beyond the budget. Otherwise policies may
	// exceed it, which is reported.
	Strict bool

	CreateIndex uint64
	ModifyIndex uint64

	term LabelTerm // of Labels, set by Compile
	id   string
}

// ID returns a unique text for each key. It is not meant for display.
func (b *Budget) ID() string { return b.id }

// Key returns the key of the budget.
func (b *Budget) Key() BudgetKey { return BudgetKey{b.Namespace, b.Name} }

// Compile prepares the selector. The state calls it before it publishes a budget.
func (b *Budget) Compile() {
	b.term = LabelTerm{Labels: b.Labels}
	b.term.compile()
	b.id = b.Namespace + "\x00" + b.Name
}

// Matches reports whether the compiled budget applies to the group.
func (b *Budget) Matches(g *Group) bool {
	switch {
	case g.Job.Namespace != b.Namespace:
		return false
	case len(b.Labels) == 0:
		return b.MaxEvictions != nil
	}
	return b.term.Matches(g.Labels)
}

// DependsOnDesired reports whether the budget depends on the number of desired
// instances.
func (b *Budget) DependsOnDesired() bool {
	return b.MaxEvictions == nil && (b.MinAvailable == nil || b.MinAvailable.Percent)
}

// BoundCount returns how many of the bounds are set; a valid budget has one.
func (b *Budget) BoundCount() (n int) {
	for _, set := range []bool{b.MinAvailable != nil, b.MaxUnavailable != nil, b.MaxEvictions != nil} {
		if set {
			n++
		}
	}
	return n
}

// RequiredAvailable returns how many allocations must remain available if so many
// are desired.
func (b *Budget) RequiredAvailable(desired int) int {
	switch {
	case b.MinAvailable != nil:
		return b.MinAvailable.Of(desired)
	case b.MaxUnavailable != nil:
		return max(0, desired-b.MaxUnavailable.Of(desired))
	}
	return 0
}

// A Rate is a number of evictions in any window of time.
type Rate struct {
	Number int32         // 0 or more
	Window time.Duration // above 0
}

func (r Rate) String() string {
	return Counted(int(r.Number), "eviction", "evictions") + " in " + r.Window.String()
}

// Counted returns a number with its noun, in the singular if the number is 1.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Contains reports whether an event at a time is in the window that ends at now, both in
// Unix nanoseconds. The end of a long window is beyond the range of time, so the age of
// the event is compared.
func (r *Rate) Contains(at, now int64) bool { return now-at < int64(r.Window) }

// An EvictionCount is the number of evictions at a time in Unix nanoseconds.
type EvictionCount struct {
	At int64
	N  int32
}

// A Bound is a number of allocations, or a percentage of those desired.
type Bound struct {
	Number  int32
	Percent bool
}

// Of returns the bound in allocations; a percentage is rounded up.
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

// Available reports whether the allocation has started and not ended, so that
// evicting it counts against its budgets. Evicting one that has not started
// disrupts nothing.
func (a *Allocation) Available() bool { return a.Started && a.Live() }

// budgetMemo caches the budgets that apply to a group for one set of budgets:
// searches read them for every row, mostly for the same set.
type budgetMemo struct{ last atomic.Pointer[groupBudgets] }

type groupBudgets struct {
	set uint64
	at  []int32
}

// CachedBudgets returns the positions that CacheBudgets stored, if they are of the
// same set of budgets.
func (g *Group) CachedBudgets(set uint64) (at []int32, ok bool) {
	if g.memo == nil {
		return nil, false
	}
	if known := g.memo.last.Load(); known != nil && known.set == set {
		return known.at, true
	}
	return nil, false
}

// CacheBudgets stores which budgets of a set apply to the group. Readers may call
// it concurrently: they all store the same value for one set.
func (g *Group) CacheBudgets(set uint64, at []int32) {
	if g.memo != nil {
		g.memo.last.Store(&groupBudgets{set, at})
	}
}
