package planner

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// planTrim lists what is left out of the plan.
type planTrim struct {
	omitted []omission // removals of allocations that have ended, by group
	dropped []omission // placements that do not hold, of groups of which a part does; ascending
}

// trimmed returns the plan without the omitted removals and the dropped placements. The
// plan belongs to its submitter, so changed parts are copied. A plan from which nothing
// is left out is returned as it is, which is the common case.
func (s *planTrim) trimmed(plan *model.Plan, rejected []rejection) *model.Plan {
	if len(s.omitted)+len(s.dropped) == 0 {
		return plan
	}
	own := *plan
	own.Groups = slices.Clone(plan.Groups)
	// One pass below handles each group once. checkOneByOne visits groups several
	// times, so the list is not in order of groups.
	slices.SortStableFunc(s.omitted, func(a, b omission) int { return a.group - b.group })
	for rest := s.omitted; len(rest) > 0; {
		group := rest[0].group
		n := slices.IndexFunc(rest, func(o omission) bool { return o.group != group })
		if n < 0 {
			n = len(rest)
		}
		omit(&own.Groups[group], group, rest[:n])
		rest = rest[n:]
	}
	for i := range rejected {
		if places := s.droppedPlacements(i); places != nil {
			dropPlacements(&own.Groups[i], places)
		}
	}
	return &own
}

// omit removes stops and evictions from a group. A placement must not list victims that
// it does not evict. Slices are built anew, because the submitter still reads its own.
func omit(g *model.CommitGroup, group int, omitted []omission) {
	var stops []model.Stop
	for i := range g.Stops {
		if !slices.Contains(omitted, omittedStop(group, i)) {
			stops = append(stops, g.Stops[i])
		}
	}
	var evictions []model.Eviction
	gone := map[string]bool{}
	for i := range g.Evictions {
		if slices.Contains(omitted, omittedEviction(group, i)) {
			gone[g.Evictions[i].AllocID] = true
		} else {
			evictions = append(evictions, g.Evictions[i])
		}
	}
	for i := range evictions {
		delete(gone, evictions[i].AllocID) // listed twice, omitted once
	}
	g.Stops, g.Evictions = stops, evictions
	dropChoices(g)
	if len(gone) == 0 {
		return
	}
	g.Placements = slices.Clone(g.Placements)
	for i, a := range g.Placements {
		if !slices.ContainsFunc(a.Preempted, func(id string) bool { return gone[id] }) {
			continue
		}
		// The allocation is shared with the submitter, as its list of victims is.
		own := *a
		own.Preempted = slices.DeleteFunc(slices.Clone(a.Preempted), func(id string) bool { return gone[id] })
		g.Placements[i] = &own
	}
}

// dropChoices removes explanations of placements and claims that evict nothing any more.
func dropChoices(g *model.CommitGroup) {
	g.Choices = slices.DeleteFunc(slices.Clone(g.Choices), func(c *model.Choice) bool {
		return !slices.ContainsFunc(g.Evictions, func(e model.Eviction) bool { return e.By == c.By }) &&
			!slices.ContainsFunc(g.Withdrawals, func(w model.Withdrawal) bool { return w.By == c.By })
	})
}
