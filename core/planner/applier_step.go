package planner

import (
	"context"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// Step takes one batch of plans from the queue, verifies and commits it, answers
// the submitters, and returns the number of answered plans. It is Run without
// goroutines: what Run does during a commit happens after it.
func (a *Applier) Step(ctx context.Context) (int, error) {
	r := a.newBatch(nil)
	taken := 0
	for !a.full(&r) {
		p := a.next()
		if p == nil {
			break
		}
		if !a.admit(ctx, &r, p, true) {
			a.deferred = p
			break
		}
		taken++
	}
	return taken, a.finish(ctx, &r)
}

// ApplyOne verifies and commits one plan in the calling goroutine, without the
// queue. It returns ErrStateBehind if the plan's snapshot is newer than the store.
func (a *Applier) ApplyOne(plan *model.Plan) (*model.PlanResult, error) {
	if err := Validate(plan); err != nil {
		return nil, err
	}
	p := &PendingPlan{plan: plan, done: make(chan struct{}), state: planTaken}
	r := a.newBatch(nil)
	if plan.SnapshotIndex > r.base.Index() {
		return nil, fmt.Errorf("%w: at %d, the plan at %d", ErrStateBehind, r.base.Index(), plan.SnapshotIndex)
	}
	a.verify(&r, p)
	_ = a.finish(context.Background(), &r) // p holds the error
	return p.Result()
}

// finish writes a batch and waits for it.
func (a *Applier) finish(ctx context.Context, r *batchBuilder) error {
	batch := a.seal(r)
	if batch == nil {
		a.respond(r, CommitResult{}, nil)
		return nil
	}
	_, err := a.commit(ctx, r, batch)
	return err
}
