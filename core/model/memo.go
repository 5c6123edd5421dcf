package model

import "sync/atomic"

// budgetMemo keeps the budgets that a group was last found to be under, for
// whichever set of budgets that was: searches ask it of every row, and mostly
// about the same set.
type budgetMemo struct{ last atomic.Pointer[groupBudgets] }

type groupBudgets struct {
	set uint64
	at  []int32
}

// CachedBudgets is what KeepBudgets was last told, when that was about the same
// set of budgets.
func (g *Group) CachedBudgets(set uint64) (at []int32, ok bool) {
	if g.memo == nil {
		return nil, false
	}
	if known := g.memo.last.Load(); known != nil && known.set == set {
		return known.at, true
	}
	return nil, false
}

// CacheBudgets remembers which budgets of a set the group is under. Readers may
// call it side by side: they all say the same of one set.
func (g *Group) CacheBudgets(set uint64, at []int32) {
	if g.memo != nil {
		g.memo.last.Store(&groupBudgets{set, at})
	}
}
