package preempt

import (
	"math"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A policy that says which option it takes, and besides in which order victims go
// (Info.YoungestFirst), leaves nothing open about a node where amounts and budgets
// alone decide. The host then knows what an option there costs, and asks about the one
// that costs least and its equals. What the policy answers stands, as everywhere: if it
// does not keep its word, more nodes are asked about.

// canForetell is whether the policy says all that.
func (s *searcher) canForetell() bool {
	f, v := s.f, s.victims.version
	return s.quick && v.Info().YoungestFirst && s.columns.Has(sdk.StartColumn) && !v.KeepsRedundant() &&
		v == f.chooser.version && v.Hooks().Has(policy.HookSelectVictims) && len(f.req.Excluded) == 0
}

// foretell is what the option on a node costs; ok is false where that cannot be said.
func (s *searcher) foretell(p *place) (c cost, ok bool) {
	around := s.f.leastSlack < len(p.rows)
	if !s.foretells || p.chunk.HasEvictionRules()>>p.i&1 == 1 || around && !s.around {
		return c, false
	}
	missing := s.startMissing()
	if missing == 0 {
		return c, false // something else than amounts stands in the way
	}
	s.startLine(p.rows)
	l := &s.line
	if around && l.findFates(s, len(l.rows)) {
		for l.next < len(l.rows) {
			l.lineUp(s)
		}
		l.charge(s)
	}
	if !around || l.some {
		missing = l.pick(s, goes, missing)
	}
	within := missing <= 0 // what budgets have left
	if !within && around && !s.strict {
		missing = l.pick(s, overruns, missing)
	}
	if missing > 0 {
		return c, false
	}
	l.spare(s)
	c = s.costOfPicks()
	if !within && s.f.columns.Has(sdk.BudgetColumns) {
		c.violations = s.violationsOfPicks()
	}
	return c, true
}

// startMissing makes s.missing what the place at hand lacks, and tells in how many of
// the dimensions asked.
func (s *searcher) startMissing() (missing int) {
	s.missing = append(s.missing[:0], s.lacks...)
	for _, lack := range s.lacks[:s.f.watch.asked] {
		if lack > 0 {
			missing++
		}
	}
	return missing
}

// startLine starts the line of a node.
func (s *searcher) startLine(rows []state.Row) {
	l := &s.line
	l.order, l.picks, l.fate, l.next, l.known, l.some = l.order[:0], l.picks[:0], l.fate[:0], 0, 0, false
	n := len(rows)
	for n > 0 && int64(rows[n-1].Priority) > s.ceiling {
		n--
	}
	l.rows = rows[:n]
}

// costOfPicks is what the eviction of the line's picks costs, budgets apart.
func (s *searcher) costOfPicks() cost {
	l := &s.line
	c := cost{highest: math.MinInt32, victims: int32(len(l.picks)), start: math.MaxInt64}
	for _, x := range l.picks {
		priority, start := l.rows[x].Priority, s.startOf(int(x))
		c.sum += int64(priority) + raised
		switch {
		case priority > c.highest:
			c.highest, c.start = priority, start
		case priority == c.highest:
			c.start = min(c.start, start)
		}
	}
	return c
}

// violationsOfPicks is how many of the line's picks overrun a budget.
func (s *searcher) violationsOfPicks() int32 {
	l := &s.line
	l.victims = l.victims[:0]
	for _, x := range l.picks {
		l.victims = append(l.victims, &l.rows[x])
	}
	return s.violations(l.victims)
}
