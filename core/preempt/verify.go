package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// verifier is the memory for the verification of one option's answer.
type verifier struct {
	check fit.Check
	picks picks
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
	s, e := w.s, &w.batch.Entries[o]
	check := w.resetCheck(e, w.batch.DeficitOf(o, &s.scope.Dims))
	fitBefore := s.fitOf(check)
	fits, err := w.evict(o, answer, keepAll)
	if err != nil {
		return err
	}
	p := &w.verify.picks
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
		w.reprieve(e)
	}
	opt := &s.options[e.Option]
	w.solve(opt, e)
	w.storeKept(o)
	if s.traits.optionColumns.Has(sdk.VictimColumns) {
		opt.need = w.solutions.appendNeed(&w.batch.Cand, o)
	}
	opt.fitBefore, opt.fitAfter = fitBefore, s.fitOf(check)
	return nil
}

// evict removes picks until the group fits. verifier.picks holds those that were evicted.
func (w *worker) evict(o int, answer []int32, keepAll bool) (fits bool, err error) {
	v, e := &w.verify, &w.batch.Entries[o]
	v.picks.reset()
	v.startSeen(len(w.batch.Rows))
	if e.Guarded {
		return w.evictGuarded(o, answer, keepAll)
	}
	n := 0
	fits = v.check.Fits()
	for _, row := range answer {
		if fits && !keepAll {
			break
		}
		if err := w.checkPick(o, row); err != nil {
			return false, err
		}
		v.check.Remove(w.batch.Rows[row], w.separationMark(e, w.batch.Rows[row]))
		n++
		fits = v.check.Fits()
	}
	v.picks.list = append(v.picks.list, answer[:n]...)
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
func (w *worker) checkPick(o int, row int32) error {
	v, version := &w.verify, w.victims.version
	if first, last := w.batch.Cand.FirstRow[o], w.batch.Cand.FirstRow[o+1]; row < first || row >= last {
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
func (w *worker) separationMark(e *columns.Entry, row *state.Row) uint8 {
	if e.HasSeparation && w.s.req.Rules.Separated(w.s.options[e.Option].pos, row) {
		return sdk.MustLeaveSeparation
	}
	return 0
}

// reprieve restores victims in reverse order of picking if the group fits nevertheless.
// The last pick is always needed: without it the group did not fit.
func (w *worker) reprieve(e *columns.Entry) {
	if e.Guarded {
		w.reprieveGuarded(e)
		return
	}
	v := &w.verify
	list := v.picks.list
	for i := len(list) - 2; i >= 0; i-- {
		row := w.batch.Rows[list[i]]
		mark := w.separationMark(e, row)
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
	m, p := &w.solutions, &w.verify.picks
	from := len(m.victims)
	m.assign(opt, e.Rows)
	for _, pick := range p.list {
		row := w.batch.Rows[pick]
		if e.Guarded && slices.Contains(p.whole, pick) {
			m.victims = p.appendCohort(m.victims, w, row)
		} else {
			m.victims = append(m.victims, row)
		}
	}
	opt.victims = m.victims[from:len(m.victims):len(m.victims)]
	opt.fillCosts(w.s, &w.verify.charged)
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
