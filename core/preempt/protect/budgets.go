package protect

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Budgets hold the slack of every disruption budget: how many more evictions it allows.
// Only started allocations cost a budget anything.
//
// Most checks compare the slack with a number of candidates first: as long as a budget
// allows more evictions than there are candidates, it cannot be overrun and its
// allocations need not be counted. Least makes that one comparison for a whole node.
type Budgets struct {
	// Slack is by position in the state's list, and negative if too few allocations are
	// available already. It is empty if budgets do not matter to the search.
	Slack []int
	// Least is the smallest slack; math.MaxInt if there is none.
	Least int

	snap     *state.Snapshot
	relevant bool
	previous []int // Slack before the last Refresh
}

// Start computes the slack for a new search. relevant reports whether budgets matter
// to it.
func (b *Budgets) Start(snap *state.Snapshot, now int64, relevant bool) {
	b.relevant = relevant
	b.Refresh(snap, now)
}

// Relevant reports whether budgets matter to the search.
func (b *Budgets) Relevant() bool { return b.relevant }

// Refresh recomputes the slack on a snapshot. It costs one pass over the budgets.
func (b *Budgets) Refresh(snap *state.Snapshot, now int64) {
	b.snap = snap
	b.previous = append(b.previous[:0], b.Slack...)
	b.Slack, b.Least = b.Slack[:0], math.MaxInt
	if !b.relevant {
		return
	}
	for at := range snap.Budgets() {
		slack := snap.DisruptionsAllowed(int32(at), now)
		b.Slack, b.Least = append(b.Slack, slack), min(b.Least, slack)
	}
}

// Changed reports whether the last Refresh changed the slack of a budget.
func (b *Budgets) Changed(at int) bool { return b.Slack[at] != b.previous[at] }

// AppendStrictCosts appends the cost of evicting a row to strict budgets.
func (b *Budgets) AppendStrictCosts(costs Charges, row *state.Row) Charges {
	for _, at := range b.snap.GroupBudgets(row.Group) {
		if b.snap.Budgets()[at].Strict {
			costs = append(costs, Charge{at, 1})
		}
	}
	return costs
}

// IsExhausted reports whether evicting a row overruns a budget even if nothing else
// is evicted.
func (b *Budgets) IsExhausted(row *state.Row) bool {
	if !row.Started {
		return false
	}
	return slices.ContainsFunc(b.snap.GroupBudgets(row.Group), func(at int32) bool { return b.Slack[at] <= 0 })
}

// MayExhaustStrict reports whether a row of at most the ceiling is under a strict
// budget that the rows of its node could use up. rows ascend by priority.
func (b *Budgets) MayExhaustStrict(rows []state.Row, ceiling int64) bool {
	if b.Least >= len(rows) {
		return false
	}
	budgets := b.snap.Budgets()
	for x := range rows {
		if int64(rows[x].Priority) > ceiling {
			return false
		}
		for _, at := range b.snap.GroupBudgets(rows[x].Group) {
			if budgets[at].Strict && b.Slack[at] < len(rows) {
				return true
			}
		}
	}
	return false
}

// Overrun reports whether the candidates would overrun a budget if all of them were
// evicted. It overwrites charged.
func (b *Budgets) Overrun(candidates []*state.Row, charged *Charges) bool {
	if b.Least >= len(candidates) {
		return false
	}
	*charged = (*charged)[:0]
	for _, row := range candidates {
		if b.charge(row, len(candidates), charged) {
			return true
		}
	}
	return false
}

// MayOverrun is Overrun for the rows of a node up to the ceiling. Some of them may not
// be candidates, so that true means "possibly".
func (b *Budgets) MayOverrun(rows []state.Row, ceiling int64, charged *Charges) bool {
	if b.Least >= len(rows) {
		return false
	}
	*charged = (*charged)[:0]
	for x := range rows {
		if int64(rows[x].Priority) > ceiling {
			return false
		}
		if b.charge(&rows[x], len(rows), charged) {
			return true
		}
	}
	return false
}

// charge charges a row and reports whether that overruns a budget. Budgets with slack
// for most rows cannot be overrun by them and are not counted.
func (b *Budgets) charge(row *state.Row, most int, charged *Charges) bool {
	if !row.Started {
		return false
	}
	for _, at := range b.snap.GroupBudgets(row.Group) {
		if slack := b.Slack[at]; slack < most && charged.Add(at, 1) > slack {
			return true
		}
	}
	return false
}

// Violations returns how many victims overrun a budget if they are evicted one after
// another. It overwrites charged.
func (b *Budgets) Violations(victims []*state.Row, charged *Charges) (n int32) {
	if b.Least >= len(victims) {
		return 0
	}
	*charged = (*charged)[:0]
	for _, row := range victims {
		if !row.Started {
			continue
		}
		overrun := false
		for _, at := range b.snap.GroupBudgets(row.Group) {
			if slack := b.Slack[at]; slack < len(victims) {
				overrun = charged.Add(at, 1) > slack || overrun
			}
		}
		if overrun {
			n++
		}
	}
	return n
}

// Charges count the evictions that budgets are charged with. They are a list rather
// than a map because a node's victims are under few budgets.
type Charges []Charge

// A Charge is a number of evictions under one budget.
type Charge struct {
	Budget int32 // position in the state's list
	Count  int
}

// Add charges a budget with n more evictions and returns their new number.
func (c *Charges) Add(budget int32, n int) int {
	for i := range *c {
		if (*c)[i].Budget == budget {
			(*c)[i].Count += n
			return (*c)[i].Count
		}
	}
	*c = append(*c, Charge{budget, n})
	return n
}

// Of returns the number of evictions that a budget is charged with.
func (c Charges) Of(budget int32) int {
	for i := range c {
		if c[i].Budget == budget {
			return c[i].Count
		}
	}
	return 0
}

// EachViolation evicts victims one after another, in the order of the list, and calls
// visit with the position of each one that overruns a disruption budget.
func EachViolation(view *state.View, now int64, victims []*model.Allocation, visit func(i int)) {
	if len(view.Budgets()) == 0 {
		return
	}
	var c Charges
	for i, v := range victims {
		if !v.Available() {
			continue // it costs its budgets nothing
		}
		overrun := false
		for _, at := range view.GroupBudgets(v.Group) {
			// Every budget is charged, even after one is overrun.
			overrun = c.Add(at, 1) > view.DisruptionsAllowed(at, now) || overrun
		}
		if overrun {
			visit(i)
		}
	}
}
