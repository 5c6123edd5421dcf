package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
)

// A whatIfCase holds the inputs of a decision. Its snapshot shares its content with the
// others.
type whatIfCase struct {
	snap  *state.Snapshot // that was planned on
	eval  *model.Evaluation
	now   int64
	group string
}

// addCases records the inputs of the decisions of a plan that were just added. Plans are
// committed at once, so that the state before is the one that was planned on.
func (r *recorder) addCases(e *engine, plan *model.Plan, before *state.Snapshot) {
	if !e.opts.WhatIf {
		return
	}
	for i := len(r.cases); i < len(r.decisions); i++ {
		c := whatIfCase{snap: before, eval: before.Eval(plan.EvalID), now: plan.Now}
		for g := range plan.Groups {
			for _, a := range plan.Groups[g].Placements {
				if a.ID == r.decisions[i].Alloc {
					c.group = a.Group.Name
				}
			}
		}
		r.cases = append(r.cases, c)
	}
}

// askWhatIf adds what would have spared the victims of every decision. A decision that
// cannot be reproduced has an explanation instead.
func (r *recorder) askWhatIf(ctx context.Context, e *engine) error {
	if !e.opts.WhatIf {
		return nil
	}
	policies, err := e.policies.Copy(nil)
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	defer policies.Unpin()
	for i := range r.decisions {
		d, c := &r.decisions[i], &r.cases[i]
		for _, victim := range d.Victims {
			answer, err := c.ask(ctx, policies, tiesOf(e.opts, e.file), victim)
			switch {
			case errors.Is(err, counterfactual.ErrNotReproduced):
				d.WhatIf = append(d.WhatIf, WhatIf{Victim: victim, Text: []string{err.Error()}})
			case err != nil:
				return err
			default:
				d.WhatIf = append(d.WhatIf, WhatIf{Victim: victim, Text: answer.Text(), Evaluations: answer.Evaluations})
			}
		}
	}
	return nil
}

// ask makes the decision again to find the changes that spare a victim.
func (c *whatIfCase) ask(ctx context.Context, policies *policy.Set, ties tiebreak.Order, victim string) (*counterfactual.Answer, error) {
	if c.eval == nil {
		return nil, counterfactual.ErrNotReproduced
	}
	x, err := counterfactual.New(ctx, counterfactual.Case{Eval: c.eval, Snap: c.snap, Now: c.now, Policies: policies, Ties: ties})
	if err != nil {
		return nil, err
	}
	answer, err := x.Ask(ctx, victim, c.group)
	if err == nil {
		answer.NameByID() // as the rest of a report does
	}
	return answer, err
}
