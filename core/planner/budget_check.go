package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// The protection of victims beyond priority, checked on the newest state: other
// plans may have used up a budget, or placed more instances of an all-or-none job.

// budgetCharges counts the evictions that the plan charges to strict budgets, and the moves
// that it charges to all budgets.
// Invariant: charges[at] is the number of occurrences of at in charged.
type budgetCharges struct {
	charges []int   // by position in Snapshot.Budgets
	charged []int32 // positions in the order of charges, for rollback
}

// charge charges a victim to the strict budgets that apply to it. Plans in flight are
// part of snap, and accepted groups of this plan are counted here, so they cannot
// overrun a budget together. The charge remains if it is rejected: the caller rolls the
// group back. A victim that is not available is not charged, because evicting it does
// not reduce the number of available allocations.
func (s *budgetCharges) charge(snap *state.Snapshot, now int64, victim *model.Allocation) rejection {
	if snap.StrictBudgetCount() == 0 || !victim.Available() {
		return rejection{}
	}
	for _, at := range snap.GroupBudgets(victim.Group) {
		b := snap.Budgets()[at]
		if !b.Strict {
			continue
		}
		if slack, ok := s.chargeBudget(snap, now, at); !ok {
			return rejection{
				cause: CauseBudget, nodeID: victim.NodeID,
				reason: fmt.Sprintf("allocation %q may not be evicted: the strict disruption budget %q allows %d more evictions%s", victim.ID, b.Key(), max(0, slack), inWindow(b)),
			}
		}
	}
	return rejection{}
}

// chargeBudget counts a disruption under a budget, and reports whether the budget allows it.
// slack is how many it allows in total.
func (s *budgetCharges) chargeBudget(snap *state.Snapshot, now int64, at int32) (slack int, ok bool) {
	for len(s.charges) <= int(at) {
		s.charges = append(s.charges, 0)
	}
	s.charges[at]++
	s.charged = append(s.charged, at)
	slack = snap.DisruptionsAllowed(at, now)
	return slack, s.charges[at] <= slack
}

// inWindow returns the text for the window of a budget, or "" if it has none.
func inWindow(b *model.Budget) string {
	if b.MaxEvictions == nil {
		return ""
	}
	return fmt.Sprintf(" now, of %s", b.MaxEvictions)
}

// rollbackCharges reverts the charges since charged had this length. It costs the
// number of charges that it reverts; charges is never cleared as a whole.
func (s *budgetCharges) rollbackCharges(length int) {
	for _, at := range s.charged[length:] {
		s.charges[at]--
	}
	s.charged = s.charged[:length]
}

// checkCohorts checks that the group evicts all-or-none jobs entirely, or no more than
// their surplus instances. It runs after all evictions of the group, since the first of
// them alone is never complete. It costs one pass over the job's allocations for each
// victim group.
func (s *Scratch) checkCohorts(g *model.CommitGroup) rejection {
	var checked []*model.Group
	for i := range g.Evictions {
		victim := s.snap.Alloc(g.Evictions[i].AllocID)
		if victim == nil || !victim.Job.AllOrNone || !victim.Live() || slices.Contains(checked, victim.Group) {
			continue
		}
		checked = append(checked, victim.Group)
		if stays := s.remainingMember(victim); stays != nil {
			return rejection{
				cause: CauseVictim, nodeID: victim.NodeID,
				reason: fmt.Sprintf("allocation %q may not be evicted: its job is evicted all-or-none, and %q remains", victim.ID, stays.ID),
			}
		}
	}
	return rejection{}
}

// remainingMember returns a cohort member of the victim that would remain, or nil if
// the eviction is complete. Surplus instances are those above the minimum that the
// cohort needs. They may be evicted individually, so they complete no cohort.
func (s *Scratch) remainingMember(victim *model.Allocation) (stays *model.Allocation) {
	live, left := 0, 0
	for _, a := range s.snap.AppendJobAllocs(nil, victim.Job.Key()) {
		if !a.InCohort() || s.isLost(a) {
			continue
		}
		ended := s.hasEnded(a)
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
