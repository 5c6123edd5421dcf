package metrics

import "github.com/cede-scheduler/cede/core/model"

// evictions tracks victims: their number per placement, repeated evictions, and
// chains of evictions.
type evictions struct {
	preemptions int
	victims     int
	useless     int
	regret      int
	judged      int // preemptions with a reported choice
	capped      int // judged preemptions for which the regret search was cut off
	repeat      int
	pingPong    int
	budget      int
	broken      int

	perPreemption []int // victims of each preemption
	depths        []int // of each preemption

	slots   map[slotKey]*slot
	touched []*jobRow // gangs that lost an instance at the current instant
	search  regretSearch
}

// slotKey identifies an instance of a group through all its replacements.
type slotKey struct {
	group *groupRow
	index int32
	node  int32 // for jobs that run once per node; otherwise -1
}

// slot holds the eviction history of an instance.
type slot struct {
	evictions int
	last      int64
	depth     int // of the last eviction if the instance has not been placed since; otherwise 0
}

func (e *evictions) init() { *e = evictions{slots: map[slotKey]*slot{}} }

func (g *groupRow) slot(index, node int32) slotKey {
	if g.job.perNode {
		return slotKey{g, 0, node}
	}
	return slotKey{g, index, -1}
}

// chain returns the depth of evictions by a placement and ends the chain that led to
// it. If the preemptor was itself evicted, the depth is one more than that of the
// preemption that evicted it. A later placement of the same instance starts a new
// chain.
func (e *evictions) chain(key slotKey) int {
	s := e.slots[key]
	if s == nil {
		return 1
	}
	depth := s.depth + 1
	s.depth = 0
	return depth
}

// preempted records a preemption with its victims.
func (c *Collector) preempted(depth int, victims []Victim, choice *Choice) {
	e := &c.evicted
	e.preemptions++
	e.perPreemption = append(e.perPreemption, len(victims))
	e.depths = append(e.depths, depth)
	here := 0
	for i := range victims {
		if !victims[i].OtherNode {
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

// victim records one victim of a preemptor and ends its allocation.
func (c *Collector) victim(by *model.Allocation, depth int, v *Victim) {
	r := c.work.find(v.Alloc)
	if r == nil {
		panic("metrics: victim " + v.Alloc + " of " + by.ID + " not found")
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

// countBrokenGangs runs at the end of an instant. It counts the gangs that evictions
// left with some of their instances. If a gang is evicted completely in several steps
// of one instant, it is not broken.
func (e *evictions) countBrokenGangs() {
	for _, j := range e.touched {
		j.touched = false
		if j.live > 0 && j.live < j.desired && !j.broken {
			j.broken = true
			e.broken++
		}
	}
	e.touched = e.touched[:0]
}
