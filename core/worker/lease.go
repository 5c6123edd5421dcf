package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// TriggerMaxPlans is of the evaluation that follows one whose plans were
// rejected too often.
const TriggerMaxPlans model.Trigger = "max-plan-attempts"

// keep renews the lease of a delivery until the function that it returns is
// called.
func (w *Worker) keep(d broker.Delivery) (stop func()) {
	if w.Leases == nil || w.Renew <= 0 {
		return func() {}
	}
	k := &keeper{worker: w, delivery: d}
	k.mu.Lock()
	k.again()
	k.mu.Unlock()
	return k.stop
}

// keeper renews one lease.
type keeper struct {
	worker   *Worker
	delivery broker.Delivery

	mu    sync.Mutex
	timer interface{ Stop() bool }
	over  bool
}

func (k *keeper) again() { k.timer = k.worker.Clock.AfterFunc(k.worker.Renew, k.renew) }

func (k *keeper) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A lease that is lost stays lost: Ack will say so.
	if !k.over && k.worker.Leases.Renew(k.delivery.Eval.ID, k.delivery.Token) == nil {
		k.again()
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.timer.Stop()
}

// submit hands a plan in. While it waits for its turn the lease does not run
// out: that is not the worker's fault.
func (w *Worker) submit(ctx context.Context, d broker.Delivery, plan *model.Plan) (*model.PlanResult, error) {
	if w.Leases == nil {
		return w.Planner.Submit(ctx, plan)
	}
	if err := w.Leases.PauseTimer(d.Eval.ID, d.Token); err != nil {
		return nil, fmt.Errorf("somebody else has the evaluation: %w", err)
	}
	result, err := w.Planner.Submit(ctx, plan)
	if resumed := w.Leases.ResumeTimer(d.Eval.ID, d.Token); err == nil && resumed != nil {
		return nil, fmt.Errorf("the lease ended while the plan was committed: %w", resumed)
	}
	return result, err
}

// retryLater ends an evaluation whose plans kept being rejected, and has its
// job looked at again once those it raced with are done.
func (w *Worker) retryLater(ctx context.Context, d broker.Delivery, snap *state.Snapshot) error {
	now := w.Clock.Now()
	done := *d.Eval
	done.Status, done.ModifyTime = model.EvalFailed, now.UnixNano()
	done.StatusText = fmt.Sprintf("%s; it is tried again in %v", ErrTooManyAttempts, w.Retry.Round(time.Second))
	done.Classes, done.BlockedNodes = nil, nil
	again := w.follow(d.Eval, TriggerMaxPlans)
	again.WaitUntil = now.Add(w.Retry).UnixNano()
	if err := w.Evals.WriteEvals(ctx, d, &done, again); err != nil {
		return fmt.Errorf("evaluation %s: %w", d.Eval.ID, err)
	}
	return w.Broker.Ack(d.Eval.ID, d.Token, snap.Index())
}
