package planner

import (
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

// Validate checks a plan without any state: nothing may be missing, negative or of
// another job. Verification of a valid plan cannot panic. It returns a *PlanError if
// the plan is malformed. Enqueue calls it on the submitter's goroutine, so that
// malformed plans cost the applier nothing. Verify calls it again for callers without a
// queue. It costs one pass over the changes of the plan and allocates only for a fault.
func Validate(plan *model.Plan) error {
	if plan == nil {
		return &PlanError{Group: -1, Fault: "the plan is missing"}
	}
	if plan.Job.ID == "" || plan.Job.Namespace == "" {
		return &PlanError{EvalID: plan.EvalID, Group: -1, Fault: "the job is missing"}
	}
	for i := range plan.Groups {
		if fault := validateGroup(plan, &plan.Groups[i]); fault != "" {
			return &PlanError{EvalID: plan.EvalID, Group: i, Fault: fault}
		}
	}
	return nil
}

// validateGroup returns the first fault of a group, or "".
func validateGroup(plan *model.Plan, g *model.CommitGroup) string {
	for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
		for _, a := range list {
			if fault := validateAllocation(plan, a); fault != "" {
				return fault
			}
		}
	}
	for i := range g.Stops {
		if g.Stops[i].AllocID == "" {
			return "a stop names no allocation"
		}
	}
	for i := range g.Evictions {
		if g.Evictions[i].AllocID == "" {
			return "an eviction names no allocation"
		}
	}
	if fault := validateMoves(plan, g); fault != "" {
		return fault
	}
	for _, c := range g.Claims {
		if fault := validateClaim(plan, c); fault != "" {
			return fault
		}
	}
	if changesBindings(g) {
		return validateBindings(plan, g)
	}
	return ""
}

// validateAllocation returns the first fault of a placement or update, or "". The group
// must belong to the very version that the allocation names, since its ask is reserved.
// An index must fit in the 32 bits of an instance.
func validateAllocation(plan *model.Plan, a *model.Allocation) string {
	switch {
	case a == nil:
		return "an allocation is missing"
	case a.ID == "":
		return "an allocation has no id"
	case a.Job == nil:
		return fmt.Sprintf("allocation %q has no job", a.ID)
	case a.Group == nil:
		return fmt.Sprintf("allocation %q has no group", a.ID)
	case a.Job.Key() != plan.Job && !isMoved(a): // see validateMoves
		return fmt.Sprintf("allocation %q is of job %s, the plan of %s", a.ID, a.Job.Key(), plan.Job)
	case a.Group.Job != a.Job:
		return fmt.Sprintf("group %q of allocation %q is not of its job", a.Group.Name, a.ID)
	case a.NodeID == "":
		return fmt.Sprintf("allocation %q names no node", a.ID)
	case a.Index < 0:
		return fmt.Sprintf("allocation %q has the negative index %d", a.ID, a.Index)
	case a.Index > math.MaxInt32:
		return fmt.Sprintf("allocation %q has the index %d", a.ID, a.Index)
	case a.Desired != model.DesiredRun:
		return fmt.Sprintf("allocation %q is to be placed with desired status %s", a.ID, a.Desired)
	case a.Client.Terminal():
		return fmt.Sprintf("allocation %q is to be placed although it is %s", a.ID, a.Client)
	}
	return validateDevices("allocation", a.ID, a.Devices)
}

// validateClaim returns the first fault of a claim, or "". A negative amount would add
// capacity to the node for every other job.
func validateClaim(plan *model.Plan, c *model.Claim) string {
	switch {
	case c == nil:
		return "a claim is missing"
	case c.ID == "":
		return "a claim has no id"
	case c.NodeID == "" && c.ClusterID == "":
		return fmt.Sprintf("claim %q names no node and no cluster", c.ID)
	case c.Claimant != plan.Job:
		return fmt.Sprintf("claim %q is of %s, the plan of %s", c.ID, c.Claimant, plan.Job)
	}
	for d := range c.Vec {
		if c.Vec[d] < 0 {
			return fmt.Sprintf("claim %q reserves the negative amount %d", c.ID, c.Vec[d])
		}
	}
	return validateDevices("claim", c.ID, c.Devices)
}

// validateDevices returns the fault of a device count, or "". checkFit compares the
// counts with the request of the group.
func validateDevices(owner, id string, uses []model.DeviceUse) string {
	for i := range uses {
		if uses[i].Count < 0 {
			return fmt.Sprintf("%s %q holds the negative count %d of device %q", owner, id, uses[i].Count, uses[i].ID)
		}
	}
	return ""
}
