package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A move consists of a stop and a placement of one commit group, of a job other than that
// of the plan. Both halves are checked in one group, so that either both are committed or
// neither is.

// A moveCheck checks the moves of a plan as a part of its groups.
type moveCheck struct{ *Scratch }

// isMoved reports whether a placement is one half of a move.
func isMoved(a *model.Allocation) bool { return a.MovedFrom != "" }

// successor returns the placement to which a stop moves its allocation, or nil if the
// group has none.
func successor(g *model.CommitGroup, stop *model.Stop) *model.Allocation {
	for _, a := range g.Placements {
		if a.ID == stop.MovedTo {
			return a
		}
	}
	return nil
}

// validateMoves returns the first fault of the moves of a group, or "": each must have both
// halves, of another job than the plan's, and serve a placement of the plan's job.
func validateMoves(plan *model.Plan, g *model.CommitGroup) string {
	moved, own := 0, 0
	for _, a := range g.Placements {
		switch other := a.Job.Key() != plan.Job; {
		case isMoved(a) && !other:
			return fmt.Sprintf("allocation %q of the plan's own job is to be moved", a.ID)
		case !isMoved(a):
			own++
		case !slices.ContainsFunc(g.Stops, func(s model.Stop) bool { return s.AllocID == a.MovedFrom && s.MovedTo == a.ID }):
			return fmt.Sprintf("allocation %q replaces %q, which its commit group does not stop", a.ID, a.MovedFrom)
		default:
			moved++
		}
	}
	for i := range g.Stops {
		if stop := &g.Stops[i]; stop.MovedTo != "" {
			if to := successor(g, stop); to == nil || to.MovedFrom != stop.AllocID {
				return fmt.Sprintf("allocation %q is moved to %q, which its commit group does not place", stop.AllocID, stop.MovedTo)
			}
			moved--
		}
	}
	switch {
	case moved != 0:
		return "an allocation is moved twice"
	case own == 0 && slices.ContainsFunc(g.Placements, isMoved):
		return "the moves of a commit group make room for no placement"
	}
	return ""
}

// from checks the first half of a move, and frees the capacity of its allocation.
// Unlike other stops it is never left out: if the instance has ended, it would be started
// again by the second half.
func (s moveCheck) from(g *model.CommitGroup, stop *model.Stop) rejection {
	a := s.snap.Alloc(stop.AllocID)
	if a == nil {
		return rejection{cause: CauseVictim, reason: fmt.Sprintf("allocation %q to be moved is gone", stop.AllocID)}
	}
	to := successor(g, stop)
	if to.Job.Key() != a.Job.Key() || to.Group.Name != a.Group.Name || to.Index != a.Index || to.NodeID == a.NodeID {
		return malformed("the move of allocation %q to %q changes its instance, or not its node", a.ID, to.ID)
	}
	why := s.snap.MoveObstacle(a, s.priority, s.latest())
	if why == "" {
		why = s.limit(a.Job.Key())
	}
	if why == "" && s.job != nil && s.job.NeverPreempts {
		why = "the other job has preemptionPolicy Never"
	}
	if why == "" && !s.endAlloc(a) {
		why = "the plan ends it already"
	}
	if why != "" {
		return rejection{cause: CauseVictim, nodeID: a.NodeID, reason: fmt.Sprintf("allocation %q may not be moved: %s", a.ID, why)}
	}
	return s.charge(a)
}

// limit returns why no more instances of a job may be moved, or "". All moves of the
// plan count, also those of rejected groups: a plan has few of them, and is made again.
func (s moveCheck) limit(key model.JobKey) string {
	rate := s.plan.Moves
	if rate == nil {
		rate = s.snap.Config().Moves
	}
	if rate == nil {
		return "moves are off"
	}
	n := s.snap.RecentMoves(key, s.latest(), rate)
	for i := range s.plan.Groups {
		for _, a := range s.plan.Groups[i].Placements {
			if isMoved(a) && a.Job.Key() == key {
				n++
			}
		}
	}
	if n > int(rate.Number) {
		return fmt.Sprintf("its job allows %s in %s", model.Counted(int(rate.Number), "move", "moves"), rate.Window)
	}
	return ""
}

// to checks the second half of a move, and reserves its capacity. The first half
// was checked before: removals precede placements.
func (s moveCheck) to(a *model.Allocation) rejection {
	job := s.snap.Job(a.Job.Key())
	if job == nil || job.Stopped || job.Version != a.Job.Version {
		return rejection{CauseJob, a.NodeID, fmt.Sprintf("the job of allocation %q has changed", a.ID), false}
	}
	g := job.Group(a.Group.Name)
	if g == nil || g.Ask.Vec != a.Group.Ask.Vec || !slices.Equal(g.Ask.Ports, a.Group.Ask.Ports) {
		return malformed("allocation %q requests other resources than its group", a.ID)
	}
	pos, r := s.checkTarget(a)
	if r.reason != "" {
		return r
	}
	if g.IsExpelledFrom(s.snap.NodeAt(pos)) {
		return rejection{CauseNode, a.NodeID, "a NoExecute taint of the node permits the moved instance to stay only for some time", false}
	}
	s.existing = s.snap.AppendJobAllocs(s.existing[:0], job.Key())
	for _, other := range s.existing {
		if other.Live() && other.ID != a.MovedFrom && other.Group.Name == g.Name && other.Index == a.Index && !isReplaceable(s.snap, job, other) {
			return rejection{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q is the same instance", other.ID), false}
		}
	}
	at := s.openNode(pos)
	if r := s.checkFit(at, &g.Ask, a); r.reason != "" {
		return r
	}
	s.reserve(at, &g.Ask, a.Devices)
	return rejection{}
}

// charge charges a moved allocation to all budgets that apply to it. It interrupts the
// instance as an eviction does, and is never urgent enough to exceed a budget.
func (s moveCheck) charge(a *model.Allocation) rejection {
	if !a.Available() {
		return rejection{}
	}
	for _, at := range s.snap.GroupBudgets(a.Group) {
		if slack, ok := s.chargeBudget(s.snap, s.now, at); !ok {
			b := s.snap.Budgets()[at]
			return rejection{
				cause: CauseBudget, nodeID: a.NodeID,
				reason: fmt.Sprintf("allocation %q may not be moved: the disruption budget %q allows %d more disruptions%s", a.ID, b.Key(), max(0, slack), inWindow(b)),
			}
		}
	}
	return rejection{}
}
