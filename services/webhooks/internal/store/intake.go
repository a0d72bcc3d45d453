package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Intake is an event with its rendered body, before it is in the log.
type Intake struct {
	Event domain.Event
	Body  []byte
}

// AddEvents writes the events that are not in the log yet, with a delivery for each enabled endpoint that subscribes to them. It
// returns the number of new events. tx has the worker role.
func (q *Queue) AddEvents(ctx context.Context, tx pg.Tx, events []Intake, now time.Time) (int, error) {
	b := &pgx.Batch{}
	b.Queue(`select pg_current_xact_id()`) // from here on, oldest_write() includes this transaction, and updated_at is later
	return q.add(ctx, tx, b, `
		with new_events as (
			insert into events (tenant_id, livemode, id, type, object_id, body, updated_at)
			select *, clock_timestamp() from unnest($2::uuid[], $3::boolean[], $4::uuid[], $5::text[], $6::text[], $7::bytea[])
			on conflict do nothing
			returning tenant_id, livemode, id, type
		), new_deliveries as (
			insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			select n.tenant_id, n.livemode, e.id, uuid_v7($1), n.id, n.type, $1, clock_timestamp()
			from new_events n join endpoints e on (e.tenant_id, e.livemode) = (n.tenant_id, n.livemode)
			where e.status = 'enabled' and e.event_types && array[n.type, '*']
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "new_events", now,
		pg.Column(events, func(e Intake) [16]byte { return e.Event.Tenant.UUID() }),
		pg.Column(events, func(e Intake) bool { return e.Event.Livemode }),
		pg.Column(events, func(e Intake) [16]byte { return e.Event.ID.UUID() }),
		pg.Column(events, func(e Intake) string { return e.Event.Type }),
		pg.Column(events, func(e Intake) string { return e.Event.ObjectID }),
		pg.Column(events, func(e Intake) []byte { return e.Body }))
}

// ErasedBody is an event's body without personal data.
type ErasedBody struct {
	ID   ids.Event
	Body []byte
}

// EventsOf reads and locks the events of one object whose ids are above after, in the order of their ids. It returns up to limit
// events with up to maxBytes in total, and at least one event if there is one.
func EventsOf(ctx context.Context, tx pg.Tx, objectID string, after ids.Event, limit, maxBytes int) ([]domain.StoredEvent, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[domain.StoredEvent], `
		with sizes as (
			select id, octet_length(body) as size from events
			where tenant_id = @tenant and livemode = @live and object_id = @object and id > coalesce(@after, uuid_floor('1970-01-01Z'))
			order by id limit @limit
		), sums as (
			select id, sum(size) over (order by id) - size as bytes_before from sizes
		)
		select id, type, body, updated_at from events
		where tenant_id = @tenant and livemode = @live and id = any(array(select id from sums where bytes_before < @bytes))
		order by id for update`, pg.Args{"object": objectID, "after": after, "limit": limit, "bytes": maxBytes})
}

// Erase replaces the bodies of events and deletes the responses of receivers to their deliveries. It marks all of these deliveries
// as erased, so that the response to an attempt in flight is not stored either.
func Erase(ctx context.Context, tx pg.Tx, events []ErasedBody) error {
	args := pg.Args{
		"ids":    pg.Column(events, func(e ErasedBody) [16]byte { return e.ID.UUID() }),
		"bodies": pg.Column(events, func(e ErasedBody) []byte { return e.Body }),
	}
	b := &pgx.Batch{}
	b.Queue(`
		update events e set body = n.body from unnest(@ids::uuid[], @bodies::bytea[]) n(id, body)
		where e.tenant_id = @tenant and e.livemode = @live and e.id = n.id`, args)
	b.Queue(`
		update deliveries d set erased = true, attempts = coalesce((
			select jsonb_agg(a || '{"response_body": null}' order by n) from jsonb_array_elements(d.attempts) with ordinality x(a, n)), '[]')
		where d.tenant_id = @tenant and d.livemode = @live and d.event_id = any(@ids)`, args)
	return pg.Send(ctx, tx, b, "erase events")
}
