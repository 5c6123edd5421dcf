package worker

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// ample is what a budget has left when nobody waits for it: no node's victims are
// that many.
const ample = 64

// Budgets wakes the evaluations that may have waited for a disruption budget of
// which more is left at snap than when it was last called: others began to work,
// less is wanted, or the budget itself was changed. The first call asks everybody,
// for nobody knows what was left before. It tells whether that woke anybody.
// Evictions that a budget stopped are no matter of room, so Room does not see when
// they become possible.
func (f *Feed) Budgets(snap *state.Snapshot, now int64) (woke bool) {
	if len(snap.Budgets()) == 0 && len(f.slacks) == 0 {
		return false
	}
	slacks := make(map[model.BudgetKey]slack, len(snap.Budgets()))
	var nodes []string
	for at, b := range snap.Budgets() {
		is := slack{snap.DisruptionsAllowed(int32(at), now), b}
		slacks[b.Key()] = is
		was, known := f.slacks[b.Key()]
		if f.slacks == nil || known && was.left < ample && (is.left > was.left || is.of != was.of) {
			nodes = appendHolders(nodes, snap, b)
		}
	}
	for key, was := range f.slacks {
		if _, still := slacks[key]; !still && was.left < ample {
			nodes = appendHolders(nodes, snap, was.of)
		}
	}
	f.slacks = slacks
	if len(nodes) == 0 {
		return false
	}
	slices.Sort(nodes)
	screen := f.screen(snap, now)
	defer screen.Policies.Unpin()
	for _, id := range slices.Compact(nodes) {
		woke = f.unblock(snap, id, snap.Index(), screen) || woke
	}
	f.owe(screen, func(string) uint64 { return snap.Index() })
	return woke
}

// slack is what a budget had left.
type slack struct {
	left int
	of   *model.Budget
}

// appendHolders appends the nodes with something that a budget is about.
func appendHolders(nodes []string, snap *state.Snapshot, b *model.Budget) []string {
	for a := range snap.BudgetAllocs(b) {
		nodes = append(nodes, a.NodeID)
	}
	return nodes
}
