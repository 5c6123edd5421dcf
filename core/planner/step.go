package planner

import (
	"context"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// Step takes one batch of plans from the queue, checks and commits it, answers
// the submitters, and returns how many plans it answered. It is Run without
// goroutines: what Run does while a commit is in flight happens after it.
func (a *Applier) Step(ctx context.Context) (int, error) {
	r := a.newRound(nil)
	taken := 0
	for !a.full(&r) {
		p := a.take()
		if p == nil {
			break
		}
		if !a.admit(ctx, &r, p, true) {
			a.aside = p
			break
		}
		taken++
	}
	return taken, a.finish(ctx, &r)
}

// ApplyOne checks and commits one plan in the calling goroutine, past the
// queue. The plan must not come from a later state than the store's.
func (a *Applier) ApplyOne(plan *model.Plan) (*model.PlanResult, error) {
	if err := Validate(plan); err != nil {
		return nil, err
	}
	p := &PendingPlan{plan: plan, done: make(chan struct{}), place: placeApplier}
	r := a.newRound(nil)
	if plan.SnapshotIndex > r.base.Index() {
		return nil, fmt.Errorf("%w: at %d, the plan at %d", ErrStateBehind, r.base.Index(), plan.SnapshotIndex)
	}
	a.verify(&r, p)
	_ = a.finish(context.Background(), &r) // the answer holds the error
	return p.Result()
}

// finish writes a round and waits for it.
func (a *Applier) finish(ctx context.Context, r *round) error {
	batch := a.seal(r)
	if batch == nil {
		a.settle(r, CommitResult{}, nil)
		return nil
	}
	_, err := a.commit(ctx, r, batch)
	return err
}
