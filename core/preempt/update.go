package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Update continues a search on a new snapshot of the proposed state. It must differ from
// the last one only in the capacity of the nodes at positions, and the groups in evicted
// have more victims in the plan. Nodes that are not in the search are ignored. Only the
// affected nodes are evaluated again, unless a policy reads the use of namespaces, or reads
// where candidates could run and that has changed everywhere.
func (f *Finder) Update(snap *state.Snapshot, positions []int32, evicted []*model.Group) error {
	s := &f.search
	s.scope.Snap = snap
	for _, w := range f.active() {
		w.guard.Reset()
		w.relocations.Reset()
	}
	everywhere := false
	if f.affected = f.affected[:0]; s.traits.relocates {
		f.affected, everywhere = s.updateRelocations(&f.index, positions)
	}
	if everywhere || s.traits.reads(sdk.SharedTables) {
		s.scope.Budgets.Refresh(snap, s.req.Now)
		return f.restart()
	}
	if len(evicted) > 0 {
		f.findAffected(evicted)
	}
	w := f.workers[0]
	for _, pos := range positions {
		s.reclaimable.Unmark(pos)
		if slot, ok := f.index.Slot(snap, pos); ok {
			w.evaluate(slot)
		}
	}
	if len(evicted) > 0 && s.traits.reads(sdk.EvictionColumns) {
		f.evaluateHolders(w, evicted)
	}
	for _, slot := range f.affected {
		w.evaluate(slot)
	}
	w.finish()
	f.collect()
	return f.err
}

// restart evaluates every node afresh on the snapshot at hand.
func (f *Finder) restart() error {
	for _, w := range f.active() {
		w.renew()
	}
	f.planNodes()
	f.markInfeasible()
	f.searchAll()
	return f.err
}

// findAffected finds the nodes that evictions on other nodes affect: those with other
// members of an evicted all-or-none job, and those with an allocation under a budget if
// its slack has changed. There options may get other victims, or the same victims may
// overrun the budget now.
func (f *Finder) findAffected(evicted []*model.Group) {
	for _, g := range evicted {
		if g.Job.AllOrNone {
			f.addAffected(g.Job.Key(), nil)
		}
	}
	if f.search.scope.Budgets.Relevant() {
		f.refreshBudgets()
	}
	slices.Sort(f.affected)
	f.affected = slices.Compact(f.affected)
}

// refreshBudgets recomputes the slack of budgets, and adds the nodes that changes affect.
func (f *Finder) refreshBudgets() {
	s := &f.search
	budgets := &s.scope.Budgets
	budgets.Refresh(s.scope.Snap, s.req.Now)
	changed := false
	for at, b := range s.scope.Snap.Budgets() {
		if !budgets.Changed(at) {
			continue
		}
		changed = true
		for key := range s.scope.Snap.BudgetJobs(b) {
			f.addAffected(key, b)
		}
	}
	if changed {
		for _, w := range f.active() {
			w.refreshShared()
		}
	}
}

// addAffected adds the nodes that run evictable allocations of a job, under a budget
// unless that is nil. Those of an all-or-none job leave together, so that its other groups
// are affected as well.
func (f *Finder) addAffected(key model.JobKey, budget *model.Budget) {
	scope := &f.search.scope
	for _, a := range f.index.JobAllocs(scope.Snap, key) {
		if !a.Live() || int64(a.Job.Priority) > scope.Ceiling && !a.Job.AllOrNone ||
			budget != nil && !a.Job.AllOrNone && !budget.Matches(a.Group) {
			continue
		}
		if slot, ok := f.index.Slot(scope.Snap, a.NodePos); ok {
			f.affected = append(f.affected, slot)
		}
	}
}

// evaluateHolders evaluates the nodes where the policy was shown a candidate of these
// groups, as their number of evictions has changed.
func (f *Finder) evaluateHolders(w *worker, evicted []*model.Group) {
	f.groups.StartRound()
	for _, g := range evicted {
		for _, h := range f.groups.Holders(&f.search.scope, &f.index, g) {
			if !f.groups.IsVisited(h.Slot) && f.search.readsEvictionsOf(h) {
				f.groups.Visit(h.Slot)
				w.evaluate(h.Slot)
			}
		}
	}
}

// readsEvictionsOf reports whether the number of evictions of a candidate may change the
// policy's answer about its node. Where the policy was not called, the group does not
// fit in any case, unless the policy limits the candidates. A node that waits for its round is
// evaluated with the numbers of that time.
func (s *search) readsEvictionsOf(h prune.Holder) bool {
	outcome := s.outcomes[h.Slot]
	if outcome == Unchecked {
		return false
	}
	if s.traits.delta != nil {
		return true
	}
	called := outcome == Possible || outcome == Declined || outcome == Protected
	return called && h.Priority <= s.reach[h.Slot]
}
