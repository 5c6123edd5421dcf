package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Budgets with MaxEvictions record when allocations were evicted. Times are those
// of the log entries, so every server records the same. Evictions before the budget
// existed are unknown.

// An evictionWindow lists the evictions under a budget, the oldest first. It is
// immutable.
type evictionWindow struct{ list []model.EvictionCount }

// add returns the window with one more eviction, without those that have left the
// window at now.
func (r *evictionWindow) add(now int64, rate *model.Rate) *evictionWindow {
	var list []model.EvictionCount
	if r != nil {
		list = r.list
	}
	first := 0
	for first < len(list) && list[first].At+int64(rate.Window) <= now {
		first++
	}
	list = slices.Clone(list[first:])
	if last := len(list) - 1; last >= 0 && list[last].At >= now {
		list[last].N++ // of the same entry, or a clock went back
	} else {
		list = append(list, model.EvictionCount{At: now, N: 1})
	}
	return &evictionWindow{list}
}

// in returns how many evictions fall into the window that ends at now.
func (r *evictionWindow) in(now int64, rate *model.Rate) (n int) {
	if r == nil {
		return 0
	}
	for _, e := range slices.Backward(r.list) {
		if e.At+int64(rate.Window) <= now {
			break
		}
		n += int(e.N)
	}
	return n
}

// recordEviction records an eviction under the budgets of the allocation: old and
// next are two versions of it.
func (t BudgetWriter) recordEviction(old, next *model.Allocation) {
	if t.restores || old == nil || next == nil || next.Desired != model.DesiredEvict || old.Desired == model.DesiredEvict || !old.Available() {
		return
	}
	for _, at := range t.budgets.of(old.Group) {
		if rate := t.budgets.list[at].MaxEvictions; rate != nil {
			c := t.budgetCounts.At(int(at))
			c.recent = c.recent.add(next.EndTime, rate)
			t.budgetCounts.Set(t.owner, int(at), c)
		}
	}
}

// RecentEvictions returns the recorded evictions under the budget at a position in
// Budgets, the oldest first; nil if it has no MaxEvictions. The slice is shared and
// read-only.
func (v *budgetTable) RecentEvictions(at int32) []model.EvictionCount {
	if r := v.budgetCounts.At(int(at)).recent; r != nil {
		return r.list
	}
	return nil
}

// RestoreEvictions sets the evictions of a budget that a snapshot recorded.
func (t BudgetWriter) RestoreEvictions(key model.BudgetKey, list []model.EvictionCount) {
	at, found := t.budgets.find(key)
	if !found || len(list) == 0 {
		return
	}
	c := t.budgetCounts.At(at)
	c.recent = &evictionWindow{list}
	t.budgetCounts.Set(t.owner, at, c)
}

// NextEvictionAt returns when the budget at a position in Budgets allows more
// evictions than at now if only time passes, in Unix nanoseconds, or 0 if it never
// does.
func (v *budgetTable) NextEvictionAt(at int32, now int64) int64 {
	rate := v.budgets.list[at].MaxEvictions
	if rate == nil {
		return 0
	}
	for _, e := range v.RecentEvictions(at) {
		if frees := e.At + int64(rate.Window); frees > now {
			return frees
		}
	}
	return 0
}
