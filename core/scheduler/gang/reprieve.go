package gang

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// reprieveVictims retains victims that the gang as a whole does not need: a later
// instance may have freed more than it uses. It proceeds from the last victim to the
// first. A policy that returns redundant victims on purpose is left alone. Each victim
// costs one check of the nodes of the gang.
func (g *gang) reprieveVictims() {
	e := g.e
	group := e.Plan.GroupAt(g.start.plan)
	if group == nil || e.Policy.Version.KeepsRedundant() {
		return
	}
	// Jobs that are evicted all-or-none of which a member is needed, so that all are.
	needed := map[model.JobKey]bool{}
	for i := len(group.Evictions) - 2; i >= 0; i-- { // the last one is always needed
		if i >= len(group.Evictions) {
			continue // a whole cohort was removed from the list
		}
		victim := e.State.Base.Alloc(group.Evictions[i].AllocID)
		if victim.Job.AllOrNone && needed[victim.Job.Key()] {
			continue
		}
		// A member of a cohort can only be retained together with the others.
		retained := g.retainedWith(group, victim)
		if !retain(e.State, g.e.Job, e.Now, group.Placements, retained) {
			if len(retained) > 1 {
				needed[victim.Job.Key()] = true
			}
			continue
		}
		isRetained := func(id string) bool {
			return slices.ContainsFunc(retained, func(a *model.Allocation) bool { return a.ID == id })
		}
		group.Evictions = slices.DeleteFunc(group.Evictions, func(x model.Eviction) bool { return isRetained(x.AllocID) })
		for _, a := range group.Placements {
			if a.Preempted = slices.DeleteFunc(a.Preempted, isRetained); len(a.Preempted) == 0 {
				a.PolicyVersion = ""
			}
		}
		for _, c := range group.Choices {
			c.Reprieve(isRetained)
		}
	}
}

// retainedWith returns the victims that must be retained together with one: all of
// its cohort if the whole cohort is evicted, else the victim alone.
func (g *gang) retainedWith(group *model.CommitGroup, victim *model.Allocation) []*model.Allocation {
	list := []*model.Allocation{victim}
	job, snap := victim.Job, g.e.State.Snapshot()
	stays := func(a *model.Allocation) bool { return a.InCohort() && !a.LostWith(snap.Node(a.NodeID), g.e.Now) }
	if !job.AllOrNone || slices.ContainsFunc(snap.AppendJobAllocs(nil, job.Key()), stays) {
		return list
	}
	for _, x := range group.Evictions {
		if a := g.e.State.Base.Alloc(x.AllocID); a != victim && a.Job.AllOrNone && a.Job.Key() == job.Key() {
			list = append(list, a)
		}
	}
	return list
}

// retain returns victims to the proposed state if all of them fit next to the
// placements of a job, and reports whether they do.
func retain(s *proposal.State, job *model.Job, now int64, placed, victims []*model.Allocation) bool {
	before := s.Freeze()
	for _, v := range victims {
		if !fitsNextTo(s.Snapshot(), job, now, placed, v) {
			s.Restore(before)
			return false
		}
		s.Apply([]*model.Allocation{v}, nil, model.DesiredRun)
	}
	return true
}

// fitsNextTo reports whether a victim can stay on its node next to the
// placements of a job.
func fitsNextTo(snap *state.Snapshot, job *model.Job, now int64, placed []*model.Allocation, victim *model.Allocation) bool {
	node := snap.NodeAt(victim.NodePos)
	free := snap.FreeCapacityFor(victim.NodePos, job.Key(), job.Priority, now, new(model.Vector))
	if model.Fits(free, &victim.Group.Ask, devicesOf(node, victim)).Kind != model.ShortageNone {
		return false
	}
	return !slices.ContainsFunc(placed, func(a *model.Allocation) bool { return feasible.Conflict(snap, a, victim) })
}

// devicesOf returns the positions of the device groups that an allocation uses.
func devicesOf(n *model.Node, a *model.Allocation) (choice []int16) {
	for i := range a.Devices {
		choice = append(choice, int16(n.DevicePosition(a.Devices[i].ID)))
	}
	return choice
}
