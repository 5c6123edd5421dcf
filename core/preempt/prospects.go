package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A policy that says which option it takes (Info.LeastFirst) need not be asked about
// most nodes of a large cluster: what evictions there cost at least can be told from
// priorities, amounts and budgets, in a fraction of the time, and others cost less. So
// nodes are asked about in rounds, those that may cost least first, until an option is
// known that none of the rest can beat. The rest waits: when that option is taken, the
// next may be among it. Which nodes are asked about depends on neither workers nor
// chance.

// cost is what a policy with LeastFirst compares, in its order: of an option what it
// costs, of a node that nobody asked about what an option there costs at least.
type cost struct {
	violations, highest int32
	sum                 int64 // of priorities, each raised above zero
	victims             int32
	start               int64 // of the most important victims, at the latest
}

// less is whether c comes before o.
func (c *cost) less(o *cost) bool {
	switch {
	case c.violations != o.violations:
		return c.violations < o.violations
	case c.highest != o.highest:
		return c.highest < o.highest
	case c.sum != o.sum:
		return c.sum < o.sum
	case c.victims != o.victims:
		return c.victims < o.victims
	}
	return c.start > o.start
}

const raised = 1 << 31 // what makes a priority a number above zero

func (o *option) cost() cost {
	n := int32(len(o.victims))
	return cost{o.violations, o.highest, o.sum + int64(n)*raised, n, o.start}
}

// prospect is a node with what evictions there cost at least.
type prospect struct {
	k     int32 // position in Finder.req.Nodes; -1: it has to be asked about
	exact bool  // they cost just that
	cost
}

// less orders nodes by what they cost at least, and equals by position.
func (p *prospect) less(o *prospect) bool {
	return p.cost.less(&o.cost) || p.k < o.k && !o.cost.less(&p.cost)
}

// prospects is nodes that have not been asked about: a heap, the least of them first.
type prospects []prospect

func (h prospects) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// sink moves what is at i down to where it belongs.
func (h prospects) sink(i int) {
	p := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].less(&h[child]) {
			child++
		}
		if !h[child].less(&p) {
			break
		}
		h[i], i = h[child], child
	}
	h[i] = p
}

// pop takes the least.
func (h *prospects) pop() prospect {
	list := *h
	least, last := list[0], len(list)-1
	list[0] = list[last]
	if *h = list[:last]; last > 0 {
		h.sink(0)
	}
	return least
}

// firstRound is how many nodes the first round asks about. Another one that finds no
// option is followed by one of four times as many.
const firstRound = 64

// asksInRounds is whether the policy's answers allow that, and it pays.
func (f *Finder) asksInRounds() bool {
	w := f.workers[0]
	return f.chooser.version.Info().LeastFirst && w.amounts && w.delta == nil && f.columns.Has(sdk.StartColumn) &&
		len(f.todo) == len(f.alike) && len(f.todo) >= blockNodes
}

// searchInRounds is searchAll for such a policy.
func (f *Finder) searchInRounds() {
	f.prospects = sized(f.prospects, len(f.todo))
	f.sideBySide(func(w *searcher, first, step int) { w.findProspects(first, step) })
	f.asking, f.round = f.asking[:0], firstRound
	f.waiting = f.prospects[:0]
	for i, p := range f.prospects {
		if p.k >= 0 {
			f.waiting = append(f.waiting, p)
		} else {
			f.asking = append(f.asking, f.todo[i])
		}
	}
	f.waiting.order()
	f.sideBySide((*searcher).searchBlocks)
	f.collect()
	f.searchOn(false)
}

// searchOn asks about further nodes, until no other can have a better option than those
// that are known, or all of them. The first round finds an option that is good; the
// second asks about all that could be better.
func (f *Finder) searchOn(all bool) {
	for len(f.waiting) > 0 && f.fault == nil {
		f.asking = f.asking[:0]
		if best, known := f.leastCost(); all || !known {
			f.takeRound(all)
		} else {
			for len(f.waiting) > 0 && f.mayBeat(&f.waiting[0], &best) {
				f.asking = append(f.asking, f.waiting.pop().k)
			}
		}
		if len(f.asking) == 0 {
			return
		}
		slices.Sort(f.asking)
		f.sideBySide((*searcher).searchBlocks)
		f.collect()
	}
}

// takeRound takes the nodes to ask about next: all, or as long as no option is known
// those that may cost least. One of which the host knows what it costs is as good as
// known: nothing that costs more at least is asked about with it.
func (f *Finder) takeRound(all bool) {
	for left := f.round; len(f.waiting) > 0 && (all || left > 0); left-- {
		p := f.waiting.pop()
		f.asking = append(f.asking, p.k)
		if p.exact && !all && len(f.waiting) > 0 && !f.mayBeat(&f.waiting[0], &p) {
			return
		}
	}
	f.round *= 4
}

// mayBeat is whether the policy may take an option on a node rather than one that is
// known.
func (f *Finder) mayBeat(p, known *prospect) bool {
	if f.workers[0].foretells {
		return !known.less(p) // of equals it takes the first
	}
	return !known.cost.less(&p.cost)
}

// leastCost is the best of the options that are known, the first of equals.
func (f *Finder) leastCost() (best prospect, known bool) {
	for i := range f.options {
		if o := &f.options[i]; o.alive {
			// There is one option a node: the ask is for amounts alone.
			if p := (prospect{int32(i), true, o.cost()}); !known || p.cost.less(&best.cost) {
				best, known = p, true
			}
		}
	}
	return best, known
}

// findProspects finds what every step-th block of nodes costs at least.
func (s *searcher) findProspects(first, step int) {
	todo := s.f.todo
	clear(s.line.notes[:])
	for block := first; block*blockNodes < len(todo); block += step {
		for i := block * blockNodes; i < min((block+1)*blockNodes, len(todo)); i++ {
			s.f.prospects[i] = s.prospect(todo[i])
		}
	}
}

// prospect is what evictions on the node at k cost at least, as far as amounts decide.
func (s *searcher) prospect(k int32) prospect {
	f, unknown := s.f, prospect{k: -1}
	f.options[f.first[k]].alive = false
	pos := f.req.Nodes[k]
	chunk, i := f.snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if int64(chunk.MinPriority(i)) > s.ceiling || chunk.Eligible()>>i&1 == 0 {
		return unknown
	}
	if rules := f.req.Rules; rules != nil && (!rules.Allows(pos) || s.separates && rules.HasSeparatedRows(pos)) {
		return unknown
	}
	p := place{k: k, chunk: chunk, i: int32(i), rows: chunk.Rows(i)}
	if len(chunk.Claims(i)) > 0 {
		p.claimed = s.claimed(pos)
	}
	s.lacks = f.watch.appendLacks(s.lacks[:0], &p, &f.req.Group.Ask)
	if c, ok := s.foretell(&p); ok {
		return prospect{k, true, c}
	}
	tight := f.columns.Has(sdk.BudgetColumns) && f.leastSlack <= 0
	c, enough := s.leastFor(p.rows, tight)
	if !enough && tight {
		violations := s.fewest(p.rows, s.missing) // of those that overrun a budget
		c, enough = s.leastFor(p.rows, false)
		c.violations = violations
	}
	if !enough {
		return unknown
	}
	return prospect{k, false, c}
}

// leastFor is what victims cost at least whose going makes the ask fit: the highest
// priority, as everybody below it does not suffice; one of that and as many of the lowest
// priorities as have to go with it at least; and the latest start that one of the highest priority has. With
// spare, those stay whose eviction overruns a budget whoever else goes. That jobs may be
// no candidates for other reasons is left aside: fewer candidates cost no less.
func (s *searcher) leastFor(rows []state.Row, spare bool) (c cost, enough bool) {
	missing := s.startMissing()
	s.counted = s.counted[:0]
	guards := s.strict && s.f.leastSlack < len(rows)
	if missing == 0 {
		return c, false // something else than amounts stands in the way
	}
	from, end := -1, 0
	for ; end < len(rows); end++ {
		row := &rows[end]
		if int64(row.Priority) > s.ceiling || missing <= 0 && row.Priority != c.highest {
			break
		}
		if spare && s.isTight(row) || guards && s.usedUp(row) {
			continue
		}
		if from < 0 || row.Priority != c.highest {
			c.highest, from = row.Priority, end
			s.below = append(s.below[:0], s.missing...)
		}
		missing -= s.f.watch.frees(s.missing, &row.Group.Ask.Vec)
	}
	if missing > 0 {
		return c, false
	}
	c.start = s.latest(rows[from:end], c.highest)
	c.victims = s.fewest(rows[:end], s.lacks)
	c.sum = int64(c.highest) + raised // one of them, for everybody below does not suffice
	for _, row := range rows[:c.victims-1] {
		c.sum += int64(row.Priority) + raised
	}
	return c, true
}

// latest is the latest that the earliest start can be of those who go of the highest
// priority, when so many of them have to as everybody below does not free.
func (s *searcher) latest(rows []state.Row, priority int32) int64 {
	s.starts = s.starts[:0]
	for i := range rows {
		if rows[i].Priority == priority {
			s.starts = append(s.starts, min(s.f.req.Now, rows[i].Start))
		}
	}
	slices.Sort(s.starts)
	return s.starts[max(0, len(s.starts)-int(s.fewest(rows, s.below)))]
}

// isTight is whether evicting a row overruns a budget whoever else goes.
func (s *searcher) isTight(row *state.Row) bool {
	if !row.Started {
		return false
	}
	return slices.ContainsFunc(s.f.snap.GroupBudgets(row.Group), func(at int32) bool { return s.f.slacks[at] <= 0 })
}

// groupCount is how many rows of a group were counted, and how many may go.
type groupCount struct {
	group     *model.Group
	rows, may int
}

// usedUp is whether as many rows of a row's group were counted before it as strict
// budgets let go.
func (s *searcher) usedUp(row *state.Row) bool {
	if !row.Started {
		return false
	}
	at := slices.IndexFunc(s.counted, func(c groupCount) bool { return c.group == row.Group })
	if at < 0 {
		at = len(s.counted)
		s.counted = append(s.counted, groupCount{row.Group, 0, math.MaxInt})
		budgets := s.f.snap.Budgets()
		for _, b := range s.f.snap.GroupBudgets(row.Group) {
			if budgets[b].Strict {
				s.counted[at].may = min(s.counted[at].may, s.f.slacks[b])
			}
		}
	}
	c := &s.counted[at]
	c.rows++
	return c.rows > c.may
}

// fewest is how many rows have to go at least for what is lacking.
func (s *searcher) fewest(rows []state.Row, lacks []int64) int32 {
	n := int64(1)
	for i, d := range s.f.watch.dims[:s.f.watch.asked] {
		if lacks[i] <= 0 {
			continue
		}
		most := int64(1)
		for x := range rows {
			if int64(rows[x].Priority) > s.ceiling {
				break
			}
			most = max(most, rows[x].Group.Ask.Vec[d])
		}
		n = max(n, (lacks[i]+most-1)/most)
	}
	return int32(min(n, int64(len(rows))))
}
