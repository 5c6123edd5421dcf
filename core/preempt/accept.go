package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// accept evicts the picks (rows of the call) of option o one by one until the
// group fits, then spares in reverse what is not needed. With whole the list
// stands as it is.
func (s *searcher) accept(o int, picks []int32, whole bool) error {
	f := s.f
	p := &s.batch.places[o]
	opt := &f.options[p.option]
	s.trial.reset(p, &f.req.Group.Ask, &f.watch, s.batch.lacksOf(o, &f.watch))
	before := s.fitOf()
	fits, err := s.evict(o, picks, whole)
	if err != nil {
		return err
	}
	if f.why[p.k] != Possible {
		why := Declined
		if len(s.blocked) > 0 {
			why = Insufficient
		}
		f.why[p.k] = s.missed(p.k, why)
	}
	if !fits && len(s.blocked) > 0 {
		s.askAgain(o)
	}
	s.unsettled = s.unsettled || !fits && s.columns.Has(sdk.BudgetColumns)
	if !fits || len(s.picks) == 0 {
		return nil
	}
	f.why[p.k] = Possible
	if !whole && len(s.picks) > 1 {
		s.spare(o)
	}
	s.fill(p, opt, s.picks)
	s.keep(o, s.picks)
	if s.f.columns.Has(sdk.VictimColumns) {
		from := len(s.needs)
		for d := range s.batch.cand.Need {
			s.needs = append(s.needs, s.batch.cand.Need[d][o]+s.batch.cand.Freed[d][o])
		}
		opt.need = s.needs[from:]
	}
	opt.fitBefore, opt.fitAfter = before, s.fitOf()
	return nil
}

// evict removes picks until the group fits, and keeps in s.picks which it took.
func (s *searcher) evict(o int, picks []int32, whole bool) (fits bool, err error) {
	if s.blocked = s.blocked[:0]; s.batch.places[o].guarded {
		return s.evictGuarded(o, picks, whole)
	}
	s.newStamp()
	n := 0
	fits = s.trial.fits()
	for _, row := range picks {
		if fits && !whole {
			break
		}
		if err := s.checkPick(o, row); err != nil {
			return false, err
		}
		s.trial.remove(s.batch.rows[row], s.marks(o, row))
		n++
		fits = s.trial.fits()
	}
	s.picks = append(s.picks[:0], picks[:n]...)
	return fits, nil
}

// newStamp begins to note which rows an option's answer lists.
func (s *searcher) newStamp() {
	s.stamp++
	if len(s.seen) < len(s.batch.rows) {
		s.seen = make([]uint32, 2*len(s.batch.rows))
	}
}

// checkPick is a fault where an option's answer lists a row that is none of its
// own, or one twice.
func (s *searcher) checkPick(o int, row int32) error {
	if first, last := s.batch.cand.FirstRow[o], s.batch.cand.FirstRow[o+1]; row < first || row >= last {
		return s.victims.version.RecordBadAnswer("SelectVictims",
			"option %d lists row %d, which is none of its rows %d to %d", o, row, first, last-1)
	}
	if s.seen[row] == s.stamp {
		return s.victims.version.RecordBadAnswer("SelectVictims", "option %d lists row %d twice", o, row)
	}
	s.seen[row] = s.stamp
	return nil
}

// marks is why a row of the call must leave; it matters for separation alone.
func (s *searcher) marks(o int, row int32) uint8 {
	if !s.batch.places[o].apart {
		return 0
	}
	return s.marksOf(o, s.batch.rows[row])
}

// marksOf is marks for any row of option o's node.
func (s *searcher) marksOf(o int, row *state.Row) uint8 {
	if s.batch.places[o].apart && s.f.req.Rules.Separated(s.f.options[s.batch.places[o].option].pos, row) {
		return sdk.MustLeaveSeparation
	}
	return 0
}

// spare puts victims back in reverse order of picking where the group still
// fits. The last pick is always needed: without it the group did not fit.
func (s *searcher) spare(o int) {
	if s.batch.places[o].guarded {
		s.spareGuarded(o)
		return
	}
	for i := len(s.picks) - 2; i >= 0; i-- {
		row, marks := s.batch.rows[s.picks[i]], s.marks(o, s.picks[i])
		s.trial.restore(row, marks)
		if s.trial.fits() {
			s.picks[i] = spared
		} else {
			s.trial.remove(row, marks)
		}
	}
	s.picks = slices.DeleteFunc(s.picks, func(row int32) bool { return row == spared })
}

// fill records an option's victims.
func (s *searcher) fill(p *place, opt *option, picks []int32) {
	from := len(s.arena)
	s.answers.give(opt, p.rows)
	opt.highest, opt.sum, opt.lost, opt.violations = math.MinInt32, 0, 0, 0
	for _, at := range picks {
		row := s.batch.rows[at]
		if p.guarded && slices.Contains(s.wholes, at) {
			s.arena = s.appendCompany(s.arena, row)
		} else {
			s.arena = append(s.arena, row)
		}
	}
	opt.victims = s.arena[from:len(s.arena):len(s.arena)]
	for _, row := range opt.victims {
		opt.highest = max(opt.highest, row.Priority)
		opt.sum += int64(row.Priority)
	}
	if s.f.columns.Has(sdk.LostWorkColumn) {
		opt.lost = s.lostWork(opt.victims)
	}
	if s.f.columns.Has(sdk.BudgetColumns) {
		opt.violations = s.violations(opt.victims)
	}
	if s.f.columns.Has(sdk.StartColumn) {
		opt.start = s.start(opt)
	}
}

// start is when the first of an option's victims with the highest priority started.
func (s *searcher) start(opt *option) int64 {
	start := int64(math.MaxInt64)
	for _, row := range opt.victims {
		if row.Priority == opt.highest {
			start = min(start, s.f.req.Now, row.Start)
		}
	}
	return start
}

func (s *searcher) lostWork(victims []*state.Row) (lost int64) {
	for _, row := range victims {
		lost += row.Group.LostWork(row.Alloc.Age(s.f.req.Now))
	}
	return lost
}

// keep remembers the victims of option o for its twins.
func (s *searcher) keep(o int, picks []int32) {
	if len(s.twins.list) == 0 {
		return
	}
	p := &s.batch.places[o]
	p.kept, p.keeps = int32(len(s.kept)), int32(len(picks))
	for _, row := range picks {
		s.kept = append(s.kept, row-s.batch.cand.FirstRow[o])
	}
}

// fitOf ranks the node with the group placed in the trial's room.
func (s *searcher) fitOf() float64 {
	if !s.f.columns.Has(sdk.FitColumns) {
		return 0
	}
	return s.trial.rank(s.f.req.Algorithm)
}
