// Package evaltrace records which trace each evaluation belongs to, and the spans of
// the work on it: from the registration of a job to the start of its allocations.
//
// The traces are held in memory and not in the state, because tracing must not
// change the log. A trace that ends when the leader changes is no loss.
//
// A nil *Recorder records nothing and costs nothing. A Recorder is safe for
// concurrent use.
package evaltrace

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// The names of the spans; core/server/DESIGN.md describes what each covers.
const (
	SpanRegister        = "job.register"
	SpanRegisterBinding = "binding.register"
	SpanProcess         = "eval.process"
	SpanCall            = "policy.call"
	SpanApply           = "plan.apply"
	SpanStart           = "alloc.start"
)

// maxTraces is how many evaluations a Recorder holds the trace of.
const maxTraces = 16384

// traceParent is the name of the header in W3C Trace Context.
const traceParent = "traceparent"

// A Recorder holds the traces of the newest evaluations. Make it with New.
type Recorder struct {
	tracer trace.Tracer

	mu     sync.Mutex
	traces map[string]trace.SpanContext // by evaluation
	ids    []string                     // keys of traces; a ring once there are maxTraces
	oldest int                          // position of the oldest in the ring
}

// New returns a Recorder, or nil if tracer is nil.
func New(tracer trace.Tracer) *Recorder {
	if tracer == nil {
		return nil
	}
	return &Recorder{tracer: tracer, traces: map[string]trace.SpanContext{}}
}

// StartSpan starts a span below the one in ctx.
func (r *Recorder) StartSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	if r == nil {
		return ctx, trace.SpanFromContext(context.Background()) // records nothing
	}
	return r.tracer.Start(ctx, name)
}

// EndSpan ends a span, with the error that its work returned.
func EndSpan(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Assign assigns an evaluation to the trace in ctx. It must be called before the
// evaluation is written: a worker may receive it before the write returns.
func (r *Recorder) Assign(ctx context.Context, evalID string) {
	if r != nil {
		r.store(evalID, trace.SpanContextFromContext(ctx))
	}
}

func (r *Recorder) store(evalID string, sc trace.SpanContext) {
	if !sc.IsValid() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.traces[evalID]; !known {
		if len(r.ids) < maxTraces {
			r.ids = append(r.ids, evalID)
		} else {
			delete(r.traces, r.ids[r.oldest])
			r.ids[r.oldest] = evalID
			r.oldest = (r.oldest + 1) % maxTraces
		}
	}
	r.traces[evalID] = sc
}

// find returns the trace of an evaluation. It is invalid if the evaluation has none.
func (r *Recorder) find(evalID string) trace.SpanContext {
	if r == nil {
		return trace.SpanContext{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.traces[evalID]
}

// ObserveEntry assigns the evaluations that an entry wrote to the traces of their
// predecessors.
func (r *Recorder) ObserveEntry(a *replication.Applied) {
	if r == nil || a.Result == nil {
		return
	}
	for _, e := range a.Result.Evals {
		if e.Previous != "" && !e.Status.Final() {
			r.store(e.ID, r.find(e.Previous))
		}
	}
}

// withParent returns ctx with the span of an evaluation as the parent of new ones.
func (r *Recorder) withParent(ctx context.Context, evalID string) context.Context {
	if sc := r.find(evalID); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

// TraceParent returns the trace of an evaluation as a traceparent of W3C Trace
// Context, or "" if it has none.
func (r *Recorder) TraceParent(evalID string) string {
	sc := r.find(evalID)
	if !sc.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithRemoteSpanContext(context.Background(), sc), carrier)
	return carrier[traceParent]
}

// Adopt assigns an evaluation to the trace that another server sent with it.
func (r *Recorder) Adopt(evalID, parent string) {
	if r == nil || parent == "" {
		return
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceParent: parent})
	r.store(evalID, trace.SpanContextFromContext(ctx))
}

// RecordStarts records, for each allocation that an entry reports as started, a span
// from its placement to its start. An allocation starts once, however often its node
// reports it as running: those that before has as running, or as started, are
// skipped. Nothing is recorded if before, the state without the entry, is nil.
func (r *Recorder) RecordStarts(a *replication.Applied, before *state.Snapshot) {
	c, updates := a.Entry.Command.(*replication.UpdateAllocs)
	if r == nil || !updates || before == nil {
		return
	}
	recorded := map[string]bool{} // an update may list an allocation twice
	for i := range c.Updates {
		id := c.Updates[i].AllocID
		if c.Updates[i].Status != model.ClientRunning || recorded[id] {
			continue
		}
		old, alloc := before.Alloc(id), a.Snap.Alloc(id)
		if old == nil || old.Client != model.ClientPending || old.Started || alloc == nil {
			continue
		}
		recorded[id] = true
		r.recordStart(alloc, a.Entry.Time)
	}
}

func (r *Recorder) recordStart(a *model.Allocation, now int64) {
	sc := r.find(a.EvalID)
	if !sc.IsValid() {
		return
	}
	_, span := r.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), sc), SpanStart,
		trace.WithTimestamp(time.Unix(0, a.CreateTime)), trace.WithAttributes(
			attribute.String("cede.alloc_id", a.ID), attribute.String("cede.node_id", a.NodeID),
			attribute.String("cede.eval_id", a.EvalID), attribute.Int("cede.preempted", len(a.Preempted)),
		))
	span.End(trace.WithTimestamp(time.Unix(0, now)))
}
