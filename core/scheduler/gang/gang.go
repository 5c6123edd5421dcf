package gang

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
)

// A gang is one attempt to place missing instances of a job together.
//
// Groups that are bound to one topology domain are searched domain by domain (domains.go).
// For other gangs, placing group by group, each instance on its best node, is fast and usually
// suffices, but it is greedy: the first instance of a co-located group may start in a
// domain that lacks capacity for the rest. So if that fails, and amounts do not exclude
// the gang, domains are tried as well, and then a search backtracks (search.go).
type gang struct {
	e       *placement.Evaluation
	missing [][]reconcile.Missing // by Group.Position
	order   []*model.Group        // in which groups are placed
	bound   []topology.Level      // domains that the groups must share
	start   mark
	short   *shortage // of the last search of domains that failed; nil: none did
	cut     int       // steps after which a search ended at its bound; 0: none did
	// infeasible is set if evictions cannot help either, so that the searches are
	// skipped.
	infeasible bool
}

// A mark is the evaluation before any instance of the gang was placed.
type mark struct {
	state    proposal.StateMark
	unplaced placement.Unplaced
	plan     int
	victims  []*model.Allocation // of groups that were placed earlier
}

// markOf returns the evaluation as it is.
func markOf(e *placement.Evaluation) mark {
	m := mark{state: e.State.Mark(), unplaced: e.Unplaced, plan: e.Plan.Mark()}
	for id := range e.Plan.Evictions() {
		m.victims = append(m.victims, e.State.Base.Alloc(id))
	}
	return m
}

// Place places all missing instances, given by Group.Position, or none. It returns the
// error of a policy at fault. If it places none, the explanations of the greedy attempt
// remain.
//
// Instances that move because their nodes drain run until they have another node. If not all
// can be placed together, those that run nowhere are placed without them and complete the
// gang, or else the others move.
func Place(e *placement.Evaluation, missing [][]reconcile.Missing) error {
	absent, moving := separateMoves(e.Job, missing)
	if !isAny(absent) || !isAny(moving) {
		return placeOrExplain(e, missing, "gang")
	}
	whole := newGang(e, missing, placementOrder(e.State.Base, e.Job))
	var placed bool
	// A failure is not cached: without the moves there is more capacity.
	err := placement.WithoutCache(e, func() (err error) {
		placed, err = whole.place("gang")
		return err
	})
	if placed || err != nil {
		return err
	}
	reasons := e.Unplaced
	whole.rollback()
	parts, keys := [][][]reconcile.Missing{absent, moving}, []string{"gang", "moves of a gang"}
	for i := range parts {
		g := newGang(e, parts[i], placementOrder(e.State.Base, e.Job))
		placed, err := g.place(keys[i])
		switch {
		case err != nil:
			return err
		case placed:
			e.Rules.Recount() // the other part may be of the same groups
			return placeOrExplain(e, parts[1-i], keys[1-i])
		}
		reasons.RecheckBy(e.Unplaced.RecheckAt)
		g.rollback()
	}
	e.Unplaced = reasons
	whole.fail()
	return nil
}

// separateMoves separates instances that take over from one of the current version of the job.
func separateMoves(job *model.Job, missing [][]reconcile.Missing) (others, moves [][]reconcile.Missing) {
	others, moves = make([][]reconcile.Missing, len(missing)), make([][]reconcile.Missing, len(missing))
	for i, list := range missing {
		for _, m := range list {
			if m.Replaces != nil && m.Replaces.Job.Version == job.Version {
				moves[i] = append(moves[i], m)
			} else {
				others[i] = append(others[i], m)
			}
		}
	}
	return others, moves
}

func isAny(missing [][]reconcile.Missing) bool {
	return slices.ContainsFunc(missing, func(list []reconcile.Missing) bool { return len(list) > 0 })
}

// placeOrExplain places all instances in one commit group, or none and records the reasons.
func placeOrExplain(e *placement.Evaluation, missing [][]reconcile.Missing, key string) error {
	g := newGang(e, missing, placementOrder(e.State.Base, e.Job))
	placed, err := g.place(key)
	if err == nil && !placed {
		g.fail()
	}
	return err
}

// place places the gang in one commit group. If it returns false, e.Unplaced holds the reasons
// of the greedy attempt.
func (g *gang) place(key string) (placed bool, err error) {
	e := g.e
	e.Plan.Bind(key)
	defer e.Plan.Unbind()
	// A gang that fits into free capacity must never evict or move, and the greedy attempt
	// might. Moves come before evictions: see preferEvictions.
	if (e.Preemption.Allowed || e.Moves.Allowed()) && !g.isKnownInfeasible() {
		if placed, err := g.tryWithoutPreemption(false); placed || err != nil {
			return placed, err
		}
		g.infeasible = !hasEvictable(e.State.Base, placement.ReclaimCeiling(e))
	}
	if e.Preemption.Allowed && e.Moves.Allowed() && !g.infeasible {
		if placed, err := g.tryWithoutPreemption(true); err != nil || placed {
			if placed {
				err = preferEvictions(g, func() (bool, error) { return g.try(false) })
			}
			return placed, err
		}
	}
	return g.try(true)
}

// preferEvictions calls place, which places the gang by evictions, if the gang is placed with moves
// that lose work. It restores the moves unless the evictions are preferred.
func preferEvictions(g *gang, place func() (placed bool, err error)) error {
	e, group := g.e, g.e.Plan.GroupAt(g.start.plan)
	var moved, evicted []*model.Allocation
	for i := range group.Stops {
		if group.Stops[i].MovedTo != "" {
			moved = append(moved, e.State.Base.Alloc(group.Stops[i].AllocID))
		}
	}
	if !placement.LosesWork(e, moved) {
		return nil
	}
	moves, before, placed := g.takeWay(), e.State.Freeze(), false
	err := placement.WithoutMoves(e, func() (err error) { placed, err = place(); return err })
	if err == nil && placed {
		group = e.Plan.GroupAt(g.start.plan)
		for i := range group.Evictions {
			evicted = append(evicted, e.State.Base.Alloc(group.Evictions[i].AllocID))
		}
		if placement.PrefersEvictions(e, before, evicted, moved) {
			return nil
		}
	}
	g.rollback()
	moves.reinstate(g)
	if e.Policy.Ignore(err) { // a policy at fault has no part in moves
		return nil
	}
	return err
}

func newGang(e *placement.Evaluation, missing [][]reconcile.Missing, order []*model.Group) *gang {
	g := &gang{e: e, missing: missing, order: order, start: markOf(e)}
	if waiting := slices.DeleteFunc(slices.Clone(order), func(group *model.Group) bool { return !g.isMissing(group) }); len(waiting) > 0 && placement.SearchesDomains(e) {
		g.bound = topology.Levels(e.State.Snapshot(), waiting, false)
	}
	return g
}

// recount makes the counts of the evaluation agree with the plan after victims were retained,
// for groups that are placed later.
func (g *gang) recount() {
	e := g.e
	e.Rules.DropCounts()
	var victims []*model.Allocation
	if group := e.Plan.GroupAt(g.start.plan); group != nil {
		for i := range group.Evictions {
			victims = append(victims, e.State.Base.Alloc(group.Evictions[i].AllocID))
		}
	}
	e.ResetEvictions(g.start.victims, victims)
}

// isKnownInfeasible reports whether the cached failure of some group still holds.
func (g *gang) isKnownInfeasible() bool {
	for i, group := range g.e.Job.Groups {
		if len(g.missing[i]) == 0 || slices.ContainsFunc(g.missing[i], func(m reconcile.Missing) bool { return m.Replaces != nil }) {
			continue
		}
		if g.e.IsInfeasible(group) {
			return true
		}
	}
	return false
}

// tryWithoutPreemption tries free capacity alone, or with moves, and rolls back if that fails.
func (g *gang) tryWithoutPreemption(moves bool) (placed bool, err error) {
	err = g.e.WithoutPreemption(moves, func() (err error) {
		placed, err = g.try(false)
		return err
	})
	if err == nil && !placed {
		g.rollback()
	}
	return placed, err
}

// try places the gang. If it returns false, e.Unplaced holds the reasons, provided that they
// are requested.
func (g *gang) try(explain bool) (placed bool, err error) {
	e, exhaustive := g.e, false
	if len(g.bound) > 0 {
		placed, exhaustive, err = g.placeInDomains(g.bound)
		if placed || err != nil || exhaustive && !explain {
			return placed, err
		}
		g.rollback()
	}
	if err := g.placeGroups(); err != nil {
		return false, err
	}
	if failed := e.Unplaced; failed.IsEmpty() {
		placed = true
	} else if placed, err = g.search(exhaustive); err == nil && !placed {
		at := e.Unplaced.RecheckAt
		e.Unplaced = failed // the reasons of the greedy attempt are the clearest ones
		e.Unplaced.RecheckBy(at)
	}
	if err != nil || !placed {
		return false, err
	}
	g.reprieveVictims()
	return true, g.revise(nil)
}

// placeGroups places groups in order, each instance on its best node. If not all of them can be
// placed after moves, they are placed without any: what was moved uses free capacity and is not
// evicted, so that later instances may lack a node that they have without the moves.
func (g *gang) placeGroups() error {
	e, moves := g.e, g.e.Moves.Proposed()
	place := func() error { return placeInOrder(e, g.order, g.missing) }
	if err := place(); err != nil || e.Unplaced.IsEmpty() || !e.Preemption.Allowed || e.Moves.Proposed() == moves {
		return err
	}
	failed := g.takeWay()
	err := placement.WithoutMoves(e, place)
	if err == nil && !e.Unplaced.IsEmpty() {
		g.rollback()
		failed.reinstate(g) // capacity of any node may help moves
	}
	return err
}

// placeInOrder places the missing instances of groups in order, each on its best node.
func placeInOrder(e *placement.Evaluation, order []*model.Group, missing [][]reconcile.Missing) error {
	for _, group := range order {
		if err := e.PlaceGroup(group, missing[group.Position]); err != nil {
			return err
		}
	}
	return nil
}

// rollback discards everything that was done for the gang. Counts of rules are dropped
// rather than reverted, and are made again on demand.
func (g *gang) rollback() {
	e := g.e
	e.Plan.Rollback(g.start.plan)
	e.State.Rollback(g.start.state)
	e.Unplaced = g.start.unplaced
	e.Rules.DropCounts()
	e.ResetEvictions(g.start.victims)
}

// fail discards the plan and records for every group why it is not placed.
func (g *gang) fail() {
	e := g.e
	noDomain, bound := "", []*model.Group(nil)
	if len(g.bound) > 0 {
		noDomain, bound = g.whyNoDomain()
	}
	placed := g.placedOf(g.order)
	e.Plan.Rollback(g.start.plan)
	why, attempt := anotherGroup, g.describeAttempt(placed)
	if g.cut > 0 {
		e.Unplaced.SearchesCut++
		why = fmt.Sprintf("no placement of all groups was found in %d steps, and the search was not exhaustive", g.cut)
		attempt = why + "; " + attempt
	}
	nodes := e.State.Base.NodeCount()
	for i, group := range e.Job.Groups {
		n := len(g.missing[i])
		if queued := e.Unplaced.Queued[group.Name]; n > queued {
			e.Fail(group, n-queued, &model.Explanation{Nodes: nodes, Gang: why})
		}
		// Each is a new one, because cached failures are shared.
		switch x := e.Unplaced.Failed[group.Name]; {
		case x == nil || n == 0:
		case slices.Contains(bound, group):
			e.Unplaced.Failed[group.Name] = &model.Explanation{
				Nodes: nodes, NotReady: x.NotReady, NoEviction: x.NoEviction, Waiting: n - 1, Gang: noDomain,
			}
		case x.Gang == "" && (g.cut > 0 || placed > 0 && groupMayFit(e, group, 1, placement.ReclaimCeiling(e))):
			again := *x
			again.Gang = attempt
			e.Unplaced.Failed[group.Name] = &again
		}
	}
}

// search looks for nodes for all instances after the greedy attempt has failed, unless
// the search of domains was exhaustive. If it returns false, nothing of the gang remains in
// the plan.
func (g *gang) search(exhaustive bool) (placed bool, err error) {
	g.rollback()
	if exhaustive || g.infeasible || g.greedyIsComplete(nil) || !g.mayFit() {
		return false, nil
	}
	if loose := topology.Levels(g.e.State.Snapshot(), slices.DeleteFunc(slices.Clone(g.order), func(group *model.Group) bool {
		return !g.isMissing(group)
	}), true); len(loose) > 0 && len(g.bound) == 0 {
		if placed, _, err = g.placeInDomains(loose); placed || err != nil {
			return placed, err
		}
		g.rollback()
	}
	s := newSearch(g)
	placed, err = s.find(0)
	if s.cut {
		g.cut += s.steps
	}
	if placed {
		s.write()
	} else {
		g.rollback()
	}
	return placed, err
}
