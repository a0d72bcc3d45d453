package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// onTheirWay are the ids of one endpoint's deliveries that a process has claimed: at most max_in_flight.
const onTheirWay = `array(select q.delivery_id from queue q where q.endpoint_id = %s and q.claimed and q.due_at > clock_timestamp())`

func deliveryColumns(endpoint string) string {
	return `d.id, d.endpoint_id, d.event_id, d.event_type,
	case when d.status = 'pending' and d.id = any(` + fmt.Sprintf(onTheirWay, endpoint) + `) then 'delivering' else d.status end as status,
	d.attempts, d.next_attempt_at, d.updated_at`
}

// Delivery reads one delivery of an endpoint, or domain.ErrDeliveryNotFound.
func Delivery(ctx context.Context, q pg.Q, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	return one[domain.Delivery](ctx, q, domain.ErrDeliveryNotFound, `select `+deliveryColumns("$1")+`
		from deliveries d where d.endpoint_id = $1 and d.id = $2`, endpoint, id)
}

// DeliveryForUpdate locks the row until the transaction ends.
func DeliveryForUpdate(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID) (domain.Delivery, error) {
	return one[domain.Delivery](ctx, tx, domain.ErrDeliveryNotFound, `select `+deliveryColumns("$1")+`
		from deliveries d where d.endpoint_id = $1 and d.id = $2 for update of d`, endpoint, id)
}

// DeliveryFilter narrows a list; empty fields do not.
type DeliveryFilter struct {
	Endpoint domain.EndpointID
	Status   domain.DeliveryStatus
	Type     string
	Among    []string // types; nil is all
}

// Deliveries reads one page of an endpoint's. A delivery's id says when it was created.
func Deliveries(ctx context.Context, q pg.Q, f DeliveryFilter, r page.Request, now time.Time) ([]domain.Delivery, error) {
	w := &page.Where{}
	w.Add(`d.endpoint_id = ?`, f.Endpoint)
	w.Add(`d.id >= uuid_floor(?)`, now.Add(-domain.Retention))
	way := fmt.Sprintf(onTheirWay, "$1")
	switch f.Status {
	case domain.Delivering:
		w.Add(`d.status = 'pending' and d.id = any(` + way + `)`)
	case domain.Pending:
		w.Add(`d.status = 'pending' and d.id <> all(` + way + `)`)
	case domain.Succeeded, domain.Failed:
		w.Add(`d.status = ?`, string(f.Status))
	}
	if f.Type != "" {
		w.Add(`d.event_type = ?`, f.Type)
	}
	if f.Among != nil {
		w.Add(`d.event_type = any(?)`, f.Among)
	}
	tail, args := byID(w, r, "d")
	return many[domain.Delivery](ctx, q, `select `+deliveryColumns("$1")+` from deliveries d `+tail, args...)
}

// signal says that something was queued.
const signal = `insert into signals (endpoint_id) values ($1)`

// Queue makes a delivery of one event to an endpoint, due now.
func Queue(ctx context.Context, tx pg.Tx, endpoint domain.EndpointID, id domain.DeliveryID, e domain.Event, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`insert into deliveries (endpoint_id, id, event_id, event_type, next_attempt_at, updated_at) values ($1, $2, $3, $4, $5, clock_timestamp())`,
		endpoint, id, e.ID, e.Type, now)
	b.Queue(`insert into queue (endpoint_id, due_at, delivery_id, event_id) values ($1, $2, $3, $4)`, endpoint, now, id, e.ID)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("queue delivery: %w", err)
	}
	return nil
}

// Requeue makes a delivery that the transaction has locked due now, whatever became of it, as an attempt that
// no breaker defers.
func Requeue(ctx context.Context, tx pg.Tx, d domain.Delivery, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(`delete from queue where endpoint_id = $1 and not claimed and delivery_id = $2`, d.EndpointID, d.ID)
	b.Queue(`insert into queue (endpoint_id, first, due_at, delivery_id, event_id, attempts) values ($1, false, $2, $3, $4, $5)`,
		d.EndpointID, now, d.ID, d.EventID, len(d.Attempts))
	b.Queue(`update deliveries set status = 'pending', next_attempt_at = $3, updated_at = clock_timestamp() where endpoint_id = $1 and id = $2`,
		d.EndpointID, d.ID, now)
	b.Queue(signal, d.EndpointID)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("queue delivery again: %w", err)
	}
	return nil
}

// Replay is which events go to an endpoint again.
type Replay struct {
	Endpoint domain.EndpointID
	Types    []string
	From, To time.Time
}

// QueueReplay makes a delivery for each event of a replay, and returns how many there are. It makes none when they
// are more than limit.
func QueueReplay(ctx context.Context, tx pg.Tx, r Replay, now time.Time, limit int) (int, error) {
	rows, err := tx.Query(ctx, `
		with found as materialized (
			select e.id, e.type from events e
			where e.id >= uuid_floor($2) and e.id < uuid_floor($3) and e.type = any($4) and not e.sample
			order by e.id limit $6 + 1
		), made as (
			insert into deliveries (endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			select $1, uuid_v7($5), id, type, $5, clock_timestamp() from found where (select count(*) from found) <= $6
			returning id, event_id
		), queued as (
			insert into queue (endpoint_id, due_at, delivery_id, event_id) select $1, $5, id, event_id from made
		), said as (
			insert into signals (endpoint_id) select $1 from made limit 1
		)
		select count(*)::int from found`, r.Endpoint, r.From, r.To, r.Types, now, limit)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	return n, nil
}
