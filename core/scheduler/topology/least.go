package topology

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// A policy that reads victims one by one is not bounded by totals. It is called about fictitious
// victims instead, which can be paired with those of any placement in the domain such that each
// of the latter is at least as high in every column. They follow from nested sets of candidates:
//
//   - all of them, then those with at least the least sufficient priority, then the large ones of
//     these, then those that lose at least so much work;
//   - if everything outside a set left at no cost, a placement would still need some number of
//     victims from the set, at least;
//   - so many fictitious victims, less those of the sets inside, have the least of each column of
//     the set.
//
// Pairing the victims of the innermost set first shows that the sets may be any, as long as each
// contains the next one.

// Detail is how closely lists of least victims are computed.
type Detail int

// Details of lists.
const (
	NoLists Detail = iota
	// Coarse lists contain the least of each column of the candidates from a priority on. They order
	// domains.
	Coarse
	// Fine lists distinguish candidates by size and lost work. They take as long as several prices.
	Fine
)

// lostSteps is the number of sets by lost work in a fine list.
const lostSteps = 8

// maxFloors is the number of fine lists of a bound, each of candidates from another priority on. A
// policy that compares priorities by bands ignores the victims below the highest band, and the
// least sufficient priority need not be the lowest one of a band.
const maxFloors = 3

// A candidate is an allocation that may be evicted.
type candidate struct {
	row  *state.Row
	lost int64 // nanoseconds
	size int64 // amount of the first requested resource
}

// A host is a node with free capacity, and its candidates.
type host struct {
	free     model.Vector // with the capacity of allocations that leave at no cost
	from, to int          // in lister.candidates
}

// A lister computes lists of least victims of one domain. Its memory is reused.
type lister struct {
	hosts      []host
	candidates []candidate
	ceiling    int64 // of the list at hand: candidates of higher priorities are left out
	offers     []cost
	lost       []int64
	levels     []int32
}

// A floor is a set of candidates up to the ceiling: those that are at least as high in every column.
type floor struct {
	priority int32
	size     int64
	lost     int64
}

func (f *floor) holds(c *candidate, ceiling int64) bool {
	return int64(c.row.Priority) <= ceiling && c.row.Priority >= f.priority && c.size >= f.size && c.lost >= f.lost
}

// collect reads the candidates of a domain.
func (l *lister) collect(p *pricing, checker *feasible.NodeChecker, d *feasible.Domain) {
	l.hosts, l.candidates = l.hosts[:0], l.candidates[:0]
	ask, own := &p.group.Ask, p.group.Job
	eachNode(p.Snap, d, func(chunk *state.Chunk, _, i int) {
		if !checker.Feasible(chunk, i) {
			return
		}
		l.hosts = append(l.hosts, host{from: len(l.candidates)})
		h := &l.hosts[len(l.hosts)-1]
		for _, d := range ask.Dims {
			h.free[d] = chunk.Free(int(d))[i]
		}
		if int64(chunk.MinPriority(i)) <= p.Ceiling || len(p.Stopped) > 0 {
			l.addRows(p, h, chunk.Rows(i), own)
		}
		h.to = len(l.candidates)
	})
}

// addRows adds the candidates of a node. The cost of those with annotations may be anything if the
// policy reads these, so that they leave at no cost.
func (l *lister) addRows(p *pricing, h *host, rows []state.Row, own *model.Job) {
	for x := range rows {
		row := &rows[x]
		g := row.Group
		switch {
		case len(p.Stopped) > 0 && p.Stopped[row.Alloc.ID]:
			h.free.Add(&g.Ask.Vec)
		case int64(row.Priority) > p.Ceiling || g.Job.NonPreemptible || g.Job.ID == own.ID && g.Job.Namespace == own.Namespace:
		case p.Annotations && len(g.Annotations) > 0:
			h.free.Add(&g.Ask.Vec)
		default:
			c := candidate{row: row, size: g.Ask.Vec[p.group.Ask.Dims[0]]}
			if p.LostWork {
				c.lost = lostWork(row, p.Now)
			}
			l.candidates = append(l.candidates, c)
		}
	}
}

// list returns lists of the least victims of so many instances beyond those that are free, among
// candidates up to a priority. highest is the least sufficient one.
func (l *lister) list(p *pricing, need int, ceiling int64, highest int32) [][]preempt.LeastVictim {
	l.ceiling = ceiling
	if p.Lists == Coarse {
		return [][]preempt.LeastVictim{l.victims(p, need, []floor{{priority: highest}})}
	}
	l.levels = l.levels[:0]
	for i := range l.candidates {
		if at := l.candidates[i].row.Priority; at <= highest {
			l.levels = append(l.levels, at)
		}
	}
	slices.Sort(l.levels)
	l.levels = slices.Compact(l.levels)
	// The least sufficient priority, the one below it, and the lowest one.
	if n := len(l.levels); n > maxFloors {
		l.levels = append(l.levels[:1], l.levels[n-maxFloors+1:]...)
	}
	var lists [][]preempt.LeastVictim
	for _, at := range slices.Backward(l.levels) {
		lists = append(lists, l.nested(p, need, at))
	}
	return lists
}

// nested returns the least victims of nested sets: see the comment at the top. The sets after the
// first contain no candidate below a priority.
func (l *lister) nested(p *pricing, need int, priority int32) []preempt.LeastVictim {
	sets := []floor{{priority: math.MinInt32}, {priority: priority}}
	large := int64(0)
	for i := range l.candidates {
		if c := &l.candidates[i]; c.row.Priority >= priority && int64(c.row.Priority) <= l.ceiling {
			large = max(large, c.size)
		}
	}
	// Small candidates are many, so that a set without them has fewer victims, of larger columns.
	sets = append(sets, floor{priority: priority, size: large / 2})
	return l.victims(p, need, append(sets, l.byLostWork(p, need, sets[len(sets)-1])...))
}

// victims returns the least victims of some sets, of which each contains the next one.
func (l *lister) victims(p *pricing, need int, sets []floor) (list []preempt.LeastVictim) {
	inside := 0
	for _, set := range slices.Backward(sets) {
		if n := l.fewest(p, need, &set); n > inside {
			v := l.least(&set, p.Snap.Dims().Len())
			v.Count = int32(n - inside)
			list, inside = append(list, v), n
		}
	}
	return list
}

// byLostWork returns sets within another one by lost work. No placement needs more of the least
// lost work than about twice the number of victims.
func (l *lister) byLostWork(p *pricing, need int, within floor) []floor {
	l.lost = l.lost[:0]
	for i := range l.candidates {
		if within.holds(&l.candidates[i], l.ceiling) {
			l.lost = append(l.lost, l.candidates[i].lost)
		}
	}
	slices.Sort(l.lost)
	reach := 2 * l.fewest(p, need, &within)
	var sets []floor
	for k := range lostSteps {
		at := (k + 1) * reach / lostSteps
		if at >= len(l.lost) {
			break
		}
		if l.lost[at] > within.lost {
			within.lost = l.lost[at]
			sets = append(sets, within)
		}
	}
	return sets
}

// least returns the least of each column of a set.
func (l *lister) least(set *floor, dims int) preempt.LeastVictim {
	v := preempt.LeastVictim{Priority: math.MaxInt32, LostWork: math.MaxInt64}
	var last *model.Group
	for i := range l.candidates {
		c := &l.candidates[i]
		if !set.holds(c, l.ceiling) {
			continue
		}
		v.Priority, v.LostWork = min(v.Priority, c.row.Priority), min(v.LostWork, c.lost)
		use := &c.row.Group.Ask.Vec
		switch {
		case last == nil:
			v.Use = *use
		case last != c.row.Group:
			for d := range dims {
				v.Use[d] = min(v.Use[d], use[d])
			}
		}
		last = c.row.Group
	}
	return v
}

// fewest returns the least number of candidates of a set that make room for need instances if
// everything outside it leaves at no cost.
func (l *lister) fewest(p *pricing, need int, set *floor) int {
	l.offers = l.offers[:0]
	for i := range l.hosts {
		h := &l.hosts[i]
		free, largest, held, rows := h.free, model.Vector{}, model.Vector{}, 0
		for x := h.from; x < h.to; x++ {
			c := &l.candidates[x]
			if int64(c.row.Priority) > l.ceiling {
				break // they ascend by priority
			}
			amounts := &c.row.Group.Ask.Vec
			if !set.holds(c, l.ceiling) {
				for _, d := range p.group.Ask.Dims {
					free[d] += amounts[d]
				}
				continue
			}
			rows++
			for _, d := range p.group.Ask.Dims {
				held[d] += amounts[d]
				largest[d] = max(largest[d], amounts[d])
			}
		}
		fits := fitting(&free, &p.group.Ask, p.perNode)
		if need -= fits; need <= 0 {
			return 0
		}
		if rows == 0 {
			continue
		}
		for _, d := range p.group.Ask.Dims {
			held[d] += free[d]
		}
		if most := fitting(&held, &p.group.Ask, p.perNode); most > fits {
			l.offers = append(l.offers, cost{eachOf(&p.group.Ask, &free, &largest, fits, most, rows), most - fits})
		}
	}
	slices.SortFunc(l.offers, func(a, b cost) int { return cmp.Compare(a.each, b.each) })
	sum := int64(0)
	for _, o := range l.offers {
		n := min(need, o.more)
		sum += int64(n) * o.each
		if need -= n; need == 0 {
			break
		}
	}
	return int((sum + victimScale - 1) / victimScale)
}

// eachOf returns the least number of rows for each of up to most-fits further instances, scaled by
// victimScale.
func eachOf(ask *model.Ask, free, largest *model.Vector, fits, most, rows int) int64 {
	each, fewest := int64(math.MaxInt64), 1
	for n := fits + 1; n <= most; n++ {
		for _, d := range ask.Dims {
			lack := int64(n)*ask.Vec[d] - free[d]
			for largest[d] > 0 && fewest < rows && int64(fewest)*largest[d] < lack {
				fewest++
			}
		}
		each = min(each, int64(fewest)*victimScale/int64(n-fits))
	}
	return each
}
