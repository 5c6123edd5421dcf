package server

import (
	"cmp"
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

// The spans of a trace; DESIGN.md tells what each covers.
const (
	spanRegister        = "job.register"
	spanRegisterBinding = "binding.register"
	spanProcess         = "eval.process"
	spanCall            = "policy.call"
	spanApply           = "plan.apply"
	spanStart           = "alloc.start"
)

// tracesKept is how many evaluations are remembered with their traces.
const tracesKept = 16384

// traces is to which trace each of the newest evaluations belongs. It is of memory
// and not of the state: who watches must not change what the log says, and a trace
// that ends at a change of leader is no loss to anybody. nil: nobody watches, and
// every method returns at once.
type traces struct {
	tracer trace.Tracer

	mu   sync.Mutex
	of   map[string]trace.SpanContext // by evaluation
	ids  []string                     // those in of, the oldest at next once there are tracesKept
	next int
}

// newTraces is nil where nobody watches.
func newTraces(tracer trace.Tracer) *traces {
	if tracer == nil {
		return nil
	}
	return &traces{tracer: tracer, of: map[string]trace.SpanContext{}}
}

// begin begins a span under that of ctx.
func (t *traces) begin(ctx context.Context, name string) (context.Context, trace.Span) {
	if t == nil {
		return ctx, trace.SpanFromContext(context.Background()) // which records nothing
	}
	return t.tracer.Start(ctx, name)
}

// finish ends a span with what came of it.
func finish(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// keep has an evaluation belong to the trace of ctx. It is called before the
// evaluation is written: a worker may have it before the writer hears of it.
func (t *traces) keep(ctx context.Context, evalID string) {
	if t != nil {
		t.put(evalID, trace.SpanContextFromContext(ctx))
	}
}

func (t *traces) put(evalID string, of trace.SpanContext) {
	if !of.IsValid() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.of[evalID]; !known {
		if len(t.ids) < tracesKept {
			t.ids = append(t.ids, evalID)
		} else {
			delete(t.of, t.ids[t.next])
			t.ids[t.next] = evalID
			t.next = (t.next + 1) % tracesKept
		}
	}
	t.of[evalID] = of
}

// find is the trace of an evaluation; it is not valid where none is known.
func (t *traces) find(evalID string) trace.SpanContext {
	if t == nil {
		return trace.SpanContext{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[evalID]
}

// follow has evaluations that were applied belong to the traces of those that made
// them.
func (t *traces) follow(a *replication.Applied) {
	if t == nil || a.Result == nil {
		return
	}
	for _, e := range a.Result.Evals {
		if e.Previous != "" && !e.Status.Final() {
			t.put(e.ID, t.find(e.Previous))
		}
	}
}

// under is ctx under the span that an evaluation belongs to.
func (t *traces) under(ctx context.Context, evalID string) context.Context {
	if of := t.find(evalID); of.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, of)
	}
	return ctx
}

// parent is the trace of an evaluation as it travels to another server, a
// traceparent of W3C; "": it has none.
func (t *traces) parent(evalID string) string {
	of := t.find(evalID)
	if !of.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithRemoteSpanContext(context.Background(), of), carrier)
	return carrier[traceParent]
}

// adopt notes the trace that an evaluation came with from another server.
func (t *traces) adopt(evalID, parent string) {
	if t == nil || parent == "" {
		return
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceParent: parent})
	t.put(evalID, trace.SpanContextFromContext(ctx))
}

// traceParent is what W3C calls the header.
const traceParent = "traceparent"

func aboutEval(e *model.Evaluation) trace.SpanStartEventOption {
	return trace.WithAttributes(
		attribute.String("cede.eval_id", e.ID), attribute.String("cede.namespace", e.Namespace), attribute.String("cede.job_id", e.JobID),
		attribute.String("cede.triggered_by", string(e.TriggeredBy)), attribute.Int("cede.priority", int(e.Priority)),
	)
}

func aboutJob(j *model.Job, r *Registered) []attribute.KeyValue {
	return aboutRegistration(j.Namespace, "cede.job_id", j.ID, r)
}

func aboutBinding(b *model.Binding, r *Registered) []attribute.KeyValue {
	return aboutRegistration(cmp.Or(b.Namespace, model.DefaultNamespace), "cede.binding_id", b.ID, r)
}

func aboutRegistration(namespace, key, id string, r *Registered) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("cede.namespace", namespace), attribute.String(key, id)}
	if r != nil {
		list = append(list, attribute.String("cede.eval_id", r.EvalID), attribute.Int64("cede.index", int64(r.Index)))
	}
	return list
}
