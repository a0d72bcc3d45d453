package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/usage"
)

// EventsRecorded counts the events that the log recorded from one time until before another, without samples. updated_at is the time of
// the record, and neither changes nor is deleted before the retention of the log ends.
func EventsRecorded(ctx context.Context, q pg.Q, from, to time.Time) (int64, error) {
	return pg.One(ctx, q, pgx.RowTo[int64], pgx.ErrNoRows, `
		select count(*) from events
		where tenant_id = @tenant and livemode = @live and updated_at >= @from and updated_at < @to and not sample`,
		pg.Args{"from": from, "to": to})
}

// DeliveriesCreated counts the deliveries whose id has a time from one time until before another. It reads the index of the partitions
// of these times only.
func DeliveriesCreated(ctx context.Context, q pg.Q, from, to time.Time) (int64, error) {
	return pg.One(ctx, q, pgx.RowTo[int64], pgx.ErrNoRows, `
		select count(*) from deliveries where tenant_id = @tenant and livemode = @live and id >= uuid_floor(@from) and id < uuid_floor(@to)`,
		pg.Args{"from": from, "to": to})
}

// Waiting are the kinds of background work of this service. The time in the id of a delivery is the time of its creation.
var Waiting = []usage.Waiting{{Kind: "delivery", SQL: `
	select to_timestamp(('x' || lpad(replace(left(delivery_id::text, 13), '-', ''), 16, '0'))::bit(64)::bigint / 1000.0) as at
	from queue where tenant_id = @tenant and livemode = @live`}}
