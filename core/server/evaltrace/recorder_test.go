package evaltrace

import (
	"context"
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/worker"
)

func TestRecorder_ForgetsTheOldestTraces(t *testing.T) {
	tr := New(sdktrace.NewTracerProvider().Tracer(""))
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
	id := func(i int) string { return fmt.Sprint("e", i) }
	for i := range maxTraces + 100 {
		tr.Assign(ctx, id(i))
		tr.Assign(ctx, id(i)) // the second call changes nothing
	}
	if len(tr.traces) != maxTraces || tr.find(id(99)).IsValid() || !tr.find(id(100)).IsValid() || !tr.find(id(maxTraces+99)).IsValid() {
		t.Errorf("%d traces are stored; the 100th is valid: %t", len(tr.traces), tr.find(id(99)).IsValid())
	}
	tr.Adopt("other", tr.TraceParent(id(200)))
	if tr.find("other").TraceID() != tr.find(id(200)).TraceID() {
		t.Error("the trace adopted from its traceparent differs")
	}
	tr.Adopt("invalid", "00-invalid")
	if tr.find("invalid").IsValid() {
		t.Error("an invalid traceparent is accepted")
	}
}

// traceOneEval does everything that is done for tracing while one evaluation is
// registered, processed, committed and started.
func traceOneEval(ctx context.Context, tr *Recorder, c *worker.Config, s *scheduler.Config, e []*model.Evaluation) {
	_, span := tr.StartSpan(ctx, SpanRegister)
	tr.Assign(ctx, e[0].ID)
	tr.TraceWorker(c, s)
	_ = tr.TraceParent(e[0].ID)
	tr.Adopt(e[0].ID, "")
	_ = tr.withParent(ctx, e[0].ID)
	EndSpan(span, nil)
}

func TestRecorder_CostsNothingWhenDisabled(t *testing.T) {
	var c worker.Config
	var s scheduler.Config
	e := []*model.Evaluation{{ID: "e"}}
	if n := testing.AllocsPerRun(100, func() { traceOneEval(t.Context(), New(nil), &c, &s, e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if c.Begin != nil || c.Observe != nil || s.Observe != nil {
		t.Error("the hooks of the worker are set")
	}
}

func BenchmarkRecorder(b *testing.B) {
	e := []*model.Evaluation{{ID: "e"}}
	b.Run("disabled", func(b *testing.B) {
		var c worker.Config
		var s scheduler.Config
		b.ReportAllocs()
		for b.Loop() {
			traceOneEval(b.Context(), nil, &c, &s, e)
		}
	})
	b.Run("enabled", func(b *testing.B) {
		tr := New(sdktrace.NewTracerProvider().Tracer(""))
		c := worker.Config{Observe: func(worker.Report) {}}
		s := scheduler.Config{Observe: func(scheduler.Decision) {}}
		tr.TraceWorker(&c, &s)
		out := &scheduler.Outcome{Plan: &model.Plan{}}
		b.ReportAllocs()
		for b.Loop() {
			ctx, span := tr.StartSpan(b.Context(), SpanRegister)
			tr.Assign(ctx, "e")
			c.Begin(b.Context(), broker.Delivery{Eval: e[0]})
			s.Observe(scheduler.Decision{Eval: e[0], Outcome: out})
			c.Observe(worker.Report{Eval: e[0], Outcome: out})
			EndSpan(span, nil)
		}
	})
}
