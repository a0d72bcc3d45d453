package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Queue adds deliveries to the queues of endpoints. It is the only code that does: add leaves the wakeups for the
// endpoints and wakes the dispatcher.
type Queue struct {
	Wake func() // wakes the dispatcher after a commit
}

// enqueue is the end of each statement of add: it queues the rows of the CTE new_deliveries, which has the columns
// tenant_id, livemode, endpoint_id, id, event_id, first, attempts, due_at, and leaves a wakeup for each endpoint.
const enqueue = `, queued as (
		insert into queue (tenant_id, livemode, endpoint_id, first, due_at, delivery_id, event_id, attempts)
		select tenant_id, livemode, endpoint_id, first, due_at, id, event_id, attempts from new_deliveries
	), wakeups as (
		insert into signals (tenant_id, livemode, endpoint_id) select distinct tenant_id, livemode, endpoint_id from new_deliveries
	)
	select count(*)::int from `

// add sends the statements of b and then the statement that begins with the CTEs of with, in one round trip. One of
// the CTEs is new_deliveries. It returns the number of rows of the CTE counted, and wakes the dispatcher when there
// are any.
func (q *Queue) add(ctx context.Context, tx pg.Tx, b *pgx.Batch, with, counted string, args ...any) (int, error) {
	before := b.Len()
	b.Queue(with+enqueue+counted, args...)
	res := tx.SendBatch(ctx, b)
	var n int
	var err error
	for i := 0; i < before && err == nil; i++ {
		_, err = res.Exec()
	}
	if err == nil {
		err = res.QueryRow().Scan(&n)
	}
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return 0, fmt.Errorf("queue deliveries: %w", err)
	}
	if n > 0 {
		tx.AfterCommit(q.Wake)
	}
	return n, nil
}

// AddDelivery adds a delivery of one event to an endpoint, due now.
func (q *Queue) AddDelivery(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID, e domain.Event, now time.Time) error {
	_, err := q.add(ctx, tx, &pgx.Batch{}, `
		with new_deliveries as (
			insert into deliveries (endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			values ($1, $2, $3, $4, $5, clock_timestamp())
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "new_deliveries", endpoint, id, e.ID, e.Type, now)
	return err
}

// Retry makes a delivery that the transaction has locked due now, whatever its status is, as an attempt that the
// breaker does not defer. It deletes the row of the delivery that is in the queue, unless a claim of it is valid.
func (q *Queue) Retry(ctx context.Context, tx pg.Tx, d domain.Delivery, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`
		delete from queue where ctid = any(array(
			select ctid from queue where endpoint_id = $1 and delivery_id = $2 and (not claimed or due_at <= $3)
			for update skip locked))`, d.EndpointID, d.ID, now)
	_, err := q.add(ctx, tx, b, `
		with new_deliveries as (
			update deliveries set status = 'pending', failure_reason = null, next_attempt_at = $3, updated_at = clock_timestamp()
			where endpoint_id = $1 and id = $2
			returning tenant_id, livemode, endpoint_id, id, event_id, false as first, jsonb_array_length(attempts) as attempts, next_attempt_at as due_at
		)`, "new_deliveries", d.EndpointID, d.ID, now)
	return err
}

// Replay says which events are delivered to an endpoint again.
type Replay struct {
	Endpoint domain.EndpointID
	Types    []string
	From, To time.Time
}

// Replay adds a delivery for each event of a replay and returns the number of events. When there are more than limit,
// it adds no delivery and returns a number above limit.
func (q *Queue) Replay(ctx context.Context, tx pg.Tx, r Replay, now time.Time, limit int) (int, error) {
	return q.add(ctx, tx, &pgx.Batch{}, `
		with found as materialized (
			select e.id, e.type from events e
			where e.id >= uuid_floor($2) and e.id < uuid_floor($3) and e.type = any($4) and not e.sample
			order by e.id limit $6 + 1
		), new_deliveries as (
			insert into deliveries (endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			select $1, uuid_v7($5), id, type, $5, clock_timestamp() from found where (select count(*) from found) <= $6
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "found", r.Endpoint, r.From, r.To, r.Types, now, limit)
}

// FailQueued fails up to limit deliveries that are queued for a disabled endpoint and returns how many there were. It
// leaves out deliveries with a valid claim, and rows that are locked, because the result of an attempt is being written.
// tx has the worker role or belongs to the endpoint's tenant.
func FailQueued(ctx context.Context, tx pg.Tx, key domain.EndpointKey, now time.Time, limit int) (int, error) {
	rows, err := tx.Query(ctx, `
		with removed as (
			delete from queue where ctid = any(array(
				select ctid from queue
				where (tenant_id, livemode, endpoint_id) = ($1, $2, $3) and (not claimed or due_at <= $5)
				order by claimed, first, due_at, delivery_id limit $4 for update skip locked))
			returning delivery_id
		), failed as (
			update deliveries d set status = 'failed', failure_reason = 'endpoint_disabled', next_attempt_at = null, updated_at = clock_timestamp()
			where (d.tenant_id, d.livemode, d.endpoint_id) = ($1, $2, $3) and d.id = any(array(select delivery_id from removed))
		)
		select count(*)::int from removed`, key.Tenant, key.Livemode, key.Endpoint, limit, now)
	if err != nil {
		return 0, fmt.Errorf("fail queued deliveries: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("fail queued deliveries: %w", err)
	}
	return n, nil
}

// SweepQueue deletes up to limit queue rows of endpoints that were deleted, and as many of their wakeups, and reports
// whether there may be more. tx has the worker role.
func SweepQueue(ctx context.Context, tx pg.Tx, limit int64) (more bool, err error) {
	for _, table := range []string{"queue", "signals"} {
		tag, err := tx.Exec(ctx, `
			delete from `+table+` where ctid = any(array(
				select q.ctid from `+table+` q
				where not exists (select from lanes l where (l.tenant_id, l.livemode, l.endpoint_id) = (q.tenant_id, q.livemode, q.endpoint_id))
				limit $1 for update of q))`, limit)
		if err != nil {
			return false, fmt.Errorf("sweep %s: %w", table, err)
		}
		more = more || tag.RowsAffected() == limit
	}
	return more, nil
}
