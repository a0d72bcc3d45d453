package pg

import (
	"context"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/obs"
)

// tracer adds the duration and the number of round trips to the log line of the context as postgres_ms and postgres_calls, and
// creates spans when tracing is on.
type tracer struct{ spans *otelpgx.Tracer }

var (
	_ pgx.QueryTracer = (*tracer)(nil)
	_ pgx.BatchTracer = (*tracer)(nil)
)

// newTracer creates a tracer. Call it after obs.StartTracing.
func newTracer() *tracer {
	if !obs.Tracing() {
		return &tracer{}
	}
	return &tracer{spans: otelpgx.NewTracer()}
}

type startKey struct{}

func started(ctx context.Context) context.Context {
	if obs.LineFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, startKey{}, time.Now())
}

func ended(ctx context.Context) {
	if start, ok := ctx.Value(startKey{}).(time.Time); ok {
		obs.Since(ctx, "postgres_ms", start)
		obs.Count(ctx, "postgres_calls", 1)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (t *tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if t.spans != nil {
		ctx = t.spans.TraceQueryStart(ctx, conn, data)
	}
	return started(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (t *tracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	ended(ctx)
	if t.spans != nil {
		t.spans.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceBatchStart implements pgx.BatchTracer.
func (t *tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if t.spans != nil {
		ctx = t.spans.TraceBatchStart(ctx, conn, data)
	}
	return started(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t *tracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if t.spans != nil {
		t.spans.TraceBatchQuery(ctx, conn, data)
	}
}

// TraceBatchEnd implements pgx.BatchTracer.
func (t *tracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	ended(ctx)
	if t.spans != nil {
		t.spans.TraceBatchEnd(ctx, conn, data)
	}
}
