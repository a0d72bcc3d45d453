package pg_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/secret"
)

// TestSpansAreDocumented checks that docs/telemetry.md has every attribute of the spans of statements and batches, of success and
// failure, and that no span contains a value of a statement.
func TestSpansAreDocumented(t *testing.T) { // not parallel: it sets the process's tracer
	page, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	db := pgtest.New(t, notes)
	traced, err := pg.OpenManaged(t.Context(), &process{}, "postgres", secret.New(db.AppURL), pg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer traced.Close()
	ctx, end := obs.Span(pgtest.Ctx(t, caller.Test), "request", trace.SpanKindServer) // the tracer adds spans to a span
	if err := traced.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := insert(ctx, tx, 1, "confidential"); err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(`select body from notes where body = $1`, "confidential")
		return tx.SendBatch(ctx, b).Close()
	}); err != nil {
		t.Fatal(err)
	}
	if err := traced.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, 1, "confidential") }); err == nil {
		t.Error("a duplicate was stored")
	}
	end(nil)
	seen := 0
	for _, span := range spans.GetSpans() {
		names := span.Attributes
		for _, event := range span.Events {
			names = append(names, event.Attributes...)
		}
		for _, a := range names {
			seen++
			if !strings.Contains(string(page), "`"+string(a.Key)+"`") {
				t.Errorf("docs/telemetry.md lacks %s of the span %q", a.Key, span.Name)
			}
			if strings.Contains(a.Value.String(), "confidential") {
				t.Errorf("%s of the span %q is %q", a.Key, span.Name, a.Value.String())
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d attributes of %d spans", seen, len(spans.GetSpans()))
	}
}
