package rpc

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// traceHandler records the span context of a call.
type traceHandler struct {
	fakeHandler
	of trace.SpanContext
}

func (h *traceHandler) WriteEvals(ctx context.Context, _ EvalResults) error {
	h.of = trace.SpanContextFromContext(ctx)
	return nil
}

func TestClient_PropagatesTraceOfCall(t *testing.T) {
	h := &traceHandler{}
	a, _ := pair(t, one, two, nil, nil, h)
	if err := a.client.WriteEvals(t.Context(), "s2", EvalResults{}); err != nil || h.of.IsValid() {
		t.Errorf("call without trace: span %v, error %v", h.of, err)
	}
	mine := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	if err := a.client.WriteEvals(trace.ContextWithSpanContext(t.Context(), mine), "s2", EvalResults{}); err != nil {
		t.Fatal(err)
	}
	if h.of.TraceID() != mine.TraceID() || h.of.SpanID() != mine.SpanID() || !h.of.IsSampled() || !h.of.IsRemote() {
		t.Errorf("span of the call is %v", h.of)
	}
}
