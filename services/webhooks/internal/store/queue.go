package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Queue makes deliveries due. All that is queued goes through add, so each lane gets its signal and the dispatcher
// is woken.
type Queue struct {
	Wake func() // wakes the dispatcher after a commit
}

// add runs what b holds, then with, whose last query is named made and returns the deliveries to queue: tenant_id,
// livemode, endpoint_id, id, event_id, first, attempts, due_at. It returns how many rows the query named counted has.
func (q *Queue) add(ctx context.Context, tx pg.Tx, b *pgx.Batch, with, counted string, args ...any) (int, error) {
	before := b.Len()
	b.Queue(strings.TrimRight(with, " \t\n")+`, queued as (
			insert into queue (tenant_id, livemode, endpoint_id, first, due_at, delivery_id, event_id, attempts)
			select tenant_id, livemode, endpoint_id, first, due_at, id, event_id, attempts from made
		), said as (
			insert into signals (tenant_id, livemode, endpoint_id) select distinct tenant_id, livemode, endpoint_id from made
		)
		select count(*)::int from `+counted, args...)
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

// Event makes a delivery of one event to an endpoint, due now.
func (q *Queue) Event(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID, e domain.Event, now time.Time) error {
	_, err := q.add(ctx, tx, &pgx.Batch{}, `
		with made as (
			insert into deliveries (endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			values ($1, $2, $3, $4, $5, clock_timestamp())
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "made", endpoint, id, e.ID, e.Type, now)
	return err
}

// Again makes a delivery that the transaction has locked due now, whatever became of it, as an attempt that no
// breaker defers. What an ended process had claimed of it is forgotten.
func (q *Queue) Again(ctx context.Context, tx pg.Tx, d domain.Delivery, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`delete from queue where ctid = any(array(select ctid from queue
		where endpoint_id = $1 and delivery_id = $2 and (not claimed or due_at <= $3) for update skip locked))`, d.EndpointID, d.ID, now)
	_, err := q.add(ctx, tx, b, `
		with made as (
			update deliveries set status = 'pending', failure_reason = null, next_attempt_at = $3, updated_at = clock_timestamp()
			where endpoint_id = $1 and id = $2
			returning tenant_id, livemode, endpoint_id, id, event_id, false as first, jsonb_array_length(attempts) as attempts, next_attempt_at as due_at
		)`, "made", d.EndpointID, d.ID, now)
	return err
}

// Replay is which events go to an endpoint again.
type Replay struct {
	Endpoint domain.EndpointID
	Types    []string
	From, To time.Time
}

// Replay makes a delivery for each event of a replay, and returns how many there are. It makes none when they are
// more than limit.
func (q *Queue) Replay(ctx context.Context, tx pg.Tx, r Replay, now time.Time, limit int) (int, error) {
	return q.add(ctx, tx, &pgx.Batch{}, `
		with found as materialized (
			select e.id, e.type from events e
			where e.id >= uuid_floor($2) and e.id < uuid_floor($3) and e.type = any($4) and not e.sample
			order by e.id limit $6 + 1
		), made as (
			insert into deliveries (endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			select $1, uuid_v7($5), id, type, $5, clock_timestamp() from found where (select count(*) from found) <= $6
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "found", r.Endpoint, r.From, r.To, r.Types, now, limit)
}
