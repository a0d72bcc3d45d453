package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

// BookingsCreated counts the bookings that were created from one time until before another, in any status. Bookings are never deleted,
// and created_at never changes.
func BookingsCreated(ctx context.Context, q pg.Q, from, to time.Time) (int64, error) {
	return pg.One(ctx, q, pgx.RowTo[int64], pgx.ErrNoRows, `
		select count(*) from bookings where tenant_id = @tenant and livemode = @live and created_at >= @from and created_at < @to`,
		pg.Args{"from": from, "to": to})
}
