package protect

import (
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/state"
)

// A Narrower finds the candidates that a policy can reach if it spares budgets before
// it goes by ascending priority. Three cases:
//
//   - Together the candidates overrun no budget. Then the policy goes by priority alone,
//     and the caller needs no Narrower.
//   - Every budget that they overrun has no slack at all. Then a candidate overruns
//     one or not regardless of the others, and the policy takes the former last: Reach marks both runs.
//   - Otherwise a candidate overruns a budget or not depending on the others. Then all
//     candidates must be shown.
type Narrower struct {
	exhausted []bool // by candidate: it overruns a budget
	reached   []bool // by candidate
	charged   Charges
}

// Reach returns, by candidate, whether the policy can reach it, or ok == false in the
// third case. The result is valid until the next call. It overwrites deficit, which must
// be the node's, by tracked dimension.
func (n *Narrower) Reach(s *Scope, candidates []*state.Row, deficit []int64) (reached []bool, ok bool) {
	if !n.markExhausted(&s.Budgets, candidates) {
		return nil, false
	}
	short := s.Dims.CountShort(deficit)
	short = n.reachLevels(&s.Dims, candidates, deficit, false, short)
	n.reachLevels(&s.Dims, candidates, deficit, true, short)
	return n.reached, true
}

// markExhausted marks the candidates that overrun a budget. It returns false if that
// depends on which others are evicted.
func (n *Narrower) markExhausted(b *Budgets, candidates []*state.Row) bool {
	most := len(candidates)
	n.charged, n.exhausted, n.reached = n.charged[:0], scratch.Zeroed(n.exhausted, most), scratch.Zeroed(n.reached, most)
	for i, row := range candidates {
		if !row.Started {
			continue
		}
		for _, at := range b.snap.GroupBudgets(row.Group) {
			switch slack := b.Slack[at]; {
			case slack <= 0:
				n.exhausted[i] = true
			case slack < most && n.charged.Add(at, 1) > slack:
				return false
			}
		}
	}
	return true
}

// reachLevels marks candidates as reached, priority by priority, until no dimension is
// short: those that overrun a budget, or those that do not. It returns how many
// dimensions still are short.
func (n *Narrower) reachLevels(dims *fit.Dims, candidates []*state.Row, deficit []int64, exhausted bool, short int) int {
	level, open := int32(0), false
	for i, row := range candidates {
		if n.exhausted[i] != exhausted {
			continue
		}
		if !open || row.Priority != level {
			if short <= 0 {
				break
			}
			level, open = row.Priority, true
		}
		n.reached[i] = true
		short -= dims.Release(deficit, &row.Group.Ask.Vec)
	}
	return short
}
