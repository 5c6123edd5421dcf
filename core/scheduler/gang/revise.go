package gang

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
)

// A gang is placed one instance after another, each where its own victims are the cheapest. A
// victim of a later instance may free more than that instance uses, so that an earlier one
// evicted for nothing, or should have shared that victim. Therefore the instances of one
// node at a time are placed again while all others stay, and the policy chooses between the
// two ways. Nodes whose instances now fit elsewhere without evictions come first.

// Bounds of a revision. Each instance costs a search of the nodes that it may use, as much as
// when it was placed first.
const (
	maxRevised   = 24 // instances that are placed again
	maxExchanged = 8  // instances of a gang of which also nodes without a place elsewhere are revised
)

// A revision is the search for a better way to place a gang that evicts.
type revision struct {
	*gang
	domains map[*model.Group]*feasible.Domain
	first   *model.Group // about which the policy is called
	best    *way
	left    int // instances that may still be placed again
}

// revise improves the placements of the gang, with groups limited to domains.
func (g *gang) revise(domains map[*model.Group]*feasible.Domain) error {
	if !g.isRevisable(g.e.Plan) || !g.hasLocalRules(domains) {
		return nil
	}
	r := &revision{gang: g, domains: domains, first: g.order[slices.IndexFunc(g.order, g.isMissing)], best: g.takeWay()}
	err := placement.WithoutMoves(g.e, r.run)
	r.best.reinstate(g)
	return err
}

// isRevisable reports whether a plan of the gang evicts, and consists of placements and of
// evictions on their own nodes alone. Moves, replaced allocations and cohorts connect several nodes.
func (g *gang) isRevisable(plan *proposal.Plan) bool {
	base, group := g.e.State.Base, plan.GroupAt(g.start.plan)
	if group == nil || len(group.Evictions) == 0 || len(group.Placements) < 2 || len(group.Stops) > 0 || g.e.Policy.Version.KeepsRedundant() {
		return false
	}
	nodes := map[string]int32{} // by instance
	for _, a := range group.Placements {
		nodes[a.ID] = a.NodePos
	}
	return !slices.ContainsFunc(group.Evictions, func(x model.Eviction) bool {
		victim := base.Alloc(x.AllocID)
		return victim.Job.AllOrNone || victim.NodePos != nodes[x.By]
	})
}

// hasLocalRules reports whether no instance needs another one where it is, or a victim to be gone
// from another node: co-location holds anywhere in the domains, and the planner replays all other
// rules in the order of the placements.
func (g *gang) hasLocalRules(domains map[*model.Group]*feasible.Domain) bool {
	return !slices.ContainsFunc(g.order, func(group *model.Group) bool {
		if !g.isMissing(group) {
			return false
		}
		rules, d := feasible.NewRules(g.e.Rules, group), domains[group]
		return rules != nil && (rules.HasSeparation() || !rules.BindsByColocationAlone()) ||
			slices.ContainsFunc(group.Colocate, func(t model.LabelTerm) bool { return len(g.bound) == 0 || !d.Covers(t.TopologyKey) })
	})
}

// run improves the way at hand, and for a small gang of several groups also the way in the
// reverse order of its groups, and keeps the better one. In that order, small instances use free
// capacity that suffices for them alone, and for which large ones would leave victims.
func (r *revision) run() error {
	if err := r.improve(); err != nil {
		return err
	}
	order := slices.DeleteFunc(slices.Clone(r.order), func(group *model.Group) bool { return !r.isMissing(group) })
	if len(order) < 2 || len(r.best.Placed) > maxExchanged {
		return nil
	}
	slices.Reverse(order)
	r.rollback()
	w, err := r.place(order, r.missing)
	if w == nil || err != nil {
		return err
	}
	other := r.best
	r.best = w
	err = r.improve()
	if better, failed := r.isBetter(r.best, other); err != nil || failed != nil || !better {
		r.best, err = other, cmp.Or(err, failed)
	}
	return err
}

// improve places the instances of one node after another again until no node changes or the limit
// is reached.
func (r *revision) improve() error {
	r.left = maxRevised
	tried := map[int32]bool{}        // since the best way changed
	for r.isRevisable(r.best.plan) { // a better way may evict a cohort
		pos, ok := r.next(tried)
		if !ok {
			return nil
		}
		tried[pos] = true
		w, err := r.place(r.order, r.withoutNode(pos))
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		better, err := r.isBetter(w, r.best)
		if err != nil {
			return err
		}
		if better {
			r.best = w
			clear(tried)
			tried[pos] = true
		}
	}
	return nil
}

// place places missing instances in the order of groups, and returns the way in which the gang
// is placed then; nil: not all of them could be placed.
func (r *revision) place(order []*model.Group, missing [][]reconcile.Missing) (*way, error) {
	err := r.e.Within(r.domains, func() error {
		for _, group := range order {
			if err := r.e.PlaceGroup(group, missing[group.Position]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !r.e.Unplaced.IsEmpty() {
		r.rollback()
		return nil, err
	}
	return r.takeWay(), nil
}

// isBetter reports whether the policy prefers one way to another.
func (r *revision) isBetter(w, other *way) (bool, error) {
	if len(w.Victims) == 0 || len(other.Victims) == 0 {
		return len(w.Victims) < len(other.Victims), nil
	}
	c, err := r.e.Compare(r.first, r.waitingSince(r.first), []preempt.Joint{other.Joint, w.Joint}, nil)
	return err == nil && c.Better(1, 0), err
}

// next returns the node to revise next: the first one of which an instance fits elsewhere, or
// the first one if the gang is small.
func (r *revision) next(tried map[int32]bool) (pos int32, ok bool) {
	open := r.openNodes()
	for _, v := range r.best.Victims {
		if tried[v.NodePos] || !r.mayRevise(v.NodePos) {
			continue
		}
		if slices.ContainsFunc(r.best.Placed, func(a *model.Allocation) bool {
			return a.NodePos == v.NodePos && slices.ContainsFunc(open[a.Group], func(to int32) bool { return to != a.NodePos })
		}) {
			return v.NodePos, true
		}
		if !ok && len(r.best.Placed) <= maxExchanged {
			pos, ok = v.NodePos, true
		}
	}
	return pos, ok
}

// openNodes returns the nodes of the gang that have free capacity for one more instance, at most
// two of each group. No other node has gained any.
func (r *revision) openNodes() map[*model.Group][]int32 {
	snap, job, open := r.best.state.Snapshot(), r.e.Job, map[*model.Group][]int32{}
	var scratch model.Vector
	for _, a := range r.best.Placed {
		free := snap.FreeCapacityFor(a.NodePos, job.Key(), job.Priority, r.e.Now, &scratch)
		for _, group := range r.order {
			if len(open[group]) == 2 || slices.Contains(open[group], a.NodePos) {
				continue
			}
			if slices.ContainsFunc(snap.NodeAt(a.NodePos).DeviceChoices(&group.Ask), func(choice []int16) bool {
				return model.Fits(free, &group.Ask, choice).Kind == model.ShortageNone
			}) {
				open[group] = append(open[group], a.NodePos)
			}
		}
	}
	return open
}

// mayRevise reports whether the limit permits to place the instances of a node again. If all are
// on one node, the result would be the same.
func (r *revision) mayRevise(pos int32) bool {
	n := 0
	for _, a := range r.best.Placed {
		if a.NodePos == pos {
			n++
		}
	}
	return n <= r.left && n < len(r.best.Placed)
}

// withoutNode sets the evaluation to the best way without the instances and victims of a node,
// and returns these instances by group.
func (r *revision) withoutNode(pos int32) (removed [][]reconcile.Missing) {
	e := r.e
	r.rollback()
	*e.Plan = *r.best.plan.Clone()
	gone := map[string]bool{} // IDs of the instances
	removed = make([][]reconcile.Missing, len(r.missing))
	var kept, victims []*model.Allocation
	for _, a := range r.best.Placed {
		if a.NodePos != pos {
			// A later reprieve changes the allocations and the explanations of one way alone.
			again := *a
			again.Preempted = slices.Clone(a.Preempted)
			kept = append(kept, &again)
			continue
		}
		at := a.Group.Position
		gone[a.ID] = true
		removed[at] = append(removed[at], r.missing[at][slices.IndexFunc(r.missing[at], func(m reconcile.Missing) bool { return m.Index == a.Index })])
		r.left--
	}
	for _, v := range r.best.Victims {
		if v.NodePos != pos {
			victims = append(victims, v)
		}
	}
	group := e.Plan.GroupAt(r.start.plan)
	group.Placements = slices.Clone(kept)
	group.Evictions = slices.DeleteFunc(group.Evictions, func(x model.Eviction) bool { return gone[x.By] })
	group.Choices = slices.DeleteFunc(group.Choices, func(c *model.Choice) bool { return gone[c.By] })
	for i, c := range group.Choices {
		again := *c
		again.Candidates = slices.Clone(c.Candidates)
		group.Choices[i] = &again
	}
	e.State.Apply(kept, victims, model.DesiredEvict)
	// Some instances of a group are in the state already.
	e.Rules.Recount()
	e.ResetEvictions(r.start.victims, victims)
	return removed
}
