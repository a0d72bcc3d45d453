// Package otelx contains what fosite uses of the original, without its exporters for Jaeger and Zipkin.
package otelx

import (
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// End ends span with the status of err.
func End(span trace.Span, err *error) {
	if err != nil && *err != nil {
		span.SetStatus(codes.Error, (*err).Error())
		span.RecordError(*err)
	}
	span.End()
}
