package evaltrace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/worker"
)

// maxCallSpans is how many policy calls of one evaluation get a span. A search over
// thousands of nodes makes many calls, and the first ones show their cost.
const maxCallSpans = 128

// workerSpans records the work of one worker as spans. It is used by the goroutine of
// that worker only.
type workerSpans struct {
	recorder *Recorder
	ctx      context.Context // of the evaluation in progress
	span     trace.Span
}

// TraceWorker adds tracing to the hooks of a worker and its scheduler.
func (r *Recorder) TraceWorker(c *worker.Config, s *scheduler.Config) {
	if r == nil {
		return
	}
	w := &workerSpans{recorder: r}
	observe, decided := c.Observe, s.Observe
	c.Begin = w.begin
	c.Observe = func(report worker.Report) {
		observe(report)
		w.end(report)
	}
	s.Observe = func(d scheduler.Decision) {
		decided(d)
		w.recordCalls(d)
	}
}

func (w *workerSpans) begin(ctx context.Context, d broker.Delivery) context.Context {
	w.ctx, w.span = w.recorder.tracer.Start(w.recorder.withParent(ctx, d.Eval.ID), SpanProcess, evalAttributes(d.Eval))
	w.span.SetAttributes(attribute.Int("cede.attempt", d.Attempt))
	return w.ctx
}

// recordCalls records the policy calls of an outcome, with the times at which they
// were made.
func (w *workerSpans) recordCalls(d scheduler.Decision) {
	w.span.SetAttributes(attribute.Int("cede.policy_calls", len(d.Outcome.Calls)))
	if !w.span.IsRecording() {
		return
	}
	for i := range d.Outcome.Calls[:min(maxCallSpans, len(d.Outcome.Calls))] {
		c := &d.Outcome.Calls[i]
		_, span := w.recorder.tracer.Start(w.ctx, SpanCall, trace.WithTimestamp(c.Started), trace.WithAttributes(
			attribute.String("cede.policy", c.Policy), attribute.String("cede.digest", c.Digest), attribute.String("cede.hook", c.Hook),
			attribute.Int("cede.options", c.Options), attribute.Int("cede.rows", c.Rows), attribute.Int64("cede.fuel", int64(c.Fuel)),
		))
		if c.Err != nil {
			span.RecordError(c.Err, trace.WithTimestamp(c.Started.Add(c.Duration)))
		}
		span.End(trace.WithTimestamp(c.Started.Add(c.Duration)))
	}
}

func (w *workerSpans) end(r worker.Report) {
	if out := r.Outcome; out != nil {
		w.span.SetAttributes(attribute.Int("cede.plans", len(r.Plans)), attribute.Bool("cede.placed", out.Placed()))
	}
	EndSpan(w.span, r.Err)
}

func evalAttributes(e *model.Evaluation) trace.SpanStartEventOption {
	return trace.WithAttributes(
		attribute.String("cede.eval_id", e.ID), attribute.String("cede.namespace", e.Namespace), attribute.String("cede.job_id", e.JobID),
		attribute.String("cede.triggered_by", string(e.TriggeredBy)), attribute.Int("cede.priority", int(e.Priority)),
	)
}
