package optimal

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// budgets holds the remaining disruption budgets for the current option. Sets that
// overrun none are preferred to all others, regardless of their cost.
type budgets struct {
	refs  *policy.BudgetRefs // nil: there are none
	slack []int32
	left  []int32 // by budget, less the chosen rows
}

func (b *budgets) load(in *policy.Candidates) {
	b.refs = nil
	if in.Shared == nil || in.Rows.Budgets == nil || len(in.Rows.Budgets.At) == 0 {
		return
	}
	b.refs, b.slack = in.Rows.Budgets, in.Shared.Budgets.Slack
	b.left = append(b.left[:0], b.slack...)
}

// of returns the budgets that a row is charged to.
func (b *budgets) of(row int32) []int32 { return b.refs.At[b.refs.First[row]:b.refs.First[row+1]] }

func (b *budgets) add(row, by int32) {
	for _, at := range b.of(row) {
		b.left[at] -= by
	}
}

// allow reports whether one more row overruns no budget.
func (b *budgets) allow(row int32) bool {
	for _, at := range b.of(row) {
		if b.left[at] <= 0 {
			return false
		}
	}
	return true
}

// overrun reports whether rows together overrun a budget.
func (b *budgets) overrun(lists ...[]int32) (overrun bool) {
	if b.refs == nil {
		return false
	}
	for _, rows := range lists {
		for _, row := range rows {
			overrun = overrun || !b.allow(row)
			b.add(row, 1)
		}
	}
	for _, rows := range lists {
		for _, row := range rows {
			b.add(row, -1)
		}
	}
	return overrun
}

// dearest exceeds the cost of any set.
var dearest = cost{waste: math.MaxInt64 / 2}

// avoid searches for the cheapest set among the rows first to end that overruns no
// budget, if the best known set overruns one. The rows picked in the balance are
// fixed.
func (p *Policy) avoid(first, end int) {
	if len(p.best) == 0 || !p.budgets.overrun(p.fixed, p.best) {
		return
	}
	for _, row := range p.fixed {
		p.budgets.add(row, 1)
	}
	for to := first; to < end; {
		to = p.level(to, end)
		p.lay(first, to)
		p.search.budgets = &p.budgets
		found := p.search.run(dearest)
		p.search.budgets = nil
		if found != nil {
			p.best = append(p.best[:0], found...)
			break
		}
	}
	for _, row := range p.fixed {
		p.budgets.add(row, -1)
	}
}

// level returns the end of the rows of a priority, or of all rows if priorities do not come first.
func (p *Policy) level(from, end int) int {
	if p.cost != byPriority {
		return end
	}
	to := from + 1
	for to < end && p.rows.Priority[to] == p.rows.Priority[from] {
		to++
	}
	return to
}
