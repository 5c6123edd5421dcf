package server

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// callsTraced is how many calls of policies one evaluation tells of: a search over
// thousands of nodes makes many, and the first ones tell what they cost.
const callsTraced = 128

// tracedWork is one worker's work as spans. It serves the worker's goroutine.
type tracedWork struct {
	traces *traces
	ctx    context.Context // of the evaluation that is worked on
	span   trace.Span
}

// watch has a worker's work traced, beside whoever observes it.
func (t *traces) watch(c *worker.Config, s *scheduler.Config) {
	if t == nil {
		return
	}
	w := &tracedWork{traces: t}
	worked, decided := c.Observe, s.Observe
	c.Begin = w.begin
	c.Observe = func(r worker.Report) {
		worked(r)
		w.end(r)
	}
	s.Observe = func(d scheduler.Decision) {
		decided(d)
		w.decided(d)
	}
}

func (w *tracedWork) begin(ctx context.Context, d broker.Delivery) context.Context {
	w.ctx, w.span = w.traces.tracer.Start(w.traces.under(ctx, d.Eval.ID), spanProcess, aboutEval(d.Eval))
	w.span.SetAttributes(attribute.Int("cede.attempt", d.Attempt))
	return w.ctx
}

// decided tells of the calls that an outcome took: they are known when it is.
func (w *tracedWork) decided(d scheduler.Decision) {
	w.span.SetAttributes(attribute.Int("cede.policy_calls", len(d.Outcome.Calls)))
	if !w.span.IsRecording() {
		return
	}
	for i := range d.Outcome.Calls[:min(callsTraced, len(d.Outcome.Calls))] {
		c := &d.Outcome.Calls[i]
		_, span := w.traces.tracer.Start(w.ctx, spanCall, trace.WithTimestamp(c.Started), trace.WithAttributes(
			attribute.String("cede.policy", c.Policy), attribute.String("cede.digest", c.Digest), attribute.String("cede.hook", c.Hook),
			attribute.Int("cede.options", c.Options), attribute.Int("cede.rows", c.Rows), attribute.Int64("cede.fuel", int64(c.Fuel)),
		))
		if c.Err != nil {
			span.RecordError(c.Err, trace.WithTimestamp(c.Started.Add(c.Duration)))
		}
		span.End(trace.WithTimestamp(c.Started.Add(c.Duration)))
	}
}

func (w *tracedWork) end(r worker.Report) {
	if out := r.Outcome; out != nil {
		w.span.SetAttributes(attribute.Int("cede.plans", len(r.Plans)), attribute.Bool("cede.placed", out.Placed()))
	}
	finish(w.span, r.Err)
}

// submit has a plan checked and committed on the leader, as one span: its wait in
// the queue, its check and its write.
func (s *Server) submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	ctx, span := s.traces.begin(ctx, spanApply)
	result, err := s.plans.Submit(ctx, plan)
	if span.IsRecording() && result != nil {
		span.SetAttributes(
			attribute.String("cede.eval_id", plan.EvalID), attribute.Int64("cede.index", int64(result.Index)),
			attribute.Int("cede.committed", len(result.Committed)), attribute.Int("cede.rejected", len(result.Rejected)),
		)
	}
	finish(span, err)
	return result, err
}

// started tells how long allocations took from their placement until their nodes ran
// them: the end of the way from submission to running. An allocation starts once,
// however often its node says that it runs: before is the state without the entry,
// and what it has running, or says when it started, is told already. nil: the state
// before is not known, nor to which trace anything of it belongs.
func (t *traces) started(a *replication.Applied, before *state.Snapshot) {
	c, updates := a.Entry.Command.(*replication.UpdateAllocs)
	if t == nil || !updates || before == nil {
		return
	}
	told := map[string]bool{} // a report may name an allocation twice
	for i := range c.Updates {
		id := c.Updates[i].AllocID
		if c.Updates[i].Status != model.ClientRunning || told[id] {
			continue
		}
		old, alloc := before.Alloc(id), a.Snap.Alloc(id)
		if old == nil || old.Client != model.ClientPending || old.Started || alloc == nil {
			continue
		}
		told[id] = true
		t.start(alloc, a.Entry.Time)
	}
}

// start is one allocation's way from its placement to its start.
func (t *traces) start(a *model.Allocation, now int64) {
	of := t.find(a.EvalID)
	if !of.IsValid() {
		return
	}
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), of), spanStart,
		trace.WithTimestamp(time.Unix(0, a.CreateTime)), trace.WithAttributes(
			attribute.String("cede.alloc_id", a.ID), attribute.String("cede.node_id", a.NodeID),
			attribute.String("cede.eval_id", a.EvalID), attribute.Int("cede.preempted", len(a.Preempted)),
		))
	span.End(trace.WithTimestamp(time.Unix(0, now)))
}
