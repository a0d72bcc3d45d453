package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// Intake is an event with its rendered body, on its way into the log.
type Intake struct {
	Event domain.Event
	Body  []byte
}

// TakeIn writes events that are not there yet, with a delivery for each enabled endpoint that subscribes to them,
// and returns how many events were new. tx has the worker role.
func (q *Queue) TakeIn(ctx context.Context, tx pg.Tx, events []Intake, now time.Time) (int, error) {
	var (
		tenants, id    [][16]byte
		live           []bool
		types, objects []string
		bodies         [][]byte
	)
	for _, e := range events {
		tenants, id = append(tenants, e.Event.Tenant.UUID()), append(id, e.Event.ID.UUID())
		live, types = append(live, e.Event.Livemode), append(types, e.Event.Type)
		objects, bodies = append(objects, e.Event.ObjectID), append(bodies, e.Body)
	}
	b := &pgx.Batch{}
	b.Queue(`select pg_current_xact_id()`) // from here on oldest_write() counts this transaction, whose times come after
	return q.add(ctx, tx, b, `
		with fresh as (
			insert into events (tenant_id, livemode, id, type, object_id, body, updated_at)
			select *, clock_timestamp() from unnest($2::uuid[], $3::boolean[], $4::uuid[], $5::text[], $6::text[], $7::bytea[])
			on conflict do nothing
			returning tenant_id, livemode, id, type
		), made as (
			insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, next_attempt_at, updated_at)
			select f.tenant_id, f.livemode, e.id, uuid_v7($1), f.id, f.type, $1, clock_timestamp()
			from fresh f join endpoints e on e.tenant_id = f.tenant_id and e.livemode = f.livemode
			where e.status = 'enabled' and e.event_types && array[f.type, '*']
			returning tenant_id, livemode, endpoint_id, id, event_id, true as first, 0 as attempts, next_attempt_at as due_at
		)`, "fresh", now, tenants, live, id, types, objects, bodies)
}

// ErasedBody is an event's body without personal data.
type ErasedBody struct {
	ID   ids.Event
	Body []byte
}

// EventsOf reads events of one object behind an id, in the order of ids, and locks them: up to limit, and no more once
// they hold so many bytes; one at least, where there is one.
func EventsOf(ctx context.Context, tx pg.Tx, objectID string, after ids.Event, limit, bytes int) ([]domain.StoredEvent, error) {
	return many[domain.StoredEvent](ctx, tx, `select id, type, body, updated_at from events where id = any(array(
			select id from (select id, sum(size) over (order by id) - size as before from (
				select id, octet_length(body) as size from events
				where object_id = $1 and id > coalesce($2, uuid_floor('1970-01-01Z')) order by id limit $3) e) e
			where before < $4)) order by id for update`, objectID, after, limit, bytes)
}

// Erase replaces bodies, and clears what receivers have answered to their deliveries. The deliveries are marked, each
// whether it was attempted or not: what is answered to an attempt that is on its way is not kept either.
func Erase(ctx context.Context, tx pg.Tx, list []ErasedBody) error {
	id, bodies := make([][16]byte, len(list)), make([][]byte, len(list))
	for i, e := range list {
		id[i], bodies[i] = e.ID.UUID(), e.Body
	}
	b := &pgx.Batch{}
	b.Queue(`update events e set body = n.body from unnest($1::uuid[], $2::bytea[]) n(id, body) where e.id = n.id`, id, bodies)
	b.Queue(`update deliveries d set erased = true, attempts = coalesce((select jsonb_agg(a || '{"response_body": null}' order by n)
			from jsonb_array_elements(d.attempts) with ordinality x(a, n)), '[]')
		where d.event_id = any($1)`, id)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("erase events: %w", err)
	}
	return nil
}
