package topology

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// A Price is a lower bound of the cost of placing instances in a domain.
type Price struct {
	// Fits reports whether the amounts suffice after the eviction of everything up to the
	// ceiling. If it is false, the domain cannot hold the instances.
	Fits bool
	// Free and Most are the instances, at most those requested, for which the amounts suffice
	// without evictions and after that of everything up to the ceiling.
	Free, Most int
	// Least is the bound of placements in which the highest victim has the least sufficient priority, or
	// little more, and Above that of all others: each placement costs at least as much as one of the two.
	// The former is close, because the candidates of few priorities leave little choice.
	Least, Above preempt.Bound
}

// A Pricer computes prices by amounts and priorities alone. Rules, budgets, ports and devices
// are left out: they only make a placement more expensive, so that a price never exceeds the
// cost of any placement. That is why a search may end at a price that cannot win.
type Pricer struct {
	Snap    *state.Snapshot
	Ceiling int64 // highest priority that may be evicted
	// Stopped are allocations that the instances replace, by ID: their capacity is free.
	Stopped map[string]bool
	// ListRows requests Bound.Rows.
	ListRows bool
	// Lists requests Bound.Lists.
	Lists Detail
	// LostWork and Annotations state that the policy reads these columns.
	LostWork, Annotations bool
	// Now is the time up to which work is lost, in Unix nanoseconds.
	Now int64
	// Workers is the number of goroutines; 0 or 1: one.
	Workers int
}

// A pricing is the memory of one goroutine of a Pricer.
type pricing struct {
	*Pricer
	group   *model.Group
	perNode int   // most instances on a node
	ceiling int64 // of the pass at hand

	free   int // instances that fit without evictions
	steps  []int64
	offers []offer
	costs  []cost
	lister lister
	next   int32 // least priority of any allocation above the ceiling of the pass at hand

	// Of the node at hand.
	left    model.Vector // free, and released so far
	largest model.Vector // of any candidate, by dimension
	// amounts are the requests of the candidates, ascending by priority.
	amounts []*model.Vector
	sums    []int64 // of the raised priorities of the first n candidates
	lost    []int64 // work that each of them loses, ascending; empty: the policy does not read it
}

// step returns how many more instances of a node fit once everything up to a priority left, as a
// number that sorts by priority.
func step(priority int32, more int) int64 { return int64(priority)<<32 | int64(more) }

// A cost is what each of some instances costs.
type cost struct {
	each int64
	more int // instances
}

// An offer is the least cost of each of some instances on a node, as if they shared the cost
// equally. Instances may share a victim, so that the first one alone may cost more.
type offer struct {
	chunk, node int
	more        int   // instances
	victims     int64 // scaled by victimScale, rounded down
	sum         int64 // of raised priorities, rounded down
	lost        int64 // nanoseconds, rounded down
	// rows is the number of candidates that the first instance needs at least.
	rows int
}

const (
	victimScale = 1 << 20
	// raise makes any priority a number above zero, so that more victims cost more.
	raise = 1 << 31
)

// Prices returns the prices of so many instances of a group in each of some domains. It costs
// one pass over the candidates of the domains.
func (p *Pricer) Prices(need int, group *model.Group, domains []*feasible.Domain) []Price {
	list := make([]Price, len(domains))
	workers := max(1, min(p.Workers, len(domains)))
	share := func(first int) {
		one, checker := pricing{Pricer: p, group: group, perNode: need}, feasible.NewNodeChecker(group, p.Snap.ClassCount())
		if feasible.DistinctHosts(group) {
			one.perNode = 1
		}
		for i := first; i < len(domains); i += workers {
			list[i] = one.price(checker, need, domains[i])
		}
	}
	var wg sync.WaitGroup
	for first := 1; first < workers; first++ {
		wg.Go(func() { share(first) })
	}
	share(0)
	wg.Wait()
	return list
}

// price returns the price of a domain.
func (p *pricing) price(checker *feasible.NodeChecker, need int, d *feasible.Domain) Price {
	pos := p.addNodes(checker, need, d, p.Ceiling)
	price := Price{Fits: need <= p.free, Free: min(need, p.free), Most: p.free, Least: preempt.Bound{Pos: pos, Highest: math.MinInt32}}
	for i := range p.offers {
		price.Most += p.offers[i].more
	}
	price.Most = min(need, price.Most)
	price.Above = price.Least
	if price.Fits {
		return price
	}
	highest, ok := p.leastHighest(need - p.free)
	if !ok {
		return price
	}
	price.Fits, price.Least.Highest = true, highest
	p.fill(&price.Above, need-p.free)
	p.addNodes(checker, need, d, int64(highest))
	p.fill(&price.Least, need-p.free)
	if p.ListRows {
		p.listRows(&price.Least, need-p.free)
	}
	top := highest
	if p.Lists == Fine {
		top = p.widen(&price.Least, checker, need, d)
	}
	if p.Lists != NoLists {
		p.lister.collect(p, checker, d)
		price.Least.Lists = p.lister.list(p, need, int64(top), highest)
	}
	if int64(p.next) > p.Ceiling {
		price.Above = price.Least // nothing else may be evicted
		return price
	}
	price.Above.Highest = p.next
	if p.Lists != NoLists {
		price.Above.Lists = p.lister.list(p, need, p.Ceiling, highest)
	}
	return price
}

// maxWidened is the number of further priorities that widen examines.
const maxWidened = 4

// widen makes the bound of the least sufficient priority hold for the next priorities as well, as long
// as their candidates do not lower it, and returns the last one. The other bound starts above it, and
// is closer than if it started at candidates that make no difference.
func (p *pricing) widen(b *preempt.Bound, checker *feasible.NodeChecker, need int, d *feasible.Domain) (top int32) {
	top = b.Highest
	for range maxWidened {
		next := p.next
		if int64(next) > p.Ceiling {
			break
		}
		wider := *b
		p.addNodes(checker, need, d, int64(next))
		if p.fill(&wider, need-p.free); wider.Victims < b.Victims || wider.LostWork < b.LostWork {
			p.next = next
			break
		}
		*b, top = wider, next
	}
	return top
}

// addNodes adds the offers of the nodes of a domain if everything up to a ceiling may be evicted,
// and returns the position of some feasible node; -1: there is none.
func (p *pricing) addNodes(checker *feasible.NodeChecker, need int, d *feasible.Domain, ceiling int64) (pos int32) {
	p.free, p.steps, p.offers, p.ceiling, p.next, pos = 0, p.steps[:0], p.offers[:0], ceiling, math.MaxInt32, -1
	eachNode(p.Snap, d, func(chunk *state.Chunk, c, i int) {
		if p.free >= need || !checker.Feasible(chunk, i) {
			return
		}
		if pos < 0 {
			pos = int32(c*state.ChunkSize + i)
		}
		p.addNode(chunk, c, i)
	})
	return pos
}

// addNode adds the offer of a node. Nodes without candidates add their free instances alone.
func (p *pricing) addNode(chunk *state.Chunk, c, i int) {
	p.left, p.largest, p.amounts, p.sums, p.lost = model.Vector{}, model.Vector{}, p.amounts[:0], append(p.sums[:0], 0), p.lost[:0]
	ask := &p.group.Ask
	for _, d := range ask.Dims {
		p.left[d] = chunk.Free(int(d))[i]
	}
	mayEvict := int64(chunk.MinPriority(i)) <= p.ceiling
	if !mayEvict {
		p.next = min(p.next, chunk.MinPriority(i))
	}
	if !mayEvict && len(p.Stopped) == 0 {
		p.free += fitting(&p.left, ask, p.perNode)
		return
	}
	rows := chunk.Rows(i)
	p.releaseStopped(rows)
	before := p.left
	fits := fitting(&p.left, ask, p.perNode)
	p.free += fits
	if most := p.release(rows, fits); most > fits {
		p.offers = append(p.offers, p.makeOffer(&before, fits, most, c, i))
	}
}

// releaseStopped adds the capacity of allocations that the instances replace.
func (p *pricing) releaseStopped(rows []state.Row) {
	if len(p.Stopped) == 0 {
		return
	}
	for x := range rows {
		if p.Stopped[rows[x].Alloc.ID] {
			p.left.Add(&rows[x].Group.Ask.Vec)
		}
	}
}

// release evicts the candidates of a node, ascending by priority, and records the priorities at
// which more instances fit. It returns how many fit in the end.
func (p *pricing) release(rows []state.Row, fits int) int {
	ask, own := &p.group.Ask, p.group.Job
	for x := range rows {
		row := &rows[x]
		if int64(row.Priority) > p.ceiling {
			p.next = min(p.next, row.Priority)
			break
		}
		if j := row.Group.Job; j.NonPreemptible || j.ID == own.ID && j.Namespace == own.Namespace {
			continue
		}
		amounts := &row.Group.Ask.Vec
		p.amounts, p.sums = append(p.amounts, amounts), append(p.sums, p.sums[len(p.sums)-1]+int64(row.Priority)+raise)
		if p.LostWork {
			p.lost = append(p.lost, lostWork(row, p.Now))
		}
		// Rows that free nothing requested stay candidates: fewer of them would not suffice either.
		// So do rows beyond those that suffice: fewer of them may make room for as many.
		one, several := fits < p.perNode, fits+1 < p.perNode // more instances fit
		for _, d := range ask.Dims {
			p.left[d] += amounts[d]
			p.largest[d] = max(p.largest[d], amounts[d])
			one = one && p.left[d] >= int64(fits+1)*ask.Vec[d]
			several = several && p.left[d] >= int64(fits+2)*ask.Vec[d]
		}
		if one {
			now := fits + 1
			if several { // rare, and divisions are slow
				now = fitting(&p.left, ask, p.perNode)
			}
			p.steps = append(p.steps, step(row.Priority, now-fits))
			fits = now
		}
	}
	return fits
}

// makeOffer returns the offer of a node on which fits instances fit now, and most after
// evictions.
func (p *pricing) makeOffer(free *model.Vector, fits, most, c, i int) offer {
	o := offer{chunk: c, node: i, more: most - fits, victims: math.MaxInt64, sum: math.MaxInt64}
	p.sumLostWork()
	if p.LostWork {
		o.lost = math.MaxInt64
	}
	rows := 1
	for n := 1; n <= o.more; n++ {
		rows = p.fewestRows(free, fits+n, rows)
		if n == 1 {
			o.rows = rows
		}
		o.victims = min(o.victims, int64(rows)*victimScale/int64(n))
		if p.sums[rows]/int64(n) < o.sum { // a lower bound of the least sum
			o.sum = min(o.sum, p.leastSum(free, fits+n, rows)/int64(n))
		}
		if p.LostWork {
			o.lost = min(o.lost, p.lost[rows-1]/int64(n))
		}
	}
	return o
}

// sumLostWork replaces the lost work of the candidates of a node by the least lost work of the first
// one, two, and so on.
func (p *pricing) sumLostWork() {
	slices.Sort(p.lost)
	for i := 1; i < len(p.lost); i++ {
		p.lost[i] += p.lost[i-1]
	}
}

// lostWork returns the work that the eviction of a row loses, in nanoseconds.
func lostWork(row *state.Row, now int64) int64 {
	if !row.Started {
		return 0
	}
	return row.Group.LostWork(now - row.Start)
}

// leastSum returns the least raised sum of candidates that make room for n instances, of which
// fewest are needed at least. Either there are more, or each of them is large enough that as many
// suffice with the others as large as the largest one.
func (p *pricing) leastSum(free *model.Vector, n, fewest int) (sum int64) {
	ask := &p.group.Ask
	var least model.Vector // of each candidate
	for _, d := range ask.Dims {
		least[d] = int64(n)*ask.Vec[d] - free[d] - int64(fewest-1)*p.largest[d]
	}
	left := fewest
	for x := 0; x < len(p.amounts) && left > 0; x++ {
		if holds(p.amounts[x], &least, ask) {
			sum += p.sums[x+1] - p.sums[x]
			left--
		}
	}
	if left > 0 {
		sum = math.MaxInt64
	}
	if fewest < len(p.amounts) {
		sum = min(sum, p.sums[fewest+1])
	}
	if sum == math.MaxInt64 {
		return p.sums[fewest]
	}
	return sum
}

// holds reports whether amounts are at least as large as others in the dimensions of a request.
func holds(amounts, least *model.Vector, ask *model.Ask) bool {
	for _, d := range ask.Dims {
		if amounts[d] < least[d] {
			return false
		}
	}
	return true
}

// fewestRows returns the least number of candidates that make room for n instances: by
// dimension, as many as if each of them held as much as the largest one. It does not fall as n
// rises, and is searched for from the number for fewer instances.
func (p *pricing) fewestRows(free *model.Vector, n, rows int) int {
	for _, d := range p.group.Ask.Dims {
		lack := int64(n)*p.group.Ask.Vec[d] - free[d]
		for p.largest[d] > 0 && rows < len(p.amounts) && int64(rows)*p.largest[d] < lack {
			rows++
		}
	}
	return rows
}

// leastHighest returns the lowest priority up to which candidates have to leave before so many
// more instances fit; ok is false if they never do.
func (p *pricing) leastHighest(need int) (priority int32, ok bool) {
	slices.Sort(p.steps)
	for _, s := range p.steps {
		if need -= int(int32(s)); need <= 0 {
			return int32(s >> 32), true
		}
	}
	return 0, false
}

// fill sets the totals of instances that lack free capacity. Each value is a bound by itself:
// the cheapest nodes by one of them need not be the cheapest by another.
func (p *pricing) fill(b *preempt.Bound, need int) {
	// Rounded up at the end, so that shares of a victim add up to whole ones.
	victims := p.cheapest(need, func(o *offer) int64 { return o.victims })
	b.Victims = int32((victims + victimScale - 1) / victimScale)
	b.PrioritySum = p.cheapest(need, func(o *offer) int64 { return o.sum }) - int64(b.Victims)*raise
	if p.LostWork {
		b.LostWork = p.cheapest(need, func(o *offer) int64 { return o.lost })
	}
}

// cheapest returns the least cost of so many instances.
func (p *pricing) cheapest(need int, each func(*offer) int64) (sum int64) {
	p.costs = p.costs[:0]
	for i := range p.offers {
		p.costs = append(p.costs, cost{each(&p.offers[i]), p.offers[i].more})
	}
	slices.SortFunc(p.costs, func(a, b cost) int { return cmp.Compare(a.each, b.each) })
	for _, c := range p.costs {
		n := min(need, c.more)
		sum += int64(n) * c.each
		if need -= n; need == 0 {
			break
		}
	}
	return sum
}

// listRows lists the candidates of the cheapest nodes by the sum of priorities, as an estimate for
// policies that read victims one by one.
func (p *pricing) listRows(b *preempt.Bound, need int) {
	slices.SortStableFunc(p.offers, func(a, b offer) int { return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.victims, b.victims)) })
	for i := range p.offers {
		o := &p.offers[i]
		rows, listed := p.Snap.Chunk(o.chunk).Rows(o.node), 0
		for x := 0; x < len(rows) && listed < o.rows && int64(rows[x].Priority) <= p.ceiling; x++ {
			if !rows[x].Group.Job.NonPreemptible {
				b.Rows, listed = append(b.Rows, &rows[x]), listed+1
			}
		}
		if need -= o.more; need <= 0 {
			return
		}
	}
}

// Join raises a price to that of another group in the same search.
func (p *Price) Join(o *Price) {
	highest := max(p.Least.Highest, o.Least.Highest)
	least := joined(p.leastAt(highest), o.leastAt(highest))
	next := min(nextAfter(highest, p.Above.Highest), nextAfter(highest, o.Above.Highest))
	p.Fits, p.Above = p.Fits && o.Fits, joined(&p.Above, &o.Above)
	if least.Highest = highest; highest > math.MinInt32 {
		p.Above.Highest = next
	}
	p.Least = least
}

// nextAfter returns the least priority above highest that a victim of a group may have, if next is
// that above the least sufficient priority of the group.
func nextAfter(highest, next int32) int32 {
	if next > highest {
		return next
	}
	return highest + 1
}

// leastAt returns the bound of placements in which no victim of any group has a priority above
// highest, which is at least that of the bound.
func (p *Price) leastAt(highest int32) *preempt.Bound {
	if p.Least.Highest == highest {
		return &p.Least
	}
	return &p.Above // its totals hold for all placements
}

// joined returns the bound of two groups together. They may share victims, so that it is the
// larger one by each total.
func joined(a, b *preempt.Bound) preempt.Bound {
	// The raised sums are compared, because a sum alone falls with negative priorities.
	sum := max(a.PrioritySum+int64(a.Victims)*raise, b.PrioritySum+int64(b.Victims)*raise)
	victims := max(a.Victims, b.Victims)
	return preempt.Bound{
		Pos: a.Pos, Highest: max(a.Highest, b.Highest), Victims: victims, PrioritySum: sum - int64(victims)*raise,
		LostWork: max(a.LostWork, b.LostWork),
		Rows:     append(slices.Clip(a.Rows), b.Rows...),
		Lists:    append(slices.Clip(a.Lists), b.Lists...), // each list holds by itself
	}
}

// fitting returns how many instances fit into a capacity, at most limit.
func fitting(free *model.Vector, ask *model.Ask, limit int) int {
	n := int64(limit)
	for _, d := range ask.Dims {
		n = min(n, max(0, free[d])/ask.Vec[d])
	}
	return int(n)
}
