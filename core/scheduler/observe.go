package scheduler

import (
	"cmp"
	"errors"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// observe makes the decisions to evict that an evaluation would lead to if its job could
// preempt, and adds them to the outcome of the plan without evictions. The evaluation is
// planned a second time on the same snapshot, with everything that applies to a job that
// preempts, and only the reasons of that plan remain. It costs nothing unless something was
// not placed.
//
// If the policy is at fault, nothing is observed and the outcome has the fault.
func (s *Scheduler) observe(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64, out *Outcome) error {
	a, err := s.newAttempt(policies, eval, snap, now)
	if err != nil {
		return err
	}
	a.e.Preemption.Allowed = true
	err = a.run()
	fault, ok := errors.AsType[*policy.Error](err)
	if err != nil && !ok {
		return err
	}
	fault = cmp.Or(fault, a.e.Policy.Ignored)
	a.recordUse(fault)
	if fault == nil {
		out.Observed = observations(a.finish().Plan)
	} else {
		out.Fault = fault
	}
	return nil
}

// observations returns the decisions of a plan that evict, in its order, at most
// model.MaxObservations.
func observations(plan *model.Plan) (list []*model.Observation) {
	for i := range plan.Groups {
		g := &plan.Groups[i]
		byPlacement := map[string]*model.Observation{}
		for _, e := range g.Evictions {
			o := byPlacement[e.By]
			if o == nil {
				if len(list) == model.MaxObservations {
					return list
				}
				o = &model.Observation{AllocID: e.By, Policy: e.Policy, PlannedOn: plan.SnapshotIndex, PlannedAt: plan.Now}
				byPlacement[e.By] = o
				list = append(list, o)
			}
			o.Victims = append(o.Victims, e.AllocID)
		}
		for _, a := range g.Placements {
			if o := byPlacement[a.ID]; o != nil {
				o.Group, o.NodeID = a.Group.Name, a.NodeID
			}
		}
		for _, c := range g.Choices {
			if o := byPlacement[c.By]; o != nil {
				o.Choice = c
			}
		}
	}
	return list
}
