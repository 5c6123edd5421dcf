package model

import "sync/atomic"

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
