package planner

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// effective is the plan without what was omitted or left out. The plan itself belongs to
// its submitter, so what differs is copied.
func (s *Scratch) effective() *model.Plan {
	if len(s.omitted)+len(s.parted) == 0 {
		return s.plan
	}
	plan := *s.plan
	plan.Groups = slices.Clone(plan.Groups)
	slices.SortStableFunc(s.omitted, func(a, b omission) int { return a.group - b.group })
	for rest := s.omitted; len(rest) > 0; {
		group := rest[0].group
		n := slices.IndexFunc(rest, func(o omission) bool { return o.group != group })
		if n < 0 {
			n = len(rest)
		}
		omit(&plan.Groups[group], group, rest[:n])
		rest = rest[n:]
	}
	for i := range s.refused {
		if places := s.leftOut(i); places != nil {
			leaveOut(&plan.Groups[i], places)
		}
	}
	return &plan
}

// omit takes stops and evictions out of a group. A placement must not claim
// victims that it does not have.
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
	if len(gone) == 0 {
		return
	}
	g.Placements = slices.Clone(g.Placements)
	for i, a := range g.Placements {
		if !slices.ContainsFunc(a.Preempted, func(id string) bool { return gone[id] }) {
			continue
		}
		own := *a
		own.Preempted = slices.DeleteFunc(slices.Clone(a.Preempted), func(id string) bool { return gone[id] })
		g.Placements[i] = &own
	}
}
