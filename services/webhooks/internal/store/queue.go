package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Queue adds deliveries to the queues of endpoints. It is the only code that does so: add writes the wakeups for the endpoints and
// wakes the dispatcher.
type Queue struct {
	Wake func() // wakes the dispatcher after a commit
}

// enqueue is the end of each statement of add. It queues the rows of the CTE new_deliveries, which has the columns tenant_id,
// livemode, endpoint_id, id, event_id, first, attempts, due_at, and writes a wakeup for each endpoint.
const enqueue = `, queued as (
		insert into queue (tenant_id, livemode, endpoint_id, first, due_at, delivery_id, event_id, attempts)
		select tenant_id, livemode, endpoint_id, first, due_at, id, event_id, attempts from new_deliveries
	), wakeups as (
		insert into wakeups (tenant_id, livemode, endpoint_id) select distinct tenant_id, livemode, endpoint_id from new_deliveries
	)
	select count(*)::int from `

// add sends the statements of b and then the statement that begins with the CTEs of with, in one round trip. One of the CTEs is
// new_deliveries. It returns the number of rows of the CTE named by counted, and wakes the dispatcher if there are any.
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
			insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			values (@tenant, @live, @endpoint, @id, @event, @type, @now, clock_timestamp())
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "new_deliveries", pg.Args{"endpoint": endpoint, "id": id, "event": e.ID, "type": e.Type, "now": now})
	return err
}

// Retry makes a delivery that the transaction locked due now, regardless of its status. The breaker does not defer this attempt.
// Retry deletes the delivery's existing row in the queue, unless it has a valid claim.
func (q *Queue) Retry(ctx context.Context, tx pg.Tx, d domain.Delivery, now time.Time) error {
	args := pg.Args{"endpoint": d.EndpointID, "id": d.ID, "now": now}
	b := &pgx.Batch{}
	b.Queue(`
		delete from queue where tenant_id = @tenant and livemode = @live and ctid = any(array(
			select ctid from queue
			where tenant_id = @tenant and livemode = @live and endpoint_id = @endpoint and delivery_id = @id and (not claimed or due_at <= @now)
			for update skip locked))`, args)
	_, err := q.add(ctx, tx, b, `
		with new_deliveries as (
			update deliveries set status = 'pending', failure_reason = null, next_attempt_at = @now, updated_at = clock_timestamp()
			where tenant_id = @tenant and livemode = @live and endpoint_id = @endpoint and id = @id
			returning tenant_id, livemode, endpoint_id, id, event_id, false as first, jsonb_array_length(attempts) as attempts, next_attempt_at as due_at
		)`, "new_deliveries", args)
	return err
}

// TenantChanged makes the queues of all endpoints of the caller's tenant and mode ready, if its deliveries no longer wait.
func (q *Queue) TenantChanged(ctx context.Context, tx pg.Tx, paused bool) error {
	if paused {
		return nil // each queue waits from its next pass on
	}
	_, err := tx.Exec(ctx, `
		insert into wakeups (tenant_id, livemode, endpoint_id)
		select tenant_id, livemode, endpoint_id from endpoint_queues where tenant_id = @tenant and livemode = @live`, pg.Args{})
	if err != nil {
		return fmt.Errorf("resume deliveries: %w", err)
	}
	tx.AfterCommit(q.Wake)
	return nil
}

// Replay specifies which events are redelivered to an endpoint.
type Replay struct {
	Endpoint domain.EndpointID
	Types    []string
	From, To time.Time
}

// Replay adds a delivery for each event of a replay and returns the number of events. If there are more than limit, it adds no
// delivery and returns a number above limit.
func (q *Queue) Replay(ctx context.Context, tx pg.Tx, r Replay, now time.Time, limit int) (int, error) {
	return q.add(ctx, tx, &pgx.Batch{}, `
		with found as materialized (
			select e.id, e.type from events e
			where e.tenant_id = @tenant and e.livemode = @live and e.id >= uuid_floor(@from) and e.id < uuid_floor(@to)
			  and e.type = any(@types) and not e.sample
			order by e.id limit @limit + 1
		), new_deliveries as (
			insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			select @tenant, @live, @endpoint, uuid_v7(@now), id, type, @now, clock_timestamp() from found where (select count(*) from found) <= @limit
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "found", pg.Args{"endpoint": r.Endpoint, "types": r.Types, "from": r.From, "to": r.To, "now": now, "limit": limit})
}

// failQueued fails queued deliveries of the endpoint @endpoint. Additional conditions on the deleted rows can replace %s.
const failQueued = `
	with removed as (
		delete from queue where %s ctid = any(array(
			select ctid from queue
			where (tenant_id, livemode, endpoint_id) = (@tenant, @live, @endpoint) and (not claimed or due_at <= @now)
			order by claimed, first, due_at, delivery_id limit @limit for update skip locked))
		returning delivery_id
	), failed as (
		update deliveries d set status = 'failed', failure_reason = 'endpoint_disabled', next_attempt_at = null, updated_at = clock_timestamp()
		where (d.tenant_id, d.livemode, d.endpoint_id) = (@tenant, @live, @endpoint) and d.id = any(array(select delivery_id from removed))
	)
	select count(*)::int from removed`

var (
	failQueuedOfAll    = fmt.Sprintf(failQueued, "") // in the worker role, rows are found only by ctid
	failQueuedOfTenant = fmt.Sprintf(failQueued, "tenant_id = @tenant and livemode = @live and")
)

// FailQueued fails up to limit deliveries that are queued for a disabled endpoint and returns their number. It skips deliveries
// with a valid claim, and rows that are locked because the result of an attempt is being written. tx has the worker role.
func FailQueued(ctx context.Context, tx pg.Tx, key domain.EndpointKey, now time.Time, limit int) (int, error) {
	return fail(ctx, tx, failQueuedOfAll, pg.Args{
		"tenant": key.Tenant, "live": key.Livemode, "endpoint": key.Endpoint, "now": now, "limit": limit,
	})
}

// FailTenantQueued is FailQueued for an endpoint of the caller's tenant and mode.
func FailTenantQueued(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, now time.Time, limit int) (int, error) {
	return fail(ctx, tx, failQueuedOfTenant, pg.Args{"endpoint": endpoint, "now": now, "limit": limit})
}

func fail(ctx context.Context, tx pg.Tx, sql string, args pg.Args) (int, error) {
	n, err := pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, sql, args)
	if err != nil {
		return 0, fmt.Errorf("fail queued deliveries: %w", err)
	}
	return n, nil
}

// SweepQueue deletes up to limit queue rows of deleted endpoints and up to limit of their wakeups, and reports whether there may be
// more. tx has the worker role.
func SweepQueue(ctx context.Context, tx pg.Tx, limit int64) (more bool, err error) {
	for _, table := range []string{"queue", "wakeups"} {
		tag, err := tx.Exec(ctx, `
			delete from `+table+` where ctid = any(array(
				select q.ctid from `+table+` q
				where not exists (select from endpoint_queues l where (l.tenant_id, l.livemode, l.endpoint_id) = (q.tenant_id, q.livemode, q.endpoint_id))
				limit $1 for update of q))`, limit)
		if err != nil {
			return false, fmt.Errorf("sweep %s: %w", table, err)
		}
		more = more || tag.RowsAffected() == limit
	}
	return more, nil
}
