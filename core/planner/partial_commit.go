package planner

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Two workers that fill the same nodes on the same snapshot plan more for a node
// than fits. Rejecting the later group as a whole would waste the remaining
// capacity, and a plan of hundreds of instances on a few nodes with it. So if the
// placements of a group hold independently, those that fit are committed. The
// result lists the others, and their evaluation plans them on the following state.

// checkDivisible accepts the parts that hold of groups that were rejected and may
// be divided.
func (s *Scratch) checkDivisible() (int, rejection) {
	for i := range s.rejected {
		if s.rejected[i].reason == "" || !s.isDivisible(i) {
			continue
		}
		if r := s.checkParts(i); r.malformed {
			return i, r
		}
	}
	return 0, rejection{}
}

// isDivisible reports whether the placements of a group hold independently,
// whatever the plan states. The verifier checks rules for groups as they were
// planned, so a group with rules is not divided.
func (s *Scratch) isDivisible(i int) bool {
	g := &s.plan.Groups[i]
	return g.Divisible && len(g.Placements) > 1 && len(g.Updates)+len(g.Stops)+len(g.Claims) == 0 && !g.HasBindingChanges() &&
		s.job != nil && !s.job.AllAtOnce && s.hasNoRules(s.snap, s.plan)
}

// checkParts accepts the placements of a group that hold, one after the other, each
// with its evictions. If none holds, the group remains rejected for its first reason.
// It appends to dropped in ascending order, which trimmed relies on.
func (s *Scratch) checkParts(i int) rejection {
	g := &s.plan.Groups[i]
	mark := len(s.dropped)
	for k := range g.Placements {
		r := s.checkPart(i, k)
		if r.malformed {
			return r
		}
		if r.reason != "" {
			s.dropped = append(s.dropped, omission{i, k})
		}
	}
	if len(s.dropped)-mark == len(g.Placements) {
		s.dropped = s.dropped[:mark]
		return rejection{}
	}
	s.accepted = append(s.accepted, i)
	if len(s.dropped) == mark { // capacity became free after its last check
		s.rejected[i] = rejection{}
	}
	return rejection{}
}

// checkPart checks one placement. If it does not hold, its changes are rolled back.
func (s *Scratch) checkPart(i, k int) rejection {
	g := &s.plan.Groups[i]
	// One mark for each part of the scratch that a placement changes.
	journal, taken, omitted, charged := len(s.journal), len(s.instanceLog), len(s.omitted), len(s.charged)
	var r rejection
	for e := range g.Evictions {
		if r.reason == "" && g.Evictions[e].By == g.Placements[k].ID {
			r = s.checkEviction(g, i, e)
		}
	}
	if s.evictsCohort {
		// An all-or-none eviction depends on the other evictions of the group.
		s.evictsCohort = false
		r = s.rejected[i]
	}
	if r.reason == "" {
		r = s.checkPlacement(g.Placements[k])
	}
	if r.reason != "" {
		s.rollback(journal)
		s.rollbackInstances(taken)
		s.rollbackCharges(charged)
		s.omitted = s.omitted[:omitted]
	}
	return r
}

// droppedPlacements returns the positions of the placements that are dropped from a
// group of which a part holds, or nil if there are none.
func (s *planTrim) droppedPlacements(group int) []int {
	var places []int
	for _, o := range s.dropped {
		if o.group == group {
			places = append(places, o.which)
		}
	}
	return places
}

// dropPlacements removes placements from a group, and the evictions that serve them.
// places are positions in the plan as submitted. They are valid because omit, which
// runs before, replaces placements but never removes one.
func dropPlacements(g *model.CommitGroup, places []int) {
	gone := map[string]bool{}
	var rest []*model.Allocation
	for k, a := range g.Placements {
		if slices.Contains(places, k) {
			gone[a.ID] = true
		} else {
			rest = append(rest, a)
		}
	}
	g.Placements = rest
	g.Evictions = slices.DeleteFunc(slices.Clone(g.Evictions), func(e model.Eviction) bool { return gone[e.By] })
	dropChoices(g)
}
