package audit

import (
	"slices"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A moveChecker checks the moves of plans.
type moveChecker struct{ *checker }

// A move is an instance of another job that a plan relocates to make room.
type move struct {
	from *alloc
	id   string // of the allocation that continues it
	to   *alloc // nil until the events of the entry were read
}

// A past is a move for the limit of a job and a window.
type past struct {
	at  int64
	job *job
}

// pairMoves separates the placements that continue moved instances from those of the plan's
// own job.
func (c moveChecker) pairMoves(p *plan) {
	p.placed = slices.DeleteFunc(p.placed, func(a *alloc) bool {
		if a.from == "" {
			return false
		}
		at := slices.IndexFunc(p.moved, func(m *move) bool { return m.from.id == a.from && m.id == a.id })
		if at < 0 {
			c.report("moves", "%s continues %s, which is not moved", a.id, a.from)
			return false
		}
		p.moved[at].to = a
		return true
	})
	p.moved = slices.DeleteFunc(p.moved, func(m *move) bool {
		if m.to == nil {
			c.report("moves", "%s is moved, and nothing continues it", m.from.id)
			return true
		}
		p.stops[m.to.node] = true // what arrives takes capacity in an order that the timeline does not show
		return false
	})
}

// checkMoved checks each move of a plan by itself, before the plan is applied.
func (c moveChecker) checkMoved(p *plan) {
	for _, m := range p.moved {
		v := m.from
		if m.to.group != v.group || m.to.index != v.index || m.to.node == v.node {
			c.report("moves", "%s is moved to %s, which is another instance or on its node", v.id, m.to.id)
		}
		room := func(a *alloc) bool { return a.node == v.node }
		if at := slices.IndexFunc(p.placed, room); at < 0 {
			c.report("moves", "%s is moved, and nothing is placed on %s", v.id, v.node.id)
		} else if why := c.unmovable(v, p.placed[at].group.job); why != "" {
			c.report("moves", "%s must not be moved for %s: %s", v.id, p.placed[at].id, why)
		}
	}
	c.checkMoveLimits(p)
}

// unmovable returns why an allocation must not be moved to make room for a job, or "".
func (c *cluster) unmovable(v *alloc, by *job) string {
	j := v.group.job
	rules := func(g *group) bool {
		return len(g.Colocate) > 0 || len(g.Separate) > 0 || slices.ContainsFunc(g.Spread, func(s scenario.Spread) bool { return s.MaxSkew != nil })
	}
	switch {
	case c.run.File.Scheduler.Moves == nil:
		return "moves are off"
	case by.never || by.perNode:
		return "the job has nothing moved for it"
	case j == by:
		return "it belongs to the same job"
	case j.priority > by.priority:
		return "its priority is higher"
	case j.perNode:
		return "it runs on every node"
	case j.Preemptible != nil && !*j.Preemptible:
		return "it is not preemptible"
	case j.DisruptionMode == "all":
		return "its job is evicted as a whole"
	case rules(v.group):
		return "rules between allocations apply to it"
	case v.node.down || v.node.draining:
		return "its node is down or drains"
	}
	if t := j.Toleration; t != nil {
		if t.MinPreemptorPriority != nil && by.priority < int64(*t.MinPreemptorPriority) {
			return "the job is below its minPreemptorPriority"
		}
		if v.started && v.age(c.now) < int64(t.MinRuntime) {
			return "it is younger than its minRuntime"
		}
	}
	return ""
}

// checkMoveLimits checks the limit of each job, and that moves exceed no budget, whatever its
// enforcement.
func (c moveChecker) checkMoveLimits(p *plan) {
	limit := c.run.File.Scheduler.Moves
	for _, m := range p.moved {
		j, n := m.from.group.job, 0
		for _, other := range p.moved {
			if other.from.group.job == j {
				n++
			}
		}
		for _, old := range c.moves {
			if limit != nil && old.job == j && old.at > c.now-int64(limit.Window) {
				n++
			}
		}
		if limit != nil && n > int(limit.PerJob) {
			c.report("moves", "%s is moved, and %d moves of its job exceed %d in %s", m.from.id, n, limit.PerJob, limit.Window)
		}
	}
	for i := range c.run.File.Budgets {
		b, disrupted := &c.run.File.Budgets[i], 0
		for _, m := range p.moved {
			if m.from.started && covers(b, m.from.group) {
				disrupted++
			}
		}
		if allowed := c.allowed(b); disrupted > max(0, allowed) {
			c.report("moves", "budget %s allows %d disruptions, and the plan moves %d instances", b.Name, allowed, disrupted)
		}
	}
}

// arrive applies the second halves of moves.
func (c moveChecker) arrive(p *plan) {
	for _, m := range p.moved {
		c.place(p, m.to)
		c.moves = append(c.moves, past{c.now, m.from.group.job})
		if m.from.started {
			c.evicted = append(c.evicted, eviction{c.now, m.from.group})
		}
	}
}

// checkMovesNecessary checks after a plan that no moved instance could have stayed, and that
// instances of equal priority are smaller than what is placed instead.
func (c moveChecker) checkMovesNecessary(p *plan) {
	for _, m := range p.moved {
		var room []*alloc
		for _, a := range p.placed {
			if a.node == m.from.node {
				room = append(room, a)
			}
		}
		if p.stopsOwn[m.from.node] || len(room) != 1 {
			continue // the timeline does not show which placement needs the room
		}
		if slices.ContainsFunc(p.evicted, func(v *alloc) bool { return v.node == m.from.node }) {
			continue // the eviction of a whole job, for a later placement, can free more of the node
		}
		present := append(c.here(m.from.node), m.from)
		if overfull(m.from.node, present) == "" {
			c.report("moves", "%s is moved for %s and could have stayed", m.from.id, room[0].id)
		}
		if by := room[0]; m.from.group.job.priority == by.group.job.priority && covered(by.group, m.from.group) {
			c.report("moves", "%s is moved for %s, which is not larger", m.from.id, by.id)
		}
		room[0].victims = append(room[0].victims, m.from)
	}
}

// covered reports whether a group requests no more than another one of any resource.
func covered(g, other *group) bool {
	if len(g.Devices)+len(other.Devices) > 0 {
		return false
	}
	for name, amount := range g.Resources {
		if amount > other.Resources[name] {
			return false
		}
	}
	return true
}
