package rpc

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

// A call that belongs to a trace carries a W3C traceparent in its metadata. Other calls
// carry none.

// injectTrace returns ctx with the metadata of its trace.
func injectTrace(ctx context.Context) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	pairs := make([]string, 0, 2*len(carrier))
	for key, value := range carrier {
		pairs = append(pairs, key, value)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// extractTrace returns ctx with the trace in the metadata of the caller.
func extractTrace(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	carrier := propagation.MapCarrier{}
	for _, key := range (propagation.TraceContext{}).Fields() {
		if list := md.Get(key); len(list) > 0 {
			carrier[key] = list[0]
		}
	}
	if len(carrier) == 0 {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}
