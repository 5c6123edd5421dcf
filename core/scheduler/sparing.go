package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// A policy's victims are taken in its order, and whom a strict budget keeps is passed
// over. So one who is taken early may use up what would have let go of two others, and
// the instance waits though victims are there. Going back on the order everywhere would
// be a search on every node for every placement. So it is done only where nothing else
// was found and strict budgets are why, on the nodes where they let go of some and not
// of all: of those one set after another is spared, the smallest first. Where that makes
// room on several nodes, the policy chooses.

// An instance tries so many sets, and all of an evaluation so many: some milliseconds.
const (
	maxSparingLooks    = 512
	maxSparingLooksAll = 4096
)

// sparing is such a search for one instance.
type sparing struct {
	*placer
	queue []sparingTry    // by size
	seen  map[string]bool // sets
	open  []int32         // nodes on which one helps
	helps sparedSet       // all of those
	size  int             // of each
	looks int

	charges []charge // of the node at hand
}

// sparingTry is a set of those to be spared on a node.
type sparingTry struct {
	pos  int32
	some []*model.Allocation // of whom
	set  sparedSet
}

// chooseSparing is the best option with somebody spared whom the policy would take
// early. Where there is none, the search that found nothing is begun again, for
// explanations tell of it.
func (p *placer) chooseSparing() (choice preempt.Choice, ok bool, err error) {
	if p.run.job.AllAtOnce || p.run.base.StrictBudgetCount() == 0 { // a gang goes further: see gangSearch
		return choice, false, nil
	}
	s := sparing{placer: p, seen: map[string]bool{}, helps: sparedSet{}}
	for _, pos := range p.protected() {
		if len(s.queue) > maxSparingLooks {
			break // which is as far as anybody looks
		}
		s.extend(sparingTry{pos: pos, some: s.contested(pos)})
	}
	if len(s.queue) == 0 {
		return choice, false, nil
	}
	if err := s.look(); err != nil {
		return choice, false, err
	}
	if len(s.open) > 0 {
		if choice, ok, err = p.bestSparing(s.open, s.helps); ok || err != nil {
			return choice, ok, err
		}
	}
	p.close()
	return choice, false, p.search(p.ranker.full())
}

// look tries sets until some of one size help.
func (s *sparing) look() error {
	r := s.run
	for ; len(s.queue) > 0; s.queue = s.queue[1:] {
		try := s.queue[0]
		switch {
		case slices.Contains(s.open, try.pos):
			continue
		case len(s.open) > 0 && len(try.set) > s.size:
			return nil
		case s.looks == maxSparingLooks || r.sparingLooks == maxSparingLooksAll:
			s.cut = s.cut || len(s.open) == 0
			r.cutSparing(len(s.open) > 0)
			return nil
		}
		s.looks++
		r.sparingLooks++
		_, ok, err := s.bestSparing([]int32{try.pos}, try.set)
		if err != nil {
			return err
		}
		if !ok {
			s.extend(try)
			continue
		}
		s.open, s.size = append(s.open, try.pos), len(try.set)
		maps.Copy(s.helps, try.set)
	}
	return nil
}

// extend queues every set that spares one more.
func (s *sparing) extend(try sparingTry) {
	for _, more := range s.run.sparing(try.set, try.some) {
		if name := namesOf(slices.Collect(maps.Keys(more))); !s.seen[name] {
			s.seen[name] = true
			s.queue = append(s.queue, sparingTry{try.pos, try.some, more})
		}
	}
}

// bestSparing is the best option on some nodes with somebody spared.
func (p *placer) bestSparing(nodes []int32, spared sparedSet) (preempt.Choice, bool, error) {
	p.close()
	p.spared = spared
	err := p.search(nodes)
	p.spared = nil
	if err != nil {
		return preempt.Choice{}, false, err
	}
	choice, ok, err := p.run.s.finder.Best()
	if ok {
		choice.Victims, choice.Device = slices.Clone(choice.Victims), slices.Clone(choice.Device)
		p.close() // the next instance is searched for everywhere
	}
	return choice, ok, err
}

// cutSparing counts a search that found nothing before everything was tried, once.
func (r *run) cutSparing(found bool) {
	if !found && !r.sparingCut {
		r.sparingCut = true
		r.out.SearchesCut++
	}
}

// charge is that a strict budget is about a row.
type charge struct {
	budget int32
	row    *state.Row
}

// contested lists whom a strict budget lets go of on a node that does not let go of
// all who are under it there: with nobody else it matters who goes. Where somebody has
// to go from other nodes, too, or whole, they count, and it may matter with everybody.
func (s *sparing) contested(pos int32) (list []*model.Allocation) {
	r := s.run
	rows := s.charge(pos)
	if !s.maySuffice(pos) {
		return nil
	}
	elsewhere := s.rules != nil && !s.rules.Allows(pos) ||
		slices.ContainsFunc(rows, func(row state.Row) bool { return row.Group.Job.AllOrNone })
	for k := range rows {
		row := &rows[k]
		matters, kept, under := elsewhere, false, false
		for _, c := range s.charges {
			if c.row == row {
				slack := r.proposed.DisruptionsAllowed(c.budget, r.now)
				matters, kept, under = matters || s.count(c.budget) > slack, kept || slack < 1, true
			}
		}
		if matters && !kept && (under || row.Group.Job.AllOrNone) {
			list = append(list, row.Alloc)
		}
	}
	return list
}

// charge finds which strict budgets are about whom on a node, and returns those of low
// enough priority.
func (s *sparing) charge(pos int32) []state.Row {
	r := s.run
	chunk, i := r.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	rows := chunk.Rows(i)
	s.charges = s.charges[:0]
	for k := range rows {
		row := &rows[k]
		if int64(row.Priority) > r.ceiling {
			return rows[:k]
		}
		if !row.Started {
			continue // it costs nothing
		}
		for _, at := range r.proposed.GroupBudgets(row.Group) {
			if r.proposed.Budgets()[at].Strict {
				s.charges = append(s.charges, charge{at, row})
			}
		}
	}
	return rows
}

func (s *sparing) count(budget int32) (n int) {
	for _, c := range s.charges {
		if c.budget == budget {
			n++
		}
	}
	return n
}

// maySuffice is whether a node would have the amounts with everybody gone but for those
// that one strict budget keeps whoever else goes: the largest are let go.
func (s *sparing) maySuffice(pos int32) bool {
	r := s.run
	most := r.mostRoom(pos)
	for _, d := range s.group.Ask.Dims {
		slices.SortFunc(s.charges, func(a, b charge) int {
			return cmp.Or(cmp.Compare(a.budget, b.budget), cmp.Compare(b.row.Group.Ask.Vec[d], a.row.Group.Ask.Vec[d]))
		})
		kept, left := int64(0), 0
		for k, c := range s.charges {
			if k == 0 || c.budget != s.charges[k-1].budget {
				kept, left = 0, max(0, r.proposed.DisruptionsAllowed(c.budget, r.now))
			}
			if left--; left < 0 {
				kept += c.row.Group.Ask.Vec[d]
			}
			if most[d]-kept < s.group.Ask.Vec[d] {
				return false
			}
		}
	}
	return true
}
