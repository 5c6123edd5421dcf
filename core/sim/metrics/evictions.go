package metrics

import "github.com/cede-scheduler/cede/core/model"

// evictions follows victims: how many for a placement, whom again, and how far
// one eviction led to the next.
type evictions struct {
	preemptions int
	victims     int
	useless     int
	regret      int
	judged      int // preemptions whose choice was reported
	capped      int // of them, those where the search for fewer was cut off
	repeat      int
	pingPong    int
	budget      int
	broken      int

	perPreemption []int // victims of each preemption
	depths        []int // of each preemption

	slots   map[slotKey]*slot
	touched []*jobRow // gangs that lost an instance in this instant
	search  regretSearch
}

// slotKey is an instance of a group through all its incarnations.
type slotKey struct {
	group *groupRow
	index int32
	node  int32 // of jobs that run once a node; -1 for others
}

// slot is what is remembered of an instance that was evicted.
type slot struct {
	evictions int
	last      int64
	depth     int // of the eviction that it has not been placed again after; 0: none
}

func (e *evictions) init() { *e = evictions{slots: map[slotKey]*slot{}} }

func (g *groupRow) slot(index, node int32) slotKey {
	if g.job.perNode {
		return slotKey{g, 0, node}
	}
	return slotKey{g, index, -1}
}

// chain is how deep evictions by a placement are, and ends the chain that led
// to it: a preemption by work that was itself evicted is one deeper than the
// one that evicted it, and work that is placed again starts afresh.
func (e *evictions) chain(key slotKey) int {
	s := e.slots[key]
	if s == nil {
		return 1
	}
	depth := s.depth + 1
	s.depth = 0
	return depth
}

// preempted records a preemption as a whole.
func (c *Collector) preempted(depth int, victims []Victim, choice *Choice) {
	e := &c.evicted
	e.preemptions++
	e.perPreemption = append(e.perPreemption, len(victims))
	e.depths = append(e.depths, depth)
	here := 0
	for i := range victims {
		if !victims[i].Elsewhere {
			here++
		}
	}
	if choice != nil {
		e.judged++
		fewest, exact := e.search.fewest(choice, here)
		e.regret += here - fewest
		if !exact {
			e.capped++
		}
	}
	c.series.preempted(c.now, len(victims), depth)
}

// victim records one victim of a preemptor and takes it off.
func (c *Collector) victim(by *model.Allocation, depth int, v *Victim) {
	r := c.work.find(v.Alloc)
	if r == nil {
		panic("metrics: victim " + v.Alloc + " of " + by.ID + " is not placed")
	}
	e := &c.evicted
	e.victims++
	if v.BudgetViolated {
		e.budget++
	}
	key := r.group.slot(r.index, r.node)
	s := e.slots[key]
	if s == nil {
		s = &slot{}
		e.slots[key] = s
	} else if s.evictions == 1 {
		e.repeat++
	}
	if s.evictions > 0 && c.now-s.last <= c.cfg.PingPong {
		e.pingPong++
	}
	s.evictions++
	s.last, s.depth = c.now, depth

	if j := r.group.job; j.gang && !j.touched {
		j.touched = true
		e.touched = append(e.touched, j)
	}
	l := r.level
	l.victims[by.Job.Priority]++
	if l.wasted == nil {
		l.wasted = make([]integral, c.cols.len())
	}
	for i, use := range r.use {
		l.wasted[i].add(use, v.LostWork)
	}
	c.demand.resume(r)
	c.end(r, v.LostWork, c.work.wasted)
}

// settleGangs looks, once an instant is over, which gangs evictions have left
// with some of their instances. A gang evicted whole in several steps of one
// instant is not broken.
func (e *evictions) settleGangs() {
	for _, j := range e.touched {
		j.touched = false
		if j.live > 0 && j.live < j.desired && !j.broken {
			j.broken = true
			e.broken++
		}
	}
	e.touched = e.touched[:0]
}
