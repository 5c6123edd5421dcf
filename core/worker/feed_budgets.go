package worker

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/state"
)

// Started wakes the evaluations that may have waited for a disruption budget to
// allow an eviction, after allocations began to work at snap. Others need not be
// asked: what has begun makes room for nobody.
func (f *Feed) Started(snap *state.Snapshot, now int64, allocIDs ...string) {
	if len(snap.Budgets()) == 0 {
		return
	}
	began := map[int32]int{}
	for _, id := range allocIDs {
		if a := snap.Alloc(id); a != nil && a.Available() {
			for _, at := range snap.BudgetsOf(a.Group) {
				began[at]++
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(began)) {
		// Before them nothing was left, and now something is.
		if slack := snap.BudgetSlack(at); slack > 0 && slack <= began[at] {
			f.Room(snap, now, holders(snap, at)...)
		}
	}
}

// holders is the nodes with something that the budget at a position is about,
// each once.
func holders(snap *state.Snapshot, at int32) (nodeIDs []string) {
	b, seen := snap.Budgets()[at], map[string]bool{}
	for key := range snap.Labelled(b.Labels) {
		if key.Namespace != b.Namespace {
			continue
		}
		for _, a := range snap.AppendJobAllocs(nil, key) {
			if a.Available() && b.Matches(a.Group) && !seen[a.NodeID] {
				seen[a.NodeID] = true
				nodeIDs = append(nodeIDs, a.NodeID)
			}
		}
	}
	slices.Sort(nodeIDs)
	return nodeIDs
}
