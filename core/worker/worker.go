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

// ErrTooManyAttempts means that newer state kept rejecting the plans of an
// evaluation. It goes back to the broker, which delivers it again later.
var ErrTooManyAttempts = errors.New("too many plans of one evaluation were rejected")

// Queue is where deliveries are returned to. Ack ends a delivery whose results are
// written; Nack returns one to be delivered again; Renew starts its lease anew.
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

// Planner commits plans.
type Planner interface {
	Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error)
}

// States gives access to the newest state.
type States interface {
	WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error)
}

// Evals writes what came of a delivery to the state. Where somebody else has the
// delivery by then, nothing is written.
type Evals interface {
	WriteEvals(ctx context.Context, of broker.Delivery, evals ...*model.Evaluation) error
}

// Report is what became of one evaluation.
type Report struct {
	Eval    *model.Evaluation
	Outcome *scheduler.Outcome // nil: it did not come to one
	Plans   []*model.Plan
	Results []*model.PlanResult
	Err     error
	Took    time.Duration
}

// Config is what a worker works with. All fields above Begin are needed.
type Config struct {
	Queue     Queue
	Planner   Planner
	States    States
	Evals     Evals
	Scheduler *scheduler.Scheduler
	Clock     clock.Clock
	NewEvalID func() string
	// Begin is told of every evaluation before work on it begins, and gives the context
	// that it is worked on under; nil: nobody is.
	Begin func(ctx context.Context, d broker.Delivery) context.Context
	// Observe is told of every evaluation; nil: nobody is.
	Observe func(Report)
	// Renew is the interval at which the lease of a delivery is renewed; 0: it is not, because
	// no time passes while a simulated worker works.
	Renew time.Duration
	// Retry is when an evaluation is tried again whose plans kept being rejected;
	// 0: it goes back to the broker instead.
	Retry time.Duration
}

// Worker works on one evaluation at a time.
type Worker struct{ Config }

// New makes a worker.
func New(c Config) *Worker { return &Worker{c} }

// patience is how many plans of one evaluation may yet be rejected in a row without
// any of them bringing progress.
type patience struct {
	// attempts are plans that the very state on which they were made rejects: whoever
	// disagrees once is likely to do so again.
	attempts int
	// races are plans that others overtook. Where several workers fill the same nodes
	// one of them may lose a few in a row, and that is no reason to wait for a minute.
	races int
}

func newPatience(t model.JobType) patience {
	if t.Finite() {
		return patience{attempts: 2, races: 20}
	}
	return patience{attempts: 5, races: 20}
}

func (p *patience) over() bool { return p.attempts <= 0 || p.races <= 0 }

// lose counts a plan that was made on a state of this index.
func (p *patience) lose(index uint64, r *model.PlanResult) {
	if r.RefreshIndex > index {
		p.races--
	} else {
		p.attempts--
	}
}

// Work does a delivery from beginning to end: it returns it with Ack when what
// came of it is written down, else with Nack.
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
		err = w.finish(ctx, d, snap, report.Outcome)
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

// process plans until a plan is committed whole or changes nothing.
//
// An evaluation that is over in the state was ended by a worker whose answer got lost,
// on an older state: nobody knows on which one. To leave it at that and to say that the
// newest state is covered would make needless what came since, and nobody would ever
// look at it. So it is worked on once more, as it ended.
func (w *Worker) process(ctx context.Context, d *broker.Delivery, report *Report) (*state.Snapshot, error) {
	index := max(d.WaitIndex, d.Eval.ModifyIndex)
	var last *state.Snapshot
	for left := newPatience(d.Eval.Type); !left.over(); {
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
			left = newPatience(d.Eval.Type)
		} else {
			left.lose(snap.Index(), result)
		}
		index = max(index, result.RefreshIndex)
	}
	return last, fmt.Errorf("evaluation %s: %w", d.Eval.ID, ErrTooManyAttempts)
}

// now is the time at which an evaluation is worked on: what it waited for has come by
// the clock of the leader, who handed it out. Where this server's clock is behind that one, or
// the leader's was set back meanwhile, the evaluation would find that its time has yet to
// come, and ask for the same time again and again without a pause.
func (w *Worker) now(eval *model.Evaluation) int64 {
	return max(w.Clock.Now().UnixNano(), eval.WaitUntil)
}

// finish writes the results of an evaluation and acks it.
func (w *Worker) finish(ctx context.Context, d broker.Delivery, snap *state.Snapshot, out *scheduler.Outcome) error {
	if err := w.Evals.WriteEvals(ctx, d, w.endings(d.Eval, snap, out)...); err != nil {
		return fmt.Errorf("evaluation %s: %w", d.Eval.ID, err)
	}
	return w.Queue.Ack(context.WithoutCancel(ctx), d.Eval.ID, d.Token, snap.Index())
}

// endings are the evaluations that an outcome leaves: the one that was worked
// on, one that waits for room when something found none, and one for the time
// at which a policy wants to be asked again.
func (w *Worker) endings(eval *model.Evaluation, snap *state.Snapshot, out *scheduler.Outcome) []*model.Evaluation {
	now := w.Clock.Now().UnixNano()
	done := *eval
	done.ModifyTime, done.Failed, done.Queued = now, out.Failed, out.Queued
	if eval.Status != model.EvalBlocked && (len(out.Retries) > 0 || eval.TriggeredBy == model.TriggerRecheck) {
		done.StatusText = reconcile.DescribeRetries(out.Retries) // what it waited for is over
	}
	if out.Fault != nil {
		done.StatusText = out.Fault.Error()
	}
	list := []*model.Evaluation{&done}
	switch {
	case out.Placed():
		done.Status, done.Failed, done.Queued = model.EvalComplete, nil, nil
		done.Classes, done.BlockedNodes = nil, nil
	case eval.Status == model.EvalBlocked:
		w.block(&done, snap, out)
		if !out.Plan.Empty() {
			done.Attempts = 1
		}
	default:
		done.Status = model.EvalComplete
		waiting := w.follow(eval, model.TriggerUnblocked)
		done.Blocked = waiting.ID
		waiting.Failed, waiting.Queued = out.Failed, out.Queued
		w.block(waiting, snap, out)
		list = append(list, waiting)
	}
	if out.RecheckAt > out.Plan.Now && !rechecked(snap, eval, out.RecheckAt) { // even if it has come while the plan was made
		again := w.follow(eval, model.TriggerRecheck)
		again.WaitUntil, again.StatusText = out.RecheckAt, reconcile.DescribeRetries(out.Retries)
		list = append(list, again)
	}
	return list
}

// rechecked is whether another evaluation of the job waits for the same time already.
// What is looked at again in hours would else gather one for everything that happens
// to the job until then.
func rechecked(snap *state.Snapshot, eval *model.Evaluation, at int64) bool {
	return slices.ContainsFunc(snap.EvalsOfJob(eval.JobKey()), func(e *model.Evaluation) bool {
		return e.ID != eval.ID && e.Status == model.EvalPending && e.WaitUntil == at
	})
}

// block makes an evaluation wait for room.
func (w *Worker) block(e *model.Evaluation, snap *state.Snapshot, out *scheduler.Outcome) {
	e.Status, e.SnapshotIndex = model.EvalBlocked, snap.Index()
	e.Attempts++
	e.Classes, e.Escaped, e.BlockedNodes = out.Classes, out.Escaped, out.BlockedNodes
}

// follow begins another evaluation of the same job.
func (w *Worker) follow(eval *model.Evaluation, trigger model.Trigger) *model.Evaluation {
	now := w.Clock.Now().UnixNano()
	return &model.Evaluation{
		ID: w.NewEvalID(), Namespace: eval.Namespace, JobID: eval.JobID, Type: eval.Type,
		Priority: eval.Priority, TriggeredBy: trigger, Previous: eval.ID,
		CreateTime: now, ModifyTime: now,
	}
}
