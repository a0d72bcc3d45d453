package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/logs/internal/domain"
)

// counter is the consumer of the batches in the inbox. Their rows have no tenant, because a batch has counts of many.
const counter = "request counts"

// sealLock makes the measurement of a day and the transactions that add counts exclude each other.
const sealLock = `hashtext('request counts')`

// AddRequestCounts adds the counts of the batches that were not added yet, and returns the number of their requests. A day that was
// measured does not change: its counts are added to the next day. tx has the worker role.
func AddRequestCounts(ctx context.Context, tx pg.Tx, list []domain.RequestCount, now time.Time) (int64, error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+sealLock+`)`); err != nil {
		return 0, fmt.Errorf("lock request counts: %w", err)
	}
	n, err := pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `
		with
		-- counted: without the rows of a message that is in the list twice
		counted as (
			select distinct * from unnest(@batches::uuid[], @tenants::uuid[], @modes::boolean[], @days::date[], @classes::text[], @requests::bigint[])
				as c(batch, tenant_id, livemode, day, class, requests)
		), fresh as (
			insert into inbox (tenant_id, livemode, consumer, event_id, expires_at)
			select distinct '00000000-0000-0000-0000-000000000000'::uuid, false, @consumer, batch, @expires::timestamptz from counted
			on conflict do nothing
			returning event_id
		), added as (
			insert into request_counts as r (tenant_id, livemode, day, class, requests)
			select c.tenant_id, c.livemode, greatest(c.day, s.through + 1), c.class, sum(c.requests)
			from counted c join fresh f on f.event_id = c.batch left join request_counts_sealed s using (tenant_id, livemode)
			group by 1, 2, 3, 4 order by 1, 2, 3, 4
			on conflict (tenant_id, livemode, day, class) do update set requests = r.requests + excluded.requests
		)
		select coalesce(sum(c.requests), 0)::bigint from counted c join fresh f on f.event_id = c.batch`, pg.Args{
		"batches":  counts(list, func(c domain.RequestCount) [16]byte { return c.Batch }),
		"tenants":  counts(list, func(c domain.RequestCount) [16]byte { return c.TenantID.UUID() }),
		"modes":    counts(list, func(c domain.RequestCount) bool { return c.Livemode }),
		"days":     counts(list, func(c domain.RequestCount) time.Time { return c.Day }),
		"classes":  counts(list, func(c domain.RequestCount) string { return c.Class }),
		"requests": counts(list, func(c domain.RequestCount) int64 { return c.Requests }),
		"consumer": counter, "expires": now.Add(domain.CountedFor + domain.MaxAhead),
	})
	if err != nil {
		return 0, fmt.Errorf("add request counts: %w", err)
	}
	return n, nil
}

// counts returns one value of each count, as an array for unnest.
func counts[V any](list []domain.RequestCount, value func(c domain.RequestCount) V) []V {
	out := make([]V, len(list))
	for i, c := range list {
		out[i] = value(c)
	}
	return out
}

// SealRequestCounts makes the counts of a day, and of those before it, final for the caller's tenant and mode. It waits for transactions
// that add counts.
func SealRequestCounts(ctx context.Context, tx pg.Tx, day time.Time) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+sealLock+`)`); err != nil {
		return fmt.Errorf("lock request counts: %w", err)
	}
	return pg.Exec(ctx, tx, "seal request counts", `
		insert into request_counts_sealed as s (tenant_id, livemode, through) values (@tenant, @live, @day)
		on conflict (tenant_id, livemode) do update set through = excluded.through where s.through < excluded.through`, pg.Args{"day": day})
}

// ClassCount is the number of requests of a class.
type ClassCount struct {
	Class    string
	Requests int64
}

// RequestCounts returns the requests of the caller's tenant and mode on a day, by class.
func RequestCounts(ctx context.Context, q pg.Q, day time.Time) ([]ClassCount, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[ClassCount], `
		select class, requests from request_counts where tenant_id = @tenant and livemode = @live and day = @day`, pg.Args{"day": day})
}

// maxSwept is the maximum number of counts that one statement deletes.
const maxSwept = 5000

// SweepRequestCounts deletes at most maxSwept counts of days before a time, and reports whether more may be left. tx has the worker role.
func SweepRequestCounts(ctx context.Context, tx pg.Tx, before time.Time) (more bool, err error) {
	n, err := pg.Affect(ctx, tx, "sweep request counts", `delete from request_counts where ctid = any(array(
		select ctid from request_counts where day < $1 order by day limit $2))`, before, maxSwept)
	return n == maxSwept, err
}
