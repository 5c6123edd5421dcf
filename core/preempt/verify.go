package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// verifier verifies the answer for one option after the other: it simulates the evictions
// in picking order, and reprieves. It refers to the batch and the guard of its worker.
type verifier struct {
	s     *search
	guard *protect.Guard
	batch *columns.Batch

	check fit.Check
	picks picks
	tried int // rows of the answer that were processed
	// seen is, by row of the call, the stamp of the option that picked it. A new stamp
	// clears all marks at once.
	seen    []uint32
	stamp   uint32
	charged protect.Charges // scratch
}

// reprieved replaces a pick that is not needed until the list is compacted.
const reprieved = -1

// accept verifies the answer for option o, rows of the call in picking order: it evicts
// one pick after the other until the group fits, then reprieves those that are not needed
// in reverse order. With keepAll the list stands as it is. It returns an error if the
// answer breaks a rule; a list that frees too little merely drops the option.
func (w *worker) accept(o int, answer []int32, keepAll bool) error {
	s, e, v := w.s, &w.batch.Entries[o], &w.verify
	v.reset(e, w.batch.DeficitOf(o, &s.scope.Dims))
	fitBefore := s.fitOf(&v.check)
	fits, err := v.evict(o, answer, keepAll)
	if err != nil {
		return err
	}
	p := &v.picks
	if s.outcomes[e.Slot] != Possible { // by another option of the node
		outcome := Declined
		if len(p.blocked) > 0 {
			outcome = Insufficient
		}
		s.outcomes[e.Slot] = s.missedOutcome(e.Slot, outcome)
	}
	if !fits && len(p.blocked) > 0 {
		w.retry(e)
	}
	findings := &w.guard.Findings
	findings.NonFinal = findings.NonFinal || !fits && s.traits.columns.Has(sdk.BudgetColumns)
	if !fits || len(p.list) == 0 {
		return nil
	}
	s.outcomes[e.Slot] = Possible
	if !keepAll && len(p.list) > 1 {
		v.reprieve(e)
	}
	opt := &s.options[e.Option]
	w.solve(opt, e)
	w.storeKept(o)
	if s.req.Explain {
		w.consider(opt, o, answer)
	}
	if s.traits.optionColumns.Has(sdk.VictimColumns) {
		opt.need = w.solutions.appendNeed(&w.batch.Cand, o)
	}
	opt.fitBefore, opt.fitAfter = fitBefore, s.fitOf(&v.check)
	return nil
}

// reset starts the fit check with an option before any victim leaves.
func (v *verifier) reset(e *columns.Entry, deficit []int64) {
	v.check.Reset(&e.Node, &fit.Setup{
		Ask: &v.s.req.Group.Ask, Dims: &v.s.scope.Dims, Deficit: deficit,
		Choice: e.Choice, Separated: e.Separated, Remote: e.Remote(),
	})
}

// evict removes picks until the group fits. v.picks holds those that were evicted.
func (v *verifier) evict(o int, answer []int32, keepAll bool) (fits bool, err error) {
	e, rows := &v.batch.Entries[o], v.batch.Rows
	v.picks.reset()
	v.startSeen(len(rows))
	if e.Guarded {
		return v.evictGuarded(o, answer, keepAll)
	}
	n := 0
	fits = v.check.Fits()
	for _, row := range answer {
		if fits && !keepAll {
			break
		}
		if err := v.checkPick(o, row); err != nil {
			return false, err
		}
		v.check.Remove(rows[row], v.separationMark(e, rows[row]))
		n++
		fits = v.check.Fits()
	}
	v.tried, v.picks.list = n, append(v.picks.list, answer[:n]...)
	return fits, nil
}

// startSeen starts recording which rows an option's answer lists.
func (v *verifier) startSeen(rows int) {
	v.stamp++
	if len(v.seen) < rows {
		v.seen = make([]uint32, 2*rows)
	}
}

// checkPick returns an error if an option's answer lists a row of another option, or a
// row twice.
func (v *verifier) checkPick(o int, row int32) error {
	version := v.s.traits.victims
	if first, last := v.batch.Cand.FirstRow[o], v.batch.Cand.FirstRow[o+1]; row < first || row >= last {
		return version.RecordBadAnswer("SelectVictims",
			"option %d lists row %d, which is not one of its rows %d to %d", o, row, first, last-1)
	}
	if v.seen[row] == v.stamp {
		return version.RecordBadAnswer("SelectVictims", "option %d lists row %d twice", o, row)
	}
	v.seen[row] = v.stamp
	return nil
}

// separationMark returns MustLeaveSeparation if a row excludes the group. Of the reasons
// to leave, only this one matters to the fit check.
func (v *verifier) separationMark(e *columns.Entry, row *state.Row) uint8 {
	if e.HasSeparation && v.s.req.Rules.Separated(v.s.options[e.Option].pos, row) {
		return sdk.MustLeaveSeparation
	}
	return 0
}

// reprieve restores victims in reverse order of picking if the group fits nevertheless.
// The last pick is always needed: without it the group did not fit.
func (v *verifier) reprieve(e *columns.Entry) {
	if e.Guarded {
		v.reprieveGuarded(e)
		return
	}
	list := v.picks.list
	for i := len(list) - 2; i >= 0; i-- {
		row := v.batch.Rows[list[i]]
		mark := v.separationMark(e, row)
		v.check.Restore(row, mark)
		if v.check.Fits() {
			list[i] = reprieved
		} else {
			v.check.Remove(row, mark)
		}
	}
	v.picks.compact()
}

// solve assigns the picks to an option as its victims.
func (w *worker) solve(opt *option, e *columns.Entry) {
	m := &w.solutions
	from := len(m.victims)
	m.assign(opt, e.Rows)
	m.victims = w.verify.appendVictims(m.victims, e)
	opt.victims = m.victims[from:len(m.victims):len(m.victims)]
	opt.fillCosts(w.s, &w.verify.charged)
	opt.relocate(w.s, &w.relocations, e)
}

// appendVictims appends the rows of the picks, with the cohorts that leave with them.
func (v *verifier) appendVictims(victims []*state.Row, e *columns.Entry) []*state.Row {
	for _, pick := range v.picks.list {
		row := v.batch.Rows[pick]
		if e.Guarded && slices.Contains(v.picks.whole, pick) {
			victims = v.appendCohort(victims, row)
		} else {
			victims = append(victims, row)
		}
	}
	return victims
}

// storeKept stores the victims of option o for its duplicates.
func (w *worker) storeKept(o int) {
	if len(w.dedup.Duplicates) == 0 {
		return
	}
	e, list := &w.batch.Entries[o], w.verify.picks.list
	e.KeptFrom, e.KeptCount = int32(len(w.keptRows)), int32(len(list))
	for _, row := range list {
		w.keptRows = append(w.keptRows, row-w.batch.Cand.FirstRow[o])
	}
}

// appendNeed returns the deficit of option o before any victim left.
func (m *solutionStore) appendNeed(in *sdk.Candidates, o int) []float64 {
	from := len(m.needs)
	for d := range in.Need {
		m.needs = append(m.needs, in.Need[d][o]+in.Freed[d][o])
	}
	return m.needs[from:]
}

// fitOf returns the node's rank with the group placed, if the chooser reads it.
func (s *search) fitOf(check *fit.Check) float64 {
	if !s.traits.optionColumns.Has(sdk.FitColumns) {
		return 0
	}
	return check.Score(s.req.Algorithm)
}
