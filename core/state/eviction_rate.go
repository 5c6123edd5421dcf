package state

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Budgets with MaxEvictions record when allocations were evicted or moved. Times are those
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
	for first < len(list) && !rate.Contains(list[first].At, now) {
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
		if !rate.Contains(e.At, now) {
			break
		}
		n += int(e.N)
	}
	return n
}

// recordEviction records an eviction or a move under the budgets of the allocation: old
// and next are two versions of it. A move interrupts the instance as an eviction does.
func (t BudgetWriter) recordEviction(old, next *model.Allocation) {
	if t.restores || old == nil || next == nil || !isDisrupted(next) || isDisrupted(old) || !old.Available() {
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

// isDisrupted reports whether an allocation was evicted or moved.
func isDisrupted(a *model.Allocation) bool { return a.Desired == model.DesiredEvict || a.MovedTo != "" }

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
		if rate.Contains(e.At, now) {
			return max(e.At+int64(rate.Window), 0) // negative: beyond the range of time
		}
	}
	return 0
}

// A move stops an instance on one node and places it on another one in the same commit
// group. The scheduler, which proposes moves, and the planner, which verifies them, call
// the same functions, so that a move is accepted on the state that it was made from.

// RecentMoves returns how many instances of a job were moved in the window of a rate that
// ends at now, in Unix nanoseconds. It costs a walk over the job's allocations. Moves whose
// allocations were collected as garbage do not count.
func (v *View) RecentMoves(key model.JobKey, now int64, rate *model.Rate) (n int) {
	for _, a := range v.AppendJobAllocs(nil, key) {
		if a.MovedFrom != "" && rate.Contains(a.CreateTime, now) {
			n++
		}
	}
	return n
}

// MoveObstacle returns why an allocation may not be moved to make room for work of a
// priority at a time in Unix nanoseconds, or "" if it may. Whether another node has enough
// capacity for it, and how many moves the job allows, is not checked here.
//
// Every budget limits moves, whatever its enforcement: a budget of best effort is exceeded
// for work that can run nowhere else, and a move is never that urgent.
func (v *View) MoveObstacle(a *model.Allocation, priority int32, now int64) string {
	job := v.Job(a.Job.Key())
	switch node := v.Node(a.NodeID); {
	case !a.Live():
		return "it has ended"
	case job == nil || job.Stopped || a.Job != job:
		return "its job has changed"
	case node == nil || node.Status != model.NodeReady || node.Drain:
		return "its node is down or drains"
	case job.Priority > priority:
		return fmt.Sprintf("its priority %d is above %d", job.Priority, priority)
	case job.Type.PerNode():
		return "its job runs on every node"
	case job.NonPreemptible:
		return "its job is not preemptible"
	case job.AllOrNone:
		return "its job is evicted all-or-none"
	case job.Colocates() || HasPlacementRules(v, a.Group):
		return "rules between allocations apply to it"
	case a.Group.Disconnect != nil && v.runsTwice(a):
		return "its instance runs twice since a node is connected again"
	}
	if _, spared := job.ProtectedFrom(a, priority, now); spared {
		return "its preemption toleration protects it from this priority, or until it has run longer"
	}
	if !a.Available() {
		return ""
	}
	for _, at := range v.GroupBudgets(a.Group) {
		if v.DisruptionsAllowed(at, now) < 1 {
			return fmt.Sprintf("the disruption budget %q allows no disruption", v.Budgets()[at].Key())
		}
	}
	return ""
}

// runsTwice reports whether another allocation of the same instance runs on a connected node.
// The evaluation of the job decides which of the two remains.
func (v *View) runsTwice(a *model.Allocation) bool {
	return slices.ContainsFunc(v.AppendJobAllocs(nil, a.Job.Key()), func(o *model.Allocation) bool {
		return o.ID != a.ID && o.Live() && o.Group.Name == a.Group.Name && o.Index == a.Index && !o.Unknown(v.Node(o.NodeID))
	})
}
