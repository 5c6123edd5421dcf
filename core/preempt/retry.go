package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
)

// retry schedules another call about an option, without the rows that strict budgets
// kept: the policy chooses among the remaining ones. Each retry excludes at least one more
// candidate, so that retries end.
func (w *worker) retry(e *columns.Entry) {
	again := *e
	limits := &columns.Limits{}
	if again.Limits != nil {
		*limits = *again.Limits
		limits.Blocked = slices.Clone(limits.Blocked)
	}
	for _, pick := range w.verify.picks.blocked {
		limits.Blocked = append(limits.Blocked, w.batch.Rows[pick])
	}
	again.Limits = limits
	w.retries = append(w.retries, again)
}

// layOutRetries lays out the options scheduled for another call, if their remaining
// candidates suffice.
func (w *worker) layOutRetries() {
	s := w.s
	list := w.retries
	w.retries = nil
	w.resetCall()
	for i := range list {
		e := &list[i]
		w.collectAgain(e)
		w.deficit = s.scope.Dims.AppendDeficit(w.deficit[:0], &e.Node, &s.req.Group.Ask)
		w.narrow(e)
		n := 0
		if e.AmountsOnly {
			n = w.candidates.reachAmounts(s, e)
		} else {
			n = w.reach(e)
		}
		if n > 0 {
			w.addOption(e, n)
		}
	}
}

// collectAgain collects the candidates of an option without those that strict budgets
// kept.
func (w *worker) collectAgain(e *columns.Entry) {
	s, c := w.s, &w.candidates
	pos := s.req.Nodes[e.Slot]
	all := e.Limits.All
	if s.traits.delta == nil {
		e.Separated = 0
		c.collect(s, &w.guard, e, pos)
		all = slices.Clone(c.rows)
	}
	c.reset()
	for _, row := range all {
		if !slices.Contains(e.Limits.Blocked, row) {
			c.rows, c.mustLeave = append(c.rows, row), append(c.mustLeave, s.mustLeave(pos, row))
		}
	}
}
