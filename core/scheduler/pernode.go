package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// processPerNode plans a system or sysbatch job: one instance of every group on
// every node that may take it. Nodes are decided one by one, but looked at
// together: one scan, and one search for victims, for all of them.
func (r *run) processPerNode() error {
	r.stopForeign()
	for i, g := range r.job.Groups {
		if err := r.placeEverywhere(g, i+1 < len(r.job.Groups)); err != nil {
			return err
		}
	}
	if r.out.Escaped {
		// What keeps it from its nodes may be on others, and they tell nothing of that.
		r.out.BlockedNodes = nil
	}
	slices.Sort(r.out.BlockedNodes)
	r.out.BlockedNodes = slices.Compact(r.out.BlockedNodes)
	return nil
}

// coverage is what a group already has on each node.
type coverage struct {
	live    map[string]*model.Allocation // by node id
	last    map[string]*model.Allocation // highest incarnation by node id
	done    map[string]bool
	indexes map[int]bool
	next    int
}

// cover sorts the group's allocations by node and ends those that no longer
// belong there.
func (r *run) cover(g *model.Group, f *feasibility) *coverage {
	c := &coverage{
		live: map[string]*model.Allocation{}, last: map[string]*model.Allocation{},
		done: map[string]bool{}, indexes: map[int]bool{},
	}
	for _, a := range r.byGroup[g.Position] {
		c.indexes[a.Index] = true
		if last := c.last[a.NodeID]; last == nil || a.Incarnation > last.Incarnation {
			c.last[a.NodeID] = a
		}
		if a.Client == model.ClientComplete && a.Desired == model.DesiredRun {
			c.done[a.NodeID] = true
		}
		if a.Live() && !r.release(g, f, a, c) {
			c.live[a.NodeID] = a
		}
	}
	return c
}

// release ends an allocation that has no business on its node any more.
func (r *run) release(g *model.Group, f *feasibility, a *model.Allocation, c *coverage) bool {
	pos, ok := r.base.Position(a.NodeID)
	var node *model.Node
	if ok {
		node = r.base.NodeAt(pos)
	}
	switch {
	case c.live[a.NodeID] == nil && r.awaits(g, a, node):
		return false
	case node == nil || node.Status == model.NodeDown:
		r.plan.stop(a, nodeIsDown, true)
	case node.Drain:
		r.plan.stop(a, "its node is draining", false)
	case r.banish(g, a, node):
	case c.live[a.NodeID] != nil:
		r.plan.stop(a, "another allocation of the group is on this node", false)
	case g.Count == 0 || !f.node(r.base.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize) && !g.CanRemain(node):
		r.plan.stop(a, "the node no longer matches", false)
	case a.Job.Version != r.job.Version:
		return r.renew(g, a)
	default:
		return false
	}
	return true
}

// renew brings an allocation to the newest version: in place, or by ending it
// so that a new one takes its place.
func (r *run) renew(g *model.Group, a *model.Allocation) (ended bool) {
	if !sameInstance(a.Group, g) {
		r.plan.stop(a, "the job was updated", false)
		return true
	}
	next := *a
	next.Job, next.Group = r.job, g
	r.plan.update(&next)
	return false
}

// index is the number of a new instance: that of the last one on the node, else
// the lowest that is free.
func (c *coverage) index(nodeID string) (index, incarnation int) {
	if last := c.last[nodeID]; last != nil {
		return last.Index, last.Incarnation + 1
	}
	for c.indexes[c.next] {
		c.next++
	}
	c.next++
	return c.next - 1, 0
}

// placeEverywhere places one group. others says whether groups follow that must
// see where this one went.
func (r *run) placeEverywhere(g *model.Group, others bool) error {
	p := &placer{run: r, group: g, feasible: r.s.feasible.reset(g, r.base.ClassCount()), ranker: &r.s.ranker}
	defer p.close()
	have := r.cover(g, p.feasible)
	if g.Count == 0 {
		return nil
	}
	r.freeLost()
	p.rules = r.newRules(g)
	p.ranker.build(r, g, p.feasible, p.rules, 0)
	e := everywhere{placer: p, have: have}
	hopeful, full := e.placeReady()
	if len(hopeful) > 0 {
		rest, err := e.evictFor(hopeful)
		if err != nil {
			return err
		}
		full = append(full, rest...)
	}
	if len(full) > 0 {
		p.explainAmong(full)
		r.fail(g, len(full), p.explain())
		r.out.Escaped = r.out.Escaped || p.rules.binds()
		for _, pos := range full {
			r.out.BlockedNodes = append(r.out.BlockedNodes, r.base.NodeAt(pos).ID)
		}
	}
	if others {
		e.settle()
	}
	return nil
}

// explainAmong restricts the explanation to the nodes that were left out: those
// that have their instance are none of its business. The search's outcomes about
// other nodes go with them.
func (p *placer) explainAmong(nodes []int32) {
	p.among = slices.Clone(nodes)
	slices.SortFunc(p.among, func(a, b int32) int {
		return int(p.run.s.order.rankOf[a] - p.run.s.order.rankOf[b])
	})
}

// everywhere collects what one group gets on all nodes.
type everywhere struct {
	*placer
	have    *coverage
	placed  []*model.Allocation
	victims []*model.Allocation
	// The first so many of both have taken effect in the state as proposed; charged
	// is what the others cost strict budgets.
	settledPlaced, settled int
	charged                map[int32]int
}

// placeReady fills the nodes that have room and returns those that may take the
// group but lack it: hopeful ones, where something may be evicted, in tie order,
// and the others.
func (e *everywhere) placeReady() (hopeful, hopeless []int32) {
	k := e.ranker
	k.scanFull()
	for rank, s := range k.standing {
		pos := e.run.s.order.byRank[rank]
		chunk, i := e.run.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		if chunk.Eligible()>>i&1 == 0 || !e.feasible.node(chunk, i) {
			continue
		}
		node := chunk.Node(i)
		switch {
		case e.have.live[node.ID] != nil || e.have.done[node.ID] || e.retriesLater(node.ID):
		case s == standsReady && e.allowed(pos):
			choice, _ := k.device(pos, node)
			e.add(preempt.Choice{Pos: pos, Device: choice, Score: k.score[rank]})
		case s == standsFull:
			hopeful = append(hopeful, pos)
		default:
			hopeless = append(hopeless, pos)
		}
	}
	return hopeful, hopeless
}

// retriesLater is whether what ran on the node failed, and is not replaced yet.
func (e *everywhere) retriesLater(nodeID string) bool {
	last := e.have.last[nodeID]
	return last != nil && e.run.retryAt(last) > e.run.now
}

// allowed is whether the rules still allow a node, after what was placed on
// others.
func (e *everywhere) allowed(pos int32) bool { return e.rules == nil || e.rules.Allows(pos) }

// evictFor evicts on full nodes and returns those for which there is no option, in
// tie order. All are searched at once, each on the state as it is: victims of one
// seldom concern another. Where they do, the nodes that are left are looked at
// again on the state that the others leave.
func (e *everywhere) evictFor(full []int32) (rest []int32, err error) {
	for {
		rest, clashed, err := e.evictOnce(full)
		if err != nil || !clashed {
			return rest, err
		}
		e.settle()
		if full = e.placeWhereRoomCameUp(rest); len(full) == 0 {
			return nil, nil
		}
	}
}

// evictOnce is one look at all full nodes. clashed is whether a node is among the
// rest because of what was evicted for others.
func (e *everywhere) evictOnce(full []int32) (rest []int32, clashed bool, err error) {
	e.waits = e.run.now
	for _, pos := range full {
		e.waits = min(e.waits, e.run.missingSince(e.have.last[e.run.proposed.NodeAt(pos).ID]))
	}
	if err := e.search(full); err != nil {
		return nil, false, err
	}
	next := 0
	err = e.run.s.finder.EachNode(func(c preempt.Choice) {
		for full[next] != c.Pos {
			rest = append(rest, full[next])
			next++
		}
		next++
		clashes := e.clashes(c)
		clashed = clashed || clashes
		if clashes || !e.allowed(c.Pos) {
			rest = append(rest, c.Pos)
			return
		}
		e.add(c)
	})
	return append(rest, full[next:]...), clashed, err
}

// clashes is whether an option takes from a job that is evicted whole, or down to
// so many, after another node has, or more from a strict budget than others left.
func (e *everywhere) clashes(c preempt.Choice) bool {
	snap := e.run.proposed
	costs := map[int32]int{}
	for _, v := range c.Victims {
		if v.Job.AllOrNone && slices.ContainsFunc(e.victims[e.settled:], func(gone *model.Allocation) bool {
			return gone.Job.Key() == v.Job.Key()
		}) {
			return true
		}
		if snap.StrictBudgetCount() == 0 || !v.Available() {
			continue
		}
		for _, at := range snap.GroupBudgets(v.Group) {
			if snap.Budgets()[at].Strict {
				costs[at]++
			}
		}
	}
	for at, n := range costs {
		if e.charged[at]+n > snap.DisruptionsAllowed(at, e.run.now) {
			return true
		}
	}
	for at, n := range costs {
		if e.charged == nil {
			e.charged = map[int32]int{}
		}
		e.charged[at] += n
	}
	return false
}

// settle lets what was placed and evicted so far take effect.
func (e *everywhere) settle() {
	e.close() // the next search begins afresh
	e.run.propose(e.placed[e.settledPlaced:], e.victims[e.settled:], model.DesiredEvict)
	e.settledPlaced, e.settled, e.charged = len(e.placed), len(e.victims), nil
}

// placeWhereRoomCameUp fills those of some nodes that have room now, and returns
// the others.
func (e *everywhere) placeWhereRoomCameUp(nodes []int32) (full []int32) {
	for _, pos := range nodes {
		e.ranker.update(pos)
		rank := e.run.s.order.rankOf[pos]
		if e.ranker.standing[rank] != standsReady || !e.allowed(pos) {
			full = append(full, pos)
			continue
		}
		choice, _ := e.ranker.device(pos, e.run.proposed.NodeAt(pos))
		e.add(preempt.Choice{Pos: pos, Device: choice, Score: e.ranker.score[rank]})
	}
	return full
}

// add places an instance.
func (e *everywhere) add(c preempt.Choice) {
	w := want{}
	w.index, w.incarnation = e.have.index(e.run.proposed.NodeAt(c.Pos).ID)
	if last := e.have.last[e.run.proposed.NodeAt(c.Pos).ID]; last != nil {
		w.saved = last.RetainedWork()
	}
	a := e.allocation(w, c)
	e.run.plan.place(a, c.Victims, versionOf(c), nil, "")
	for _, v := range c.Victims {
		e.run.evicted.Add(v.Group)
	}
	e.count(a, 1)
	for _, v := range c.Victims {
		e.count(v, -1)
	}
	e.placed, e.victims = append(e.placed, a), append(e.victims, c.Victims...)
}
