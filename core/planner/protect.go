package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// What protects victims beside their priority, as of the newest state: others'
// plans may have used up a budget, or placed more of a job that goes whole.

// charge takes a victim off the strict budgets that it is under. Plans in flight
// are in the state that is looked at, and groups of this plan that hold are
// counted here, so no two of them overrun a budget together.
func (s *Scratch) charge(victim *model.Allocation) refusal {
	if s.snap.StrictBudgetCount() == 0 || !victim.Available() {
		return refusal{}
	}
	for _, at := range s.snap.GroupBudgets(victim.Group) {
		b := s.snap.Budgets()[at]
		if !b.Strict {
			continue
		}
		for len(s.charges) <= int(at) {
			s.charges = append(s.charges, 0)
		}
		s.charges[at]++
		s.charged = append(s.charged, at)
		if slack := s.snap.DisruptionsAllowed(at, s.now); s.charges[at] > slack {
			return refusal{
				cause: CauseBudget, nodeID: victim.NodeID,
				reason: fmt.Sprintf("allocation %q may not be evicted: the strict disruption budget %q allows %d more evictions%s", victim.ID, b.Key(), max(0, slack), inWindow(b)),
			}
		}
	}
	return refusal{}
}

// inWindow is over which time a budget counts, where it does.
func inWindow(b *model.Budget) string {
	if b.MaxEvictions == nil {
		return ""
	}
	return fmt.Sprintf(" now, of %s", b.MaxEvictions)
}

// uncharge forgets the charges since charged had this length.
func (s *Scratch) uncharge(length int) {
	for _, at := range s.charged[length:] {
		s.charges[at]--
	}
	s.charged = s.charged[:length]
}

// goWhole checks that of jobs that are evicted whole nothing stays, or enough of
// every group that somebody leaves.
func (s *Scratch) goWhole(g *model.CommitGroup) refusal {
	var checked []*model.Group
	for i := range g.Evictions {
		victim := s.snap.Alloc(g.Evictions[i].AllocID)
		if victim == nil || !victim.Job.AllOrNone || !victim.Live() || slices.Contains(checked, victim.Group) {
			continue
		}
		checked = append(checked, victim.Group)
		if stays := s.leftBehind(victim); stays != nil {
			return refusal{
				cause: CauseVictim, nodeID: victim.NodeID,
				reason: fmt.Sprintf("allocation %q may not be evicted: its job goes whole or not at all, and %q stays", victim.ID, stays.ID),
			}
		}
	}
	return refusal{}
}

// leftBehind is somebody who would have to go with a victim and stays.
func (s *Scratch) leftBehind(victim *model.Allocation) (stays *model.Allocation) {
	live, left := 0, 0
	for _, a := range s.snap.AppendJobAllocs(nil, victim.Job.Key()) {
		if !a.InCohort() {
			continue
		}
		ended := s.ended(a)
		if !ended {
			stays = a
		}
		if a.Group.Name == victim.Group.Name {
			live++
			if ended {
				left++
			}
		}
	}
	if job := s.snap.Job(victim.Job.Key()); stays != nil && job != nil && left <= job.SurplusInstances(victim.Group.Name, live) {
		return nil
	}
	return stays
}
