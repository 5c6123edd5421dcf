package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
)

// picks are the victims of the option at hand, as rows of the call.
type picks struct {
	list []int32 // in picking order
	// whole are those of list that evict their all-or-none job with them. blocked are
	// picks that were not evicted, as a strict budget or a member of their cohort
	// protects them. Both are empty on nodes that are not guarded.
	whole, blocked []int32
	charged        protect.Charges // of list, to strict budgets
	leaving        []*state.Row    // scratch: rows that leave with a pick
}

// reset starts another option.
func (p *picks) reset() {
	p.list, p.whole, p.blocked, p.charged = p.list[:0], p.whole[:0], p.blocked[:0], p.charged[:0]
}

// compact removes reprieved picks.
func (p *picks) compact() {
	p.list = slices.DeleteFunc(p.list, func(pick int32) bool { return pick == reprieved })
}

// evictGuarded is evict for a guarded node: a pick may evict its whole cohort, or be
// blocked.
func (v *verifier) evictGuarded(o int, answer []int32, keepAll bool) (fits bool, err error) {
	e, p := &v.batch.Entries[o], &v.picks
	fits, v.tried = v.check.Fits(), 0
	for _, pick := range answer {
		if fits && !keepAll {
			break
		}
		v.tried++
		if err := v.checkPick(o, pick); err != nil {
			return false, err
		}
		row := v.batch.Rows[pick]
		if p.isGone(v.batch.Rows, row) {
			continue
		}
		alone := v.mayLeaveAlone(row)
		if !v.charge(e.Slot, row, alone) {
			p.blocked = append(p.blocked, pick)
			continue
		}
		if !alone {
			p.whole = append(p.whole, pick)
		}
		for _, row := range v.leavingWith(e, pick) {
			v.check.Remove(row, v.separationMark(e, row))
		}
		p.list = append(p.list, pick)
		fits = v.check.Fits()
	}
	return fits, nil
}

// isGone reports whether the job of a row was evicted whole with an earlier pick. rows
// are those of the call.
func (p *picks) isGone(rows []*state.Row, row *state.Row) bool {
	if len(p.whole) == 0 || !row.Group.Job.AllOrNone {
		return false
	}
	key := row.Group.Job.Key()
	return slices.ContainsFunc(p.whole, func(pick int32) bool { return rows[pick].Group.Job.Key() == key })
}

// mayLeaveAlone reports whether a row may be the next pick without its cohort: its job
// is not all-or-none, or enough of its group stay.
func (v *verifier) mayLeaveAlone(row *state.Row) bool {
	if !row.Group.Job.AllOrNone {
		return true
	}
	left := v.guard.Cohort(row.Group.Job.Key()).Surplus[row.Group.Name]
	if left == 0 || v.guard.IsTolerated(row) {
		return false
	}
	for _, pick := range v.picks.list {
		if g := v.batch.Rows[pick].Group; g.Job.AllOrNone && g.Name == row.Group.Name && g.Job.Key() == row.Group.Job.Key() {
			left--
		}
	}
	return left > 0
}

// charge charges a victim, and its cohort unless it leaves alone, to strict budgets. It
// returns false if one lacks the slack, or if a member of the cohort is protected.
func (v *verifier) charge(slot int32, row *state.Row, alone bool) bool {
	p := &v.picks
	if !alone && v.guard.Cohort(row.Group.Job.Key()).Protected {
		v.guard.Findings.NonFinal = true
		return false
	}
	if !v.s.scope.Strict {
		return true
	}
	if p.leaving = p.leaving[:0]; alone {
		p.leaving = append(p.leaving, row)
	} else {
		p.leaving = v.appendCohort(p.leaving, row)
	}
	return v.guard.Charge(slot, p.leaving, &p.charged)
}

// leavingWith returns a pick with those that leave with it, as far as they matter to the
// option. The list is valid until the next call.
func (v *verifier) leavingWith(e *columns.Entry, pick int32) []*state.Row {
	p := &v.picks
	p.leaving = p.leaving[:0]
	if row := v.batch.Rows[pick]; slices.Contains(p.whole, pick) {
		p.leaving = v.appendConcerned(p.leaving, e, row)
	} else {
		p.leaving = append(p.leaving, row)
	}
	return p.leaving
}

// appendConcerned appends those members of a row's cohort that matter to an option: the
// ones on its node, and those that must leave another node for its sake.
func (v *verifier) appendConcerned(list []*state.Row, e *columns.Entry, row *state.Row) []*state.Row {
	key := row.Group.Job.Key()
	cohort := v.guard.Cohort(key)
	from := len(list)
	for _, at := range cohort.On(v.s.options[e.Option].pos) {
		list = append(list, cohort.Rows[at])
	}
	for _, member := range e.Remote() {
		if member.Group.Job.AllOrNone && member.Group.Job.Key() == key {
			list = append(list, member)
		}
	}
	return v.picks.dropAlone(list, from, cohort, v.batch.Rows)
}

// appendCohort appends the cohort of a row, except for picks that left alone before it.
func (v *verifier) appendCohort(list []*state.Row, row *state.Row) []*state.Row {
	cohort := v.guard.Cohort(row.Group.Job.Key())
	from := len(list)
	return v.picks.dropAlone(cohort.AppendMembers(list, row), from, cohort, v.batch.Rows)
}

// dropAlone removes picks that left alone from list[from:]. rows are those of the call.
func (p *picks) dropAlone(list []*state.Row, from int, cohort *protect.Cohort, rows []*state.Row) []*state.Row {
	if cohort.Surplus == nil {
		return list // none may leave alone
	}
	leftAlone := func(row *state.Row) bool {
		return slices.ContainsFunc(p.list, func(pick int32) bool {
			return pick != reprieved && rows[pick].Alloc == row.Alloc && !slices.Contains(p.whole, pick)
		})
	}
	return append(list[:from], slices.DeleteFunc(list[from:], leftAlone)...)
}

// reprieveGuarded is reprieve for a guarded node: a cohort is restored whole or not at
// all, and picks of a job that is evicted whole are not restored one by one.
func (v *verifier) reprieveGuarded(e *columns.Entry) {
	p := &v.picks
	for i := len(p.list) - 2; i >= 0; i-- {
		pick := p.list[i]
		whole := slices.Index(p.whole, pick)
		if whole < 0 && p.isGone(v.batch.Rows, v.batch.Rows[pick]) {
			continue
		}
		for _, row := range v.leavingWith(e, pick) {
			v.check.Restore(row, v.separationMark(e, row))
		}
		switch {
		case !v.check.Fits():
			for _, row := range v.leavingWith(e, pick) {
				v.check.Remove(row, v.separationMark(e, row))
			}
		case whole >= 0:
			p.list[i], p.whole = reprieved, slices.Delete(p.whole, whole, whole+1)
		default:
			p.list[i] = reprieved
		}
	}
	p.compact()
}
