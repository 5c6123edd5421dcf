package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// flushTimeout limits the export of the last spans when the process stops.
const flushTimeout = 3 * time.Second

// openTracing starts the export of spans if the environment variables of
// OpenTelemetry enable it. If they are unset, no exporter is created, the tracer stays
// nil, and starting a span does nothing.
func (e *environment) openTracing(ctx context.Context) error {
	wanted, err := tracingRequested(e.o.Getenv)
	if err != nil || !wanted {
		return err
	}
	exporter, err := otlptracehttp.New(ctx) // it reads the other environment variables itself
	if err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: cannot export traces: %w", err)
	}
	from, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "cede"), attribute.String("service.version", e.o.Build.Version),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	e.logTracingErrors(ctx)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))
	e.tracer = provider.Tracer("github.com/cede-scheduler/cede", trace.WithInstrumentationVersion(e.o.Build.Version))
	e.down.push("traces", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			e.log.WarnContext(ctx, "failed to export the last traces", "err", err)
		}
		return nil // an unreachable collector does not delay the shutdown
	})
	return nil
}

// logTracingErrors logs export errors at most once a minute, because a collector may
// be unreachable for hours. OpenTelemetry has one error handler for the whole
// program.
func (e *environment) logTracingErrors(ctx context.Context) {
	log := e.log
	seldom := &rate.Sometimes{First: 1, Interval: time.Minute}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		seldom.Do(func() { log.WarnContext(ctx, "failed to export traces", "err", err) })
	}))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
}

// tracingRequested reports whether the environment configures tracing.
func tracingRequested(getenv func(string) string) (bool, error) {
	exporter := getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: unsupported exporter %q: must be otlp or none", exporter)
	case exporter == "" && cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "":
		return false, nil
	}
	const speaks = "http/protobuf"
	if protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), speaks); protocol != speaks {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: unsupported protocol %q: must be %s, which collectors accept on port 4318", protocol, speaks)
	}
	return true, nil
}
