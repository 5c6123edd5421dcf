package gang

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
)

// The groups of a job that is not a gang are placed in order, and each has a turn. If a group is
// bound to a topology domain, domains are searched at its turn, on the plan as it is then: the
// groups before it keep the free capacity that they would have used without it.

// turns places the groups of a job that is not a gang.
type turns struct {
	e *placement.Evaluation
	// missing holds the instances that are not placed yet, by Group.Position.
	missing [][]reconcile.Missing
	// searched are groups for which no domain was found. They are not searched again.
	searched map[*model.Group]bool
	// apart is set once no domains took several sets of groups together. The sets are then
	// searched one by one.
	apart bool
}

// PlaceInOrder places the missing instances of a job that is not a gang, given by Group.Position,
// as far as there is capacity. Groups that must share a topology domain are placed in one that
// holds all of them, if there is any. It returns the error of a policy at fault.
func PlaceInOrder(e *placement.Evaluation, missing [][]reconcile.Missing) error {
	t := turns{e: e, missing: missing}
	order := feasible.PlacementOrder(e.Job.Groups)
	for i, group := range order {
		if len(group.Colocate) > 0 && t.isMissing(group) && !t.searched[group] && placement.SearchesDomains(e) {
			if err := t.search(order[i:]); err != nil {
				return err
			}
		}
		if err := e.PlaceGroup(group, t.missing[group.Position]); err != nil {
			return err
		}
	}
	return nil
}

func (t *turns) isMissing(group *model.Group) bool { return len(t.missing[group.Position]) > 0 }

// search searches domains for the first of the remaining groups, if it is bound to any, with all
// groups that must share them.
//
// Groups that follow at once and are bound to domains of their own are searched together with it
// first: it might otherwise use the only domain that suffices for them.
func (t *turns) search(rest []*model.Group) error {
	waiting := slices.DeleteFunc(slices.Clone(rest), func(group *model.Group) bool { return !t.isMissing(group) })
	snap := t.e.State.Freeze()
	bound := topology.BoundTogether(snap, waiting)
	if len(bound) == 0 {
		return nil
	}
	if n := len(bound); !t.apart && isPrefix(bound, waiting) {
		for n < len(waiting) {
			more := topology.BoundTogether(snap, waiting[n:])
			if len(more) == 0 || !isPrefix(more, waiting[n:]) || t.searched[more[0]] {
				break
			}
			n += len(more)
		}
		if n > len(bound) {
			placed, err := t.place(waiting[:n], n)
			if placed || err != nil {
				return err
			}
			t.apart = true
		}
	}
	leading := 0
	for leading < len(bound) && bound[leading] == waiting[leading] {
		leading++
	}
	placed, err := t.place(bound, leading)
	if err != nil || placed {
		return err
	}
	if t.searched == nil {
		t.searched = map[*model.Group]bool{}
	}
	for _, group := range bound {
		t.searched[group] = true
	}
	return nil
}

// isPrefix reports whether some groups of a list, in its order, are the first ones.
func isPrefix(some, list []*model.Group) bool { return some[len(some)-1] == list[len(some)-1] }

// place places all missing instances of the leading ones of some groups, or none, in domains that
// take all of the groups. Groups that are not among them follow others, which have their turn
// first, and are then bound to the same domains.
func (t *turns) place(groups []*model.Group, leading int) (placed bool, err error) {
	e := t.e
	earlier := e.Unplaced
	e.Unplaced = placement.Unplaced{} // failures of earlier groups are not failures of these
	e.Plan.Bind("co-located " + groups[0].Name)
	defer e.Plan.Unbind()
	g := newGang(e, t.of(groups), groups)
	placed, err = placeByMeans(g)
	if placed && leading < len(groups) {
		levels := chosenLevels(g, groups[:leading])
		g.rollback()
		g = newGang(e, t.of(groups[:leading]), groups[:leading])
		g.bound = levels
		placed, err = placeByMeans(g)
	}
	if placed {
		g.recount()
		earlier.RecheckBy(e.Unplaced.RecheckAt)
		earlier.SearchesCut += e.Unplaced.SearchesCut
		for _, group := range g.order {
			t.missing[group.Position] = nil
		}
	} else {
		g.rollback()
	}
	e.Unplaced = earlier
	return placed, err
}

// of returns the missing instances of some groups by Group.Position.
func (t *turns) of(groups []*model.Group) [][]reconcile.Missing {
	missing := make([][]reconcile.Missing, len(t.missing))
	for _, group := range groups {
		missing[group.Position] = t.missing[group.Position]
	}
	return missing
}

// placeByMeans places a gang in domains. As elsewhere, a domain with enough free capacity is
// preferred to any move, and moves to evictions unless these lose less work.
func placeByMeans(g *gang) (placed bool, err error) {
	e := g.e
	place := func() error {
		placed, _, err = g.placeInDomains(g.bound)
		return err
	}
	if e.Preemption.Allowed || e.Moves.Allowed() {
		err = e.WithoutPreemption(false, place)
	}
	if !placed && err == nil && e.Preemption.Allowed && e.Moves.Allowed() {
		if err = e.WithoutPreemption(true, place); placed && err == nil {
			err = preferEvictions(g, func() (placed bool, err error) {
				placed, _, err = g.placeInDomains(g.bound)
				return placed, err
			})
			return err == nil, err
		}
	}
	if !placed && err == nil {
		err = place()
	}
	return placed, err
}

// chosenLevels returns the levels of some groups of a gang that is placed, limited to the domains
// in which it is.
func chosenLevels(g *gang, groups []*model.Group) (levels []topology.Level) {
	placed := g.e.Plan.GroupAt(g.start.plan).Placements
	for _, l := range g.bound {
		at := slices.IndexFunc(placed, func(a *model.Allocation) bool { return a.MovedFrom == "" && slices.Contains(l.Groups, a.Group) })
		l.Value, _ = g.e.State.Base.NodeAt(placed[at].NodePos).Domain(l.Key)
		l.Groups = slices.DeleteFunc(slices.Clone(l.Groups), func(group *model.Group) bool { return !slices.Contains(groups, group) })
		if len(l.Groups) > 0 {
			levels = append(levels, l)
		}
	}
	return levels
}
