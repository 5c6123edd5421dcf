package worker

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// ampleSlack is a number of allowed disruptions at which a budget blocks no evaluation: no
// node has as many victims.
const ampleSlack = 64

// Budgets unblocks evaluations that may have been blocked by a disruption budget which
// allows more at snap than at the last call: others became available, fewer are required,
// or the budget was changed. The first call offers the nodes of all budgets. It reports
// whether it unblocked any. Freed does not cover this, because an eviction that becomes
// possible frees no capacity.
func (f *Feed) Budgets(snap *state.Snapshot, now int64) (unblocked bool) {
	if len(snap.Budgets()) == 0 && len(f.slacks) == 0 {
		return false
	}
	slacks := make(map[model.BudgetKey]slack, len(snap.Budgets()))
	var nodes []string
	for at, b := range snap.Budgets() {
		current := slack{snap.DisruptionsAllowed(int32(at), now), b}
		slacks[b.Key()] = current
		before, known := f.slacks[b.Key()]
		if f.slacks == nil || known && before.allowed < ampleSlack && (current.allowed > before.allowed || current.budget != before.budget) {
			nodes = appendBudgetNodes(nodes, snap, b)
		}
	}
	for key, before := range f.slacks {
		if _, exists := slacks[key]; !exists && before.allowed < ampleSlack {
			nodes = appendBudgetNodes(nodes, snap, before.budget)
		}
	}
	f.slacks = slacks
	if len(nodes) == 0 {
		return false
	}
	slices.Sort(nodes)
	filter := f.filter(snap, now)
	defer filter.Policies.Unpin()
	for _, id := range slices.Compact(nodes) {
		unblocked = f.unblock(snap, id, snap.Index(), filter) || unblocked
	}
	f.addDeferred(filter, func(string) uint64 { return snap.Index() })
	return unblocked
}

// slack is how many disruptions a budget allowed.
type slack struct {
	allowed int
	budget  *model.Budget
}

// appendBudgetNodes appends the nodes with allocations that a budget protects.
func appendBudgetNodes(nodes []string, snap *state.Snapshot, b *model.Budget) []string {
	for a := range snap.BudgetAllocs(b) {
		nodes = append(nodes, a.NodeID)
	}
	return nodes
}
