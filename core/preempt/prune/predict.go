package prune

import (
	"math"

	"github.com/cede-scheduler/cede/core/preempt/fit"
)

// A policy that declares which option it takes, and also in which order it takes victims
// (Info.YoungestFirst), leaves nothing open about a node where amounts and budgets alone
// decide. The host then computes the cost of the option there, and calls the policy about
// the cheapest option and its equals only. The policy's answer stands, as everywhere: if
// it differs from the declaration, more nodes are evaluated.

// predict returns the cost of the option on a node; ok is false if it cannot be
// predicted. It simulates the policy: victims by ascending priority, the youngest first;
// those that overrun a budget last; then the reprieve of redundant ones.
func (e *Estimator) predict(n *fit.Node) (c Cost, ok bool) {
	s := e.scope
	budgets := s.Budgets.Least < len(n.Rows) // a budget may be overrun
	if !e.mode.Predictable || n.Chunk.HasEvictionRules()>>n.Index&1 == 1 || budgets && !e.mode.BudgetsFirst {
		return c, false
	}
	short := e.startDeficit()
	if short == 0 {
		return c, false // the obstacle is not an amount
	}
	l := &e.order
	l.start(n.Rows, s.Ceiling)
	if budgets && l.classify(s, len(l.rows)) {
		// It depends on the other victims if one overruns a budget: all candidates are charged.
		for l.next < len(l.rows) {
			l.sortNext(s)
		}
		l.charge(s)
	}
	if !budgets || l.hasEvictable {
		short = l.pick(s, e.left, evictable, short)
	}
	withinBudgets := short <= 0
	if !withinBudgets && budgets && !s.Strict {
		short = l.pick(s, e.left, overrunning, short)
	}
	if short > 0 {
		return c, false
	}
	l.reprieve(&s.Dims, e.left)
	c = e.costOfPicks()
	if !withinBudgets && e.mode.CountsViolations {
		c.Violations = s.Budgets.Violations(l.pickedRows(), &e.charged)
	}
	return c, true
}

// costOfPicks returns the cost of the picks, apart from budget violations.
func (e *Estimator) costOfPicks() Cost {
	l := &e.order
	c := Cost{Highest: math.MinInt32, Victims: int32(len(l.picks)), Start: math.MaxInt64}
	for _, x := range l.picks {
		priority, start := l.rows[x].Priority, l.startOf(int(x), e.scope.Now)
		c.Sum += int64(priority) + raise
		switch {
		case priority > c.Highest:
			c.Highest, c.Start = priority, start
		case priority == c.Highest:
			c.Start = min(c.Start, start)
		}
	}
	return c
}
