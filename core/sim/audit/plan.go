package audit

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/timeline"
)

// plan holds the removals and placements of one log entry.
type plan struct {
	removed map[*alloc]*timeline.Event
	evicted []*alloc // in the order of the timeline
	placed  []*alloc
	moved   []*move
	stops   map[*node]bool // nodes on which the plan stops allocations
	// moves are the groups that the plan also stops instances of. Such an instance counts
	// until its own turn, which the timeline does not show.
	moves map[*group]bool
	// stopsOwn are the nodes on which the plan stops allocations of its own job.
	stopsOwn map[*node]bool
}

func (c *checker) addToPlan(p *plan, ev *timeline.Event) {
	if ev.Kind == timeline.Placed {
		c.addPlacement(p, ev)
		return
	}
	a := c.allocs[ev.Alloc]
	switch {
	case a == nil || !a.live:
		c.report("ends", "%s is %s and is not live", ev.Alloc, ev.Kind)
		return
	case p.removed[a] != nil:
		c.report("ends", "%s is %s twice", ev.Alloc, ev.Kind)
		return
	}
	p.removed[a] = ev
	switch ev.Kind {
	case timeline.Evicted:
		p.evicted = append(p.evicted, a)
	case timeline.Lost:
		if !a.node.down {
			c.report("ends", "%s is lost, and its node %s is not down", a.id, a.node.id)
		}
	default:
		if ev.Moved != "" {
			p.moved = append(p.moved, &move{from: a, id: ev.Moved})
			return
		}
		c.checkStop(a)
	}
}

func (c *checker) addPlacement(p *plan, ev *timeline.Event) {
	g, n := c.group(ev.Job, ev.Group), c.nodes[ev.Node]
	if g == nil || n == nil {
		c.report("placements", "%s is of no job or node of the file", ev.Alloc)
		return
	}
	if c.allocs[ev.Alloc] != nil || slices.ContainsFunc(p.placed, func(a *alloc) bool { return a.id == ev.Alloc }) {
		c.report("placements", "%s is placed twice", ev.Alloc)
		return
	}
	p.placed = append(p.placed, &alloc{id: ev.Alloc, group: g, index: ev.Index, node: n, devices: ev.Devices, saved: ev.SavedWork, live: true, from: ev.Moved})
}

// checkStop checks that there is a reason to stop an allocation: the job has stopped, the
// node drains, is down or repels it, or a disconnected node has returned.
func (c *checker) checkStop(a *alloc) {
	j, n := a.group.job, a.node
	if j.stopped || j.resubmit || n.draining || n.down || a.interrupt || a.group.Disconnect != nil || c.repelled(a) {
		return
	}
	c.report("stops", "%s on %s is stopped without a reason", a.id, n.id)
}

// repelled reports whether a NoExecute taint requires that the allocation leaves its node.
func (c *cluster) repelled(a *alloc) bool {
	for i := range a.node.Taints {
		t := &a.node.Taints[i]
		if t.Effect != "NoExecute" {
			continue
		}
		longest, forever := int64(0), false
		for k := range a.group.Tolerations {
			if o := &a.group.Tolerations[k]; tolerates(o, t) {
				forever = forever || o.For == 0
				longest = max(longest, int64(o.For))
			}
		}
		if !forever && c.now >= a.placedAt+longest {
			return true
		}
	}
	return false
}

// plan checks the removals and placements of an entry, and applies them.
func (c *checker) plan(p *plan) {
	if len(p.removed)+len(p.placed) == 0 {
		return
	}
	p.stops, p.moves, p.stopsOwn = map[*node]bool{}, map[*group]bool{}, map[*node]bool{}
	for a, ev := range p.removed {
		if ev.Kind != timeline.Evicted {
			p.stops[a.node], p.moves[a.group] = true, true
			if ev.Moved == "" {
				p.stopsOwn[a.node] = true
			}
		}
	}
	moves := moveChecker{c}
	moves.pairMoves(p)
	inOrder(p.placed)
	c.checkVictims(p)
	c.checkBudgets(p)
	moves.checkMoved(p)
	for _, v := range p.evicted {
		c.checkLoss(v)
		if v.started && !v.node.down {
			c.evicted = append(c.evicted, eviction{c.now, v.group})
		}
	}
	for a, ev := range p.removed {
		c.remove(a)
		a.group.job.evaluated = a.group.job.evaluated || ev.Moved == ""
	}
	c.checkCohorts(p)
	for _, v := range p.evicted {
		v.live = !isGang(p) // until the placement that it is evicted for
	}
	for _, a := range p.placed {
		c.place(p, a)
	}
	for _, v := range p.evicted {
		v.live = false
	}
	moves.arrive(p)
	moves.checkMovesNecessary(p)
	c.checkSpreads(p)
	c.checkColocation(p)
	for _, n := range c.nodeList {
		if why := overfull(n, c.here(n)); why != "" {
			c.report("capacity", "node %s has too little %s", n.id, why)
		}
	}
	c.checkGangs(p)
}

// inOrder sorts placements in the order in which they are made: by group and index.
func inOrder(placed []*alloc) {
	if len(placed) == 0 {
		return
	}
	turns := placementTurns(placed[0].group.job)
	slices.SortStableFunc(placed, func(a, b *alloc) int {
		return cmp.Or(cmp.Compare(turns[a.group], turns[b.group]), cmp.Compare(a.index, b.index))
	})
}

// placementTurns returns when each group of a job is placed: in the order of the file, but
// a group that must run near another one follows that one.
func placementTurns(j *job) map[*group]int {
	needs := func(g, other *group) bool {
		return slices.ContainsFunc(g.Colocate, func(t labelTerm) bool { return matches(&t, other) })
	}
	turns, left := map[*group]int{}, slices.Clone(j.groups)
	for len(left) > 0 {
		next := 0
		for i, g := range left {
			if !slices.ContainsFunc(left, func(o *group) bool { return needs(g, o) && !needs(o, g) }) {
				next = i
				break
			}
		}
		turns[left[next]] = len(turns)
		left = slices.Delete(left, next, next+1)
	}
	return turns
}

// place checks one placement and adds it to the state.
func (c *checker) place(p *plan, a *alloc) {
	j := a.group.job
	switch {
	case !j.registered || j.stopped:
		c.report("placements", "%s is placed, and its job is not registered", a.id)
	case a.group.done[a.index] && !j.resubmit:
		c.report("placements", "%s is placed, and the instance has completed", a.id)
	}
	if why := excludedFrom(a.node, a.group); why != "" {
		c.report("constraints", "%s must not be placed on %s: %s", a.id, a.node.id, why)
	}
	if why := wrongDevices(a); why != "" {
		c.report("devices", "%s has %s", a.id, why)
	}
	for _, v := range p.evicted {
		if p.removed[v].By == a.id {
			a.victims = append(a.victims, v)
			v.live = false
		}
	}
	if !j.AllAtOnce { // the order within a gang is not known
		why := c.exclusion(a.node, a.group, nil)
		if why == "" && !p.moves[a.group] {
			why = c.skewed(a.node, a.group, nil)
		}
		if why != "" {
			c.report("topology", "%s must not be placed on %s: %s", a.id, a.node.id, why)
		}
		for i := range a.group.Colocate {
			if t := &a.group.Colocate[i]; c.isFirst(a.group, t, nil) {
				a.first = append(a.first, t)
			}
		}
	}
	c.checkWorkOf(a)
	a.placedAt = c.now
	c.allocs[a.id] = a
	c.order = append(c.order, a)
	if c.promisesMinimal() && !j.AllAtOnce && !j.perNode {
		c.checkMinimal(p, a)
	}
}

func isGang(p *plan) bool { return len(p.placed) > 0 && p.placed[0].group.job.AllAtOnce }

// checkSpreads checks after a plan that hard spreads hold for the groups of which it stops
// instances.
func (c *checker) checkSpreads(p *plan) {
	for _, a := range p.placed {
		if a.group.job.AllAtOnce || !p.moves[a.group] {
			continue
		}
		if why := c.skewed(a.node, a.group, a); why != "" {
			c.report("topology", "%s must not be placed on %s: %s", a.id, a.node.id, why)
		}
	}
}

// checkColocation checks after a plan that no placement lost the allocation that its
// co-location requires to a victim of the same plan.
func (c *checker) checkColocation(p *plan) {
	if len(p.evicted) == 0 {
		return
	}
	for _, a := range p.placed {
		for i := range a.group.Colocate {
			t := &a.group.Colocate[i]
			if why := c.apart(a.node, a.group, t, a); why != "" && !slices.Contains(a.first, t) {
				c.report("topology", "%s on %s depends on a victim of its plan: %s", a.id, a.node.id, why)
			}
		}
	}
}

// checkWorkOf compares the work that a replacement inherits with that of the victim that
// it replaces.
func (c *checker) checkWorkOf(a *alloc) {
	if a.group.job.perNode || a.group.job.resubmit {
		return
	}
	old := c.predecessor(a)
	if old == nil || a.group.Duration <= 0 {
		return
	}
	if old.interrupt && old.group.Disconnect == nil { // it was lost, and its node does not report its work
		return
	}
	if want := old.retained(); a.saved != want {
		c.report("saved work", "%s continues after %d ns, and its predecessor %s saved %d ns", a.id, a.saved, old.id, want)
	}
}

// predecessor returns the allocation of the same instance that ended last, or nil if the
// newest one is live. It is not the newest one if that ran while the node of an older one was
// disconnected. Of several that ended at once, it is the one that saved most.
func (c *cluster) predecessor(a *alloc) (last *alloc) {
	live := false
	for _, old := range c.order {
		if old.group != a.group || old.index != a.index {
			continue
		}
		if live = old.live; live {
			continue
		}
		if last == nil || old.endedAt > last.endedAt || old.endedAt == last.endedAt && old.retained() >= last.retained() {
			last = old
		}
	}
	if live {
		return nil
	}
	return last
}

// retained returns the work that an allocation which has ended leaves to its successor.
func (a *alloc) retained() int64 { return a.saved + savedBy(a, a.endedAt) }

// savedBy returns the work up to the last checkpoint of an allocation's own run.
func savedBy(a *alloc, now int64) int64 {
	if a.group.Checkpoint <= 0 {
		return 0
	}
	return a.age(now) / int64(a.group.Checkpoint) * int64(a.group.Checkpoint)
}

// checkLoss compares the work that an eviction loses with the result.
func (c *checker) checkLoss(v *alloc) {
	if c.losses >= len(c.run.LostWork) {
		c.losses++
		return
	}
	at := slices.IndexFunc(c.run.LostWork, func(l Loss) bool { return l.Alloc == v.id })
	c.losses++
	if at < 0 {
		c.report("lost work", "the result lacks the eviction of %s", v.id)
		return
	}
	if want := v.age(c.now) - savedBy(v, c.now); c.run.LostWork[at].Work != want {
		c.report("lost work", "%s loses %d ns, and the result reports %d ns", v.id, want, c.run.LostWork[at].Work)
	}
}

// isMove reports whether a placement takes over from an instance on a draining node, which
// the plan stops.
func (p *plan) isMove(a *alloc) bool {
	for old, ev := range p.removed {
		if ev.Kind == timeline.Stopped && old.group == a.group && old.index == a.index && old.node.draining {
			return true
		}
	}
	return false
}

// checkGangs checks that a job with allAtOnce is complete after each of its placements. A
// move leaves it as it was.
func (c *checker) checkGangs(p *plan) {
	seen := map[*job]bool{}
	for _, a := range p.placed {
		j := a.group.job
		if !j.AllAtOnce || j.perNode || seen[j] || j.resubmit || p.isMove(a) {
			continue
		}
		seen[j] = true
		for _, g := range j.groups {
			if n := c.countLive(g) + len(g.done); n < g.count {
				c.report("gangs", "%s of a gang has %d of %d instances after a placement", g, n, g.count)
			}
			for _, b := range c.order {
				if !b.live || b.group != g || !slices.Contains(p.placed, b) {
					continue
				}
				if why := c.conflict(b.node, g, b); why != "" && len(g.Spread) == 0 {
					c.report("topology", "%s of a gang must not be placed on %s: %s", b.id, b.node.id, why)
				}
			}
		}
	}
}
