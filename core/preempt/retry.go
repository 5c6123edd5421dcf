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
// candidates suffice. An option whose remaining candidates free too little gets no
// answer and stays infeasible.
func (w *worker) layOutRetries() {
	s := w.s
	list := w.retries
	w.retries = nil
	w.resetCall()
	for i := range list {
		e := &list[i]
		w.candidates.collectAgain(s, &w.guard, e)
		w.deficit = s.scope.Dims.AppendDeficit(w.deficit[:0], &e.Node, &s.req.Group.Ask)
		w.candidates.narrow(s, e, w.deficit)
		n := 0
		if e.AmountsOnly {
			n = w.candidates.reachAmounts(s, e)
		} else {
			w.verify.reset(e, w.deficit)
			n = w.candidates.reach(s, e, &w.verify.check)
		}
		if n > 0 {
			w.addOption(e, n)
		}
	}
}
