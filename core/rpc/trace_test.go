package rpc

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// heard notes the trace under which it is called.
type heard struct {
	scripted
	of trace.SpanContext
}

func (h *heard) WriteEvals(ctx context.Context, _ Endings) error {
	h.of = trace.SpanContextFromContext(ctx)
	return nil
}

func TestClient_CarriesTheTraceOfACall(t *testing.T) {
	h := &heard{}
	a, _ := pair(t, one, two, nil, nil, h)
	if err := a.client.WriteEvals(t.Context(), "s2", Endings{}); err != nil || h.of.IsValid() {
		t.Errorf("a call of no trace is of %v, %v", h.of, err)
	}
	mine := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	if err := a.client.WriteEvals(trace.ContextWithSpanContext(t.Context(), mine), "s2", Endings{}); err != nil {
		t.Fatal(err)
	}
	if h.of.TraceID() != mine.TraceID() || h.of.SpanID() != mine.SpanID() || !h.of.IsSampled() || !h.of.IsRemote() {
		t.Errorf("the call is of %v", h.of)
	}
}
