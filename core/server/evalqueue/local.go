package evalqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// Local is the source of evaluations on the leader. Its own workers and the calls of other
// servers use it.
type Local struct{ cfg Config }

// Dequeue waits for an evaluation.
func (l *Local) Dequeue(ctx context.Context) (broker.Delivery, error) {
	d, err := l.cfg.Broker.Dequeue(ctx, nil, 0)
	if err == nil {
		l.cfg.OnDelivery(&d)
	}
	return d, err
}

// DequeueBatch waits for at most wait, and returns up to most evaluations for another
// server. If ctx has ended by then they are nacked, because the caller is gone.
func (l *Local) DequeueBatch(ctx context.Context, most int, wait time.Duration) ([]broker.Delivery, error) {
	list, err := l.cfg.Broker.DequeueBatch(ctx, nil, most, wait)
	switch {
	case errors.Is(err, broker.ErrNoEvaluation):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if ctx.Err() != nil {
		for _, d := range list {
			_ = l.cfg.Broker.Nack(d.Eval.ID, d.Token) // otherwise its lease expires
		}
		return nil, ctx.Err()
	}
	for i := range list {
		l.cfg.OnDelivery(&list[i])
	}
	return list, nil
}

// Ack ends a delivery after its results are written.
func (l *Local) Ack(_ context.Context, evalID string, token broker.Token, snapshot uint64) error {
	return l.cfg.Broker.Ack(evalID, token, snapshot)
}

// Nack returns a delivery to the broker.
func (l *Local) Nack(_ context.Context, evalID string, token broker.Token) error {
	return l.cfg.Broker.Nack(evalID, token)
}

// Renew starts the lease of a delivery anew.
func (l *Local) Renew(_ context.Context, evalID string, token broker.Token) error {
	return l.cfg.Broker.Renew(evalID, token)
}

// Submit verifies a plan and commits the parts that still hold.
func (l *Local) Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	return l.withLease(plan, func() (*model.PlanResult, error) { return l.apply(ctx, plan) })
}

// SubmitRemote is Submit for a plan that another server encoded. It returns the encoded
// result.
func (l *Local) SubmitRemote(ctx context.Context, raw []byte) ([]byte, error) {
	plan, err := codec.DecodePlan(raw)
	if err != nil {
		return nil, err
	}
	result, err := l.withLease(plan, func() (*model.PlanResult, error) {
		snap, err := stateWaiter{store: l.cfg.Writer.Store}.WaitIndex(ctx, plan.SnapshotIndex)
		if err != nil {
			return nil, err
		}
		if err := codec.BindPlan(plan, snap); err != nil {
			return nil, err
		}
		return l.apply(ctx, plan)
	})
	if err != nil {
		return nil, err
	}
	return EncodePlanResult(result)
}

// withLease calls f while the lease of a plan's evaluation does not expire, because the
// wait for the applier is not the worker's fault. The leader pauses the lease itself: a
// remote caller that paused it and then vanished would hold it for ever.
func (l *Local) withLease(plan *model.Plan, f func() (*model.PlanResult, error)) (*model.PlanResult, error) {
	token, err := broker.ParseToken(plan.EvalToken)
	if err != nil {
		return nil, err
	}
	if err := l.cfg.Broker.PauseTimer(plan.EvalID, token); err != nil {
		return nil, fmt.Errorf("evaluation was delivered to another worker: %w", err)
	}
	result, err := f()
	if resumed := l.cfg.Broker.ResumeTimer(plan.EvalID, token); err == nil && resumed != nil {
		return nil, fmt.Errorf("lease ended while the plan was committed: %w", resumed)
	}
	return result, err
}

// apply passes a plan to the applier, as one span: its wait in the queue, its
// verification and its write.
func (l *Local) apply(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	ctx, span := l.cfg.Traces.StartSpan(ctx, evaltrace.SpanApply)
	result, err := l.cfg.Plans.Submit(ctx, plan)
	if span.IsRecording() && result != nil {
		span.SetAttributes(
			attribute.String("cede.eval_id", plan.EvalID), attribute.Int64("cede.index", int64(result.Index)),
			attribute.Int("cede.committed", len(result.Committed)), attribute.Int("cede.rejected", len(result.Rejected)),
		)
	}
	evaltrace.EndSpan(span, err)
	return result, err
}

// WriteEvals writes the results of a delivery. Only the worker that holds the delivery may
// write, and no other receives the evaluation before that is done. If a worker has lost the
// delivery, it may have planned on an older state than the current holder, and its
// "everything is placed" would end evaluations that are blocked because of newer changes.
func (l *Local) WriteEvals(ctx context.Context, of broker.Delivery, evals ...*model.Evaluation) error {
	term := l.cfg.Writer.Log.Term() // read before the lease is checked: the lease is of this term, or void
	if err := l.cfg.Broker.PauseTimer(of.Eval.ID, of.Token); err != nil {
		return err
	}
	defer func() { _ = l.cfg.Broker.ResumeTimer(of.Eval.ID, of.Token) }() // a lost lease stays lost
	result, err := l.cfg.Updates.writeIn(ctx, term, evals)
	if err != nil {
		return err
	}
	return logwriter.Refusal(result)
}
