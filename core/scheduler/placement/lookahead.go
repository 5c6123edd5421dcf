package placement

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// A Player predicts the consequences of plans. It serves one goroutine.
type Player interface {
	// Play returns the outlook of a plan, and the cost of the play. The plan was made on a
	// snapshot and is not complete: the rest of its evaluation is planned first.
	Play(base *state.Snapshot, eval *model.Evaluation, set *policy.Set, plan *model.Plan) (o model.Outlook, cost int)
	// Fuel returns the total cost that the plays of one evaluation may have.
	Fuel(base *state.Snapshot) int
}

// outlooks plays choices for the instance that a Placer is placing.
type outlooks struct {
	p       *Placer
	missing reconcile.Missing // the instance
}

var _ preempt.LookAhead = (*outlooks)(nil)

// Outlook plays the plan so far with the instance placed by a choice. The ID of the new
// allocation is its name, because random IDs could break ties differently when the
// decision is made again.
func (o *outlooks) Outlook(c *preempt.Choice) (model.Outlook, bool) {
	e := o.p.e
	player, base := e.ws.Options.Player, e.State.Base
	if e.fuelUsed >= player.Fuel(base) {
		return model.Outlook{}, false
	}
	plan := e.Plan.Clone()
	a := newAllocation(e, o.p.group, o.missing, *c, model.AllocName(o.p.group, o.missing.Index, o.missing.Incarnation))
	plan.Place(&proposal.Placement{
		Alloc: a, Victims: c.Victims, Policy: PolicyID(*c), Replaces: o.missing.Replaces, Reason: o.missing.Reason,
	})
	outlook, cost := player.Play(base, e.Eval, e.Policy.Set, &model.Plan{
		EvalID: e.Eval.ID, Job: e.Job.Key(), Priority: e.Job.Priority, SnapshotIndex: base.Index(), Now: e.Now, Groups: plan.Groups(),
	})
	e.fuelUsed += cost
	return outlook, true
}
