package obs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const scope = "holdfast.dev/libs/obs"

var propagator = propagation.TraceContext{}

// StartTracing exports a share of the traces, from 0 to 1, to the base URL of an OTLP/HTTP collector, and a span for each request that
// fails with a 5xx. If a trace has a parent, the parent's decision applies. Tracing every request would cost a third of the CPU under
// load. The returned function flushes and stops. Without StartTracing, spans do nothing, but trace ids are still propagated.
func StartTracing(ctx context.Context, service, endpoint string, ratio float64) (stop func(context.Context) error, err error) {
	target, err := url.JoinPath(endpoint, "v1/traces")
	if err != nil {
		return nil, fmt.Errorf("OTLP endpoint: %w", err)
	}
	client, err := newCollector(target, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("OTLP exporter: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sampler{sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))),
	)
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagator)
	return provider.Shutdown, nil
}

// sampler exports the spans that its base exports, and the spans of failed requests.
type sampler struct{ sdktrace.Sampler }

type sampleKey struct{}

// ShouldSample implements sdktrace.Sampler.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.ParentContext.Value(sampleKey{}) != nil {
		return sdktrace.AlwaysSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

// failed returns the span of ctx. If sampling dropped it, failed returns a span that began at start in the same trace. end
// completes the span.
func failed(ctx context.Context, start time.Time) (span trace.Span, end func()) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() || !Tracing() {
		return span, func() {}
	}
	_, span = otel.Tracer(scope).Start(context.WithValue(ctx, sampleKey{}, true), "", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start))
	return span, func() { span.End() }
}

// Tracing reports whether StartTracing ran. Otherwise spans are not exported and need not be created.
func Tracing() bool {
	_, ok := otel.GetTracerProvider().(*sdktrace.TracerProvider)
	return ok
}

// Span starts a span named name under the span of ctx. End it with the error of the work, or nil.
func Span(ctx context.Context, name string, kind trace.SpanKind) (_ context.Context, end func(error)) {
	if !Tracing() {
		return ctx, func(error) {}
	}
	ctx, span := otel.Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
		}
		span.End()
	}
}

// Traceparent returns the position of ctx in its trace as a W3C traceparent header, or "" if there is none.
func Traceparent(ctx context.Context) string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return ""
	}
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// WithTraceparent returns ctx at the position in a W3C traceparent. A malformed one changes nothing.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagator.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// WithTrace returns ctx in the trace of an inbound request, or in a new one, so that the log lines of all services can
// be joined even when no trace is exported.
func WithTrace(ctx context.Context, h http.Header) context.Context {
	if tp := h.Get("Traceparent"); tp != "" {
		ctx = WithTraceparent(ctx, tp)
	}
	if trace.SpanContextFromContext(ctx).IsValid() || Tracing() {
		return ctx
	}
	var cfg trace.SpanContextConfig
	binary.BigEndian.PutUint64(cfg.TraceID[:8], rand.Uint64()|1) //nolint:gosec // a label, no secret
	binary.BigEndian.PutUint64(cfg.TraceID[8:], rand.Uint64())   //nolint:gosec // a label, no secret
	binary.BigEndian.PutUint64(cfg.SpanID[:], rand.Uint64()|1)   //nolint:gosec // a label, no secret
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(cfg))
}
