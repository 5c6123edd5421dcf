package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// TriggerMaxPlans is the trigger of the follow-up of an evaluation if too many of its plans
// were rejected.
const TriggerMaxPlans model.Trigger = "max-plan-attempts"

// renewLease renews the lease of a delivery periodically until the returned function is
// called.
func (w *Worker) renewLease(ctx context.Context, d broker.Delivery) (stop func()) {
	if w.Renew <= 0 {
		return func() {}
	}
	r := &leaseRenewer{worker: w, ctx: ctx, delivery: d}
	r.mu.Lock()
	r.schedule()
	r.mu.Unlock()
	return r.stop
}

// leaseRenewer renews one lease.
type leaseRenewer struct {
	worker   *Worker
	ctx      context.Context
	delivery broker.Delivery

	mu      sync.Mutex
	timer   clock.Timer
	stopped bool
}

func (r *leaseRenewer) schedule() { r.timer = r.worker.Clock.AfterFunc(r.worker.Renew, r.renew) }

func (r *leaseRenewer) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	// After a failure the lease is lost, which Ack will report.
	if !r.stopped && r.worker.Queue.Renew(r.ctx, r.delivery.Eval.ID, r.delivery.Token) == nil {
		r.schedule()
	}
}

func (r *leaseRenewer) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.timer.Stop()
}

// retryLater ends an evaluation if its plans were rejected repeatedly, with a follow-up
// once the evaluations that it competed with have been processed.
func (w *Worker) retryLater(ctx context.Context, d broker.Delivery, snap *state.Snapshot) error {
	now := w.Clock.Now()
	done := *d.Eval
	done.Status, done.ModifyTime = model.EvalFailed, now.UnixNano()
	done.StatusText = fmt.Sprintf("%s; it is tried again in %v", ErrTooManyAttempts, w.Retry.Round(time.Second))
	done.Classes, done.BlockedNodes = nil, nil
	next := w.followUp(d.Eval, TriggerMaxPlans)
	next.WaitUntil = now.Add(w.Retry).UnixNano()
	if err := w.Evals.WriteEvals(ctx, d, &done, next); err != nil {
		return fmt.Errorf("evaluation %s: %w", d.Eval.ID, err)
	}
	return w.Queue.Ack(context.WithoutCancel(ctx), d.Eval.ID, d.Token, snap.Index())
}
