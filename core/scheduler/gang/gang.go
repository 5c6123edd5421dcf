package gang

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
)

// A gang is one attempt to place all missing instances of a job.
//
// Placing group by group, each instance on its best node, is fast and usually
// suffices, but it is greedy: a small group may use the only node that a large one
// fits, and the first instance of a co-located group may start in a rack that lacks
// capacity for the rest. So if that fails, and amounts do not exclude the gang, the
// largest group goes first (order.go), domains are tried in turn for co-located
// groups (domains.go), and last a search backtracks (search.go).
type gang struct {
	e       *placement.Evaluation
	missing [][]reconcile.Missing // by Group.Position
	start   mark
	cut     int // steps after which a search ended at its bound; 0: none did
	// infeasible is set if evictions cannot help either, so that the searches are
	// skipped.
	infeasible bool
}

// A mark is the evaluation before any instance of the gang was placed.
type mark struct {
	state    proposal.StateMark
	unplaced placement.Unplaced
	plan     int
}

// Place places all missing instances, given by Group.Position, or none. It returns
// the error of a policy at fault.
func Place(e *placement.Evaluation, missing [][]reconcile.Missing) error {
	g := &gang{e: e, missing: missing, start: mark{e.State.Mark(), e.Unplaced, e.Plan.Mark()}}
	e.Plan.Bind("gang")
	defer e.Plan.Unbind()
	// A gang that fits into free capacity must never evict, and the greedy attempt with
	// preemption might.
	if e.Preemption.Allowed && !g.isKnownInfeasible() {
		if placed, err := g.tryWithoutPreemption(); placed || err != nil {
			return err
		}
		g.infeasible = !hasEvictable(e.State.Base, e.Preemption.Ceiling)
	}
	if placed, err := g.try(); placed || err != nil {
		return err
	}
	g.fail()
	return nil
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

func (g *gang) tryWithoutPreemption() (placed bool, err error) {
	err = g.e.WithoutPreemption(func() (err error) {
		placed, err = g.try()
		return err
	})
	if err == nil && !placed {
		g.rollback()
	}
	return placed, err
}

// try places the gang. If it returns false, e.Unplaced holds the reasons.
func (g *gang) try() (placed bool, err error) {
	e := g.e
	if err := g.placeGroups(e.Job.Groups); err != nil {
		return false, err
	}
	if !e.Unplaced.IsEmpty() {
		failed := e.Unplaced // the reasons of the greedy attempt are the clearest ones
		if placed, err = g.search(); err != nil || !placed {
			at := e.Unplaced.RecheckAt
			e.Unplaced = failed
			e.Unplaced.RecheckBy(at)
			return false, err
		}
	}
	g.reprieveVictims()
	return true, nil
}

// placeGroups places groups in order, each instance on its best node.
func (g *gang) placeGroups(groups []*model.Group) error {
	for _, group := range groups {
		if err := g.e.PlaceGroup(group, g.missing[group.Position]); err != nil {
			return err
		}
	}
	return nil
}

// rollback discards everything that was done for the gang.
func (g *gang) rollback() {
	e := g.e
	e.Plan.Rollback(g.start.plan)
	e.State.Rollback(g.start.state)
	e.Unplaced = g.start.unplaced
	e.Rules.DropCounts()
	e.ResetEvictions()
}

// fail discards the plan and records for every group why it is not placed.
func (g *gang) fail() {
	e := g.e
	e.Plan.Rollback(g.start.plan)
	why := "all at once: another group of the job cannot be placed"
	if g.cut > 0 {
		why = fmt.Sprintf("all at once: no placement of all groups was found in %d steps, and the search was not exhaustive", g.cut)
	}
	nodes := e.State.Base.NodeCount()
	for i, group := range e.Job.Groups {
		n := len(g.missing[i])
		if queued := e.Unplaced.Queued[group.Name]; n > queued {
			e.Fail(group, n-queued, &model.Explanation{Nodes: nodes, Filtered: map[string]int{why: nodes}})
		}
	}
	if g.cut == 0 {
		return
	}
	e.Unplaced.SearchesCut++
	for _, x := range e.Unplaced.Failed {
		if x.Filtered[why] == 0 {
			model.CountReason(&x.Preempted, why, x.Nodes)
		}
	}
}

// search looks for nodes for all instances after the greedy attempt has failed.
func (g *gang) search() (placed bool, err error) {
	g.rollback()
	if g.infeasible || g.greedyIsComplete() || !g.mayFit() {
		return false, nil
	}
	if placed, err = g.tryLargestFirst(); placed || err != nil {
		return placed, err
	}
	if placed, err = g.tryDomains(); placed || err != nil {
		return placed, err
	}
	s := newSearch(g.e, g.missing)
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
