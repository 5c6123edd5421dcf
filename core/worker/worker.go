package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// ErrTooManyAttempts means that the plans of an evaluation kept being rejected. The
// evaluation is tried again later.
var ErrTooManyAttempts = errors.New("too many plans of the evaluation were rejected")

// Queue receives the outcome of deliveries. Ack ends a delivery if its results are written;
// Nack returns one to be delivered again; Renew starts its lease anew.
type Queue interface {
	Ack(ctx context.Context, evalID string, token broker.Token, snapshot uint64) error
	Nack(ctx context.Context, evalID string, token broker.Token) error
	Renew(ctx context.Context, evalID string, token broker.Token) error
}

// LocalQueue returns a Queue that is a broker in this process.
func LocalQueue(b *broker.Broker) Queue { return localQueue{b} }

type localQueue struct{ broker *broker.Broker }

func (q localQueue) Ack(_ context.Context, evalID string, token broker.Token, snapshot uint64) error {
	return q.broker.Ack(evalID, token, snapshot)
}

func (q localQueue) Nack(_ context.Context, evalID string, token broker.Token) error {
	return q.broker.Nack(evalID, token)
}

func (q localQueue) Renew(_ context.Context, evalID string, token broker.Token) error {
	return q.broker.Renew(evalID, token)
}

// Planner verifies and commits plans.
type Planner interface {
	Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error)
}

// States returns the state at an index or later.
type States interface {
	WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error)
}

// Evals writes the results of a delivery into the state. It fails and writes nothing if the
// delivery is void.
type Evals interface {
	WriteEvals(ctx context.Context, of broker.Delivery, evals ...*model.Evaluation) error
}

// A Report is the result of processing one evaluation.
type Report struct {
	Eval    *model.Evaluation
	Outcome *scheduler.Outcome // nil: an error came first
	Plans   []*model.Plan
	Results []*model.PlanResult
	// Observed holds the decisions that were recorded and not carried out. Those that an
	// earlier attempt of the evaluation has recorded are not repeated.
	Observed []*model.Observation
	Err      error
	Took     time.Duration
}

// Config configures a Worker. All fields above Begin are required.
type Config struct {
	Queue     Queue
	Planner   Planner
	States    States
	Evals     Evals
	Scheduler *scheduler.Scheduler
	Clock     clock.Clock
	NewEvalID func() string
	// Begin is called before each evaluation is processed, and returns the context for it; it
	// may be nil.
	Begin func(ctx context.Context, d broker.Delivery) context.Context
	// Observe is called after each evaluation; it may be nil.
	Observe func(Report)
	// Renew is the interval at which the lease of a delivery is renewed; 0: it is not, because
	// no time passes while a simulated worker works.
	Renew time.Duration
	// Retry is the time after which an evaluation is tried again if its plans were rejected
	// repeatedly; if it is 0, the evaluation is nacked instead.
	Retry time.Duration
}

// A Worker processes one evaluation at a time.
type Worker struct{ Config }

// New returns a worker.
func New(c Config) *Worker { return &Worker{c} }

// attemptLimit is how many more plans of one evaluation may be rejected in a row without
// any progress.
type attemptLimit struct {
	// attempts counts plans that were rejected on the state that they were made on: the
	// scheduler and the applier disagree, and are likely to do so again.
	attempts int
	// conflicts counts plans that a newer state rejected. A worker may lose a few in a row if
	// several fill the same nodes, which is not a reason to wait for a minute.
	conflicts int
}

func newAttemptLimit(t model.JobType) attemptLimit {
	if t.Finite() {
		return attemptLimit{attempts: 2, conflicts: 20}
	}
	return attemptLimit{attempts: 5, conflicts: 20}
}

// reached reports whether the evaluation must be given up for now.
func (p *attemptLimit) reached() bool { return p.attempts <= 0 || p.conflicts <= 0 }

// count counts a rejected plan that was made on the state at index.
func (p *attemptLimit) count(index uint64, r *model.PlanResult) {
	if r.RefreshIndex > index {
		p.conflicts--
	} else {
		p.attempts--
	}
}

// Work processes a delivery. It acks the delivery when the results are written, and nacks
// it and returns an error otherwise.
func (w *Worker) Work(ctx context.Context, d broker.Delivery) error {
	report := Report{Eval: d.Eval}
	from := w.Clock.Now()
	if w.Begin != nil {
		ctx = w.Begin(ctx, d)
	}
	defer w.renewLease(ctx, d)()
	snap, err := w.process(ctx, &d, &report)
	switch {
	case err == nil:
		report.Observed, err = w.finish(ctx, d, snap, report.Outcome)
	case errors.Is(err, ErrTooManyAttempts) && w.Retry > 0:
		err = w.retryLater(ctx, d, snap)
	}
	report.Err, report.Took = err, w.Clock.Now().Sub(from)
	if w.Observe != nil {
		w.Observe(report)
	}
	if err != nil {
		return errors.Join(err, w.Queue.Nack(context.WithoutCancel(ctx), d.Eval.ID, d.Token))
	}
	return nil
}

// process plans until a plan is fully committed or changes nothing.
//
// If an evaluation is already final in the state, a worker wrote it and its ack was lost.
// The state that it planned on is unknown. Acking the evaluation with the newest state
// would cancel evaluations that were created since and that its plan does not cover. So it
// is processed once more.
func (w *Worker) process(ctx context.Context, d *broker.Delivery, report *Report) (*state.Snapshot, error) {
	index := max(d.WaitIndex, d.Eval.ModifyIndex)
	var last *state.Snapshot
	for left := newAttemptLimit(d.Eval.Type); !left.reached(); {
		snap, err := w.States.WaitIndex(ctx, index)
		if err != nil {
			return nil, fmt.Errorf("state at index %d: %w", index, err)
		}
		if e := snap.Eval(d.Eval.ID); e != nil && e.Status.Final() {
			d.Eval, report.Eval = e, e
		}
		last = snap
		out, err := w.Scheduler.Process(d.Eval, snap, w.now(d.Eval))
		if err != nil {
			return nil, err
		}
		report.Outcome = out
		if out.Plan.Empty() {
			return snap, nil
		}
		out.Plan.EvalToken = d.Token.String()
		result, err := w.Planner.Submit(ctx, out.Plan)
		if err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		report.Plans, report.Results = append(report.Plans, out.Plan), append(report.Results, result)
		if result.FullyCommitted() {
			return snap, nil
		}
		if job := snap.Job(d.Eval.JobKey()); job != nil {
			w.Scheduler.Rejected(job)
		}
		if len(result.Committed) > 0 {
			left = newAttemptLimit(d.Eval.Type)
		} else {
			left.count(snap.Index(), result)
		}
		index = max(index, result.RefreshIndex)
	}
	return last, fmt.Errorf("evaluation %s: %w", d.Eval.ID, ErrTooManyAttempts)
}

// now returns the time for planning an evaluation, which is not before the time that the
// evaluation waited for. If this server's clock is behind that of the leader, or the leader's
// clock was set back, the scheduler would otherwise request the same time again, in a loop.
func (w *Worker) now(eval *model.Evaluation) int64 {
	return max(w.Clock.Now().UnixNano(), eval.WaitUntil)
}

// finish writes the results of an evaluation and acks it. It returns the observations that
// the results have recorded.
func (w *Worker) finish(ctx context.Context, d broker.Delivery, snap *state.Snapshot, out *scheduler.Outcome) (observed []*model.Observation, err error) {
	results := w.resultEvals(d.Eval, snap, out)
	for _, e := range results { // before the write: the state owns what is written
		observed = append(observed, e.NewObservations()...)
	}
	if err := w.Evals.WriteEvals(ctx, d, results...); err != nil {
		return nil, fmt.Errorf("evaluation %s: %w", d.Eval.ID, err)
	}
	return observed, w.Queue.Ack(context.WithoutCancel(ctx), d.Eval.ID, d.Token, snap.Index())
}

// results returns the evaluations to write for an outcome: the processed one, a blocked one
// if something was not placed, and one for the time at which a policy requested a recheck.
func (w *Worker) resultEvals(eval *model.Evaluation, snap *state.Snapshot, out *scheduler.Outcome) []*model.Evaluation {
	now := w.Clock.Now().UnixNano()
	done := *eval
	done.ModifyTime, done.Failed, done.Queued = now, out.Failed, out.Queued
	if eval.Status != model.EvalBlocked && (len(out.Retries) > 0 || eval.TriggeredBy == model.TriggerRecheck) {
		done.StatusText = reconcile.DescribeRetries(out.Retries) // replaces the reason for which it waited
	}
	if out.Fault != nil {
		done.StatusText = out.Fault.Error()
	}
	list := []*model.Evaluation{&done}
	switch {
	case out.Placed():
		done.Status, done.Failed, done.Queued = model.EvalComplete, nil, nil
		done.Classes, done.BlockedNodes, done.Observed = nil, nil, nil
	case eval.Status == model.EvalBlocked:
		w.block(&done, snap, out)
		if !out.Plan.Empty() {
			done.Attempts = 1
		}
	default:
		done.Status = model.EvalComplete
		blocked := w.followUp(eval, model.TriggerUnblocked)
		done.Blocked = blocked.ID
		blocked.Failed, blocked.Queued = out.Failed, out.Queued
		blocked.Observed = observedBefore(snap, eval.JobKey(), out)
		w.block(blocked, snap, out)
		list = append(list, blocked)
	}
	if out.RecheckAt > out.Plan.Now && !hasRecheck(snap, eval, out) { // even if that time has passed while planning
		next := w.followUp(eval, model.TriggerRecheck)
		next.WaitUntil, next.StatusText = out.RecheckAt, reconcile.DescribeRetries(out.Retries)
		list = append(list, next)
	}
	return list
}

// observedBefore returns the observations of the blocked evaluation that a new one of the job
// replaces, so that decisions which are made again are not recorded again; nil if there are
// none, or if nothing is observed now.
func observedBefore(snap *state.Snapshot, key model.JobKey, out *scheduler.Outcome) []*model.Observation {
	if len(out.Observed) == 0 {
		return nil
	}
	for _, e := range snap.PendingEvals(key) {
		if e.Status == model.EvalBlocked && len(e.Observed) > 0 {
			return e.Observed
		}
	}
	return nil
}

// hasRecheck reports whether another evaluation of the job waits for the recheck time of an
// outcome, or an earlier one: it requests the recheck again, if it is still necessary.
// Otherwise every change of a job would add a recheck, and one that is requested again each
// minute would never end. Evaluations that are due do not count, because a worker on an older
// snapshot may rely on this one in the same way.
func hasRecheck(snap *state.Snapshot, eval *model.Evaluation, out *scheduler.Outcome) bool {
	return slices.ContainsFunc(snap.PendingEvals(eval.JobKey()), func(e *model.Evaluation) bool {
		return e.ID != eval.ID && e.Status == model.EvalPending && out.Plan.Now < e.WaitUntil && e.WaitUntil <= out.RecheckAt
	})
}

// block marks an evaluation as blocked by the outcome.
func (w *Worker) block(e *model.Evaluation, snap *state.Snapshot, out *scheduler.Outcome) {
	e.Status, e.SnapshotIndex = model.EvalBlocked, snap.Index()
	e.Attempts++
	e.Classes, e.Escaped, e.BlockedNodes = out.Classes, out.Escaped, out.BlockedNodes
	e.Observed = model.MergeObservations(e.Observed, out.Observed)
}

// followUp returns a new evaluation of the same job.
func (w *Worker) followUp(eval *model.Evaluation, trigger model.Trigger) *model.Evaluation {
	now := w.Clock.Now().UnixNano()
	return &model.Evaluation{
		ID: w.NewEvalID(), Namespace: eval.Namespace, JobID: eval.JobID, Type: eval.Type,
		Priority: eval.Priority, TriggeredBy: trigger, Previous: eval.ID,
		CreateTime: now, ModifyTime: now,
	}
}
