package obs

import (
	"context"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
)

// Postgres is a pgx tracer that adds the time and the number of round trips to the line of the context as
// postgres_ms and postgres_calls, and makes spans when tracing is on.
type Postgres struct{ spans *otelpgx.Tracer }

var (
	_ pgx.QueryTracer = (*Postgres)(nil)
	_ pgx.BatchTracer = (*Postgres)(nil)
)

// NewPostgres makes a tracer; call it after StartTracing.
func NewPostgres() *Postgres {
	if !tracing() {
		return &Postgres{}
	}
	return &Postgres{spans: otelpgx.NewTracer()}
}

type startKey struct{}

func started(ctx context.Context) context.Context {
	if LineFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, startKey{}, time.Now())
}

func ended(ctx context.Context) {
	if start, ok := ctx.Value(startKey{}).(time.Time); ok {
		Since(ctx, "postgres_ms", start)
		Count(ctx, "postgres_calls", 1)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (p *Postgres) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if p.spans != nil {
		ctx = p.spans.TraceQueryStart(ctx, conn, data)
	}
	return started(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *Postgres) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	ended(ctx)
	if p.spans != nil {
		p.spans.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceBatchStart implements pgx.BatchTracer.
func (p *Postgres) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if p.spans != nil {
		ctx = p.spans.TraceBatchStart(ctx, conn, data)
	}
	return started(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (p *Postgres) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if p.spans != nil {
		p.spans.TraceBatchQuery(ctx, conn, data)
	}
}

// TraceBatchEnd implements pgx.BatchTracer.
func (p *Postgres) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	ended(ctx)
	if p.spans != nil {
		p.spans.TraceBatchEnd(ctx, conn, data)
	}
}
