package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// EventFilter specifies which events a list contains. An empty field excludes none.
type EventFilter struct {
	Types    []string
	ObjectID string
}

// eventColumns are the columns of domain.StoredEvent.
const eventColumns = `e.id, e.type, e.body, e.updated_at`

// Event reads one event of the last domain.Retention, or returns domain.ErrEventNotFound.
func Event(ctx context.Context, q pg.Q, id ids.Event, now time.Time) (domain.StoredEvent, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.StoredEvent], domain.ErrEventNotFound, `
		select `+eventColumns+` from events e
		where e.tenant_id = @tenant and e.livemode = @live and e.id = @id and e.id >= uuid_floor(@from) and not e.sample`,
		pg.Args{"id": id, "from": now.Add(-domain.Retention)})
}

// SentEvent reads the content of the deliveries of an event, including samples. It returns the zero SentEvent if the event is no
// longer stored.
func SentEvent(ctx context.Context, q pg.Q, id ids.Event, now time.Time) (domain.SentEvent, error) {
	e, err := pg.One(ctx, q, pgx.RowToStructByName[domain.SentEvent], domain.ErrEventNotFound, `
		select e.body, e.sample from events e where e.tenant_id = @tenant and e.livemode = @live and e.id = @id and e.id >= uuid_floor(@from)`,
		pg.Args{"id": id, "from": now.Add(-domain.Retention)})
	if errors.Is(err, domain.ErrEventNotFound) {
		return domain.SentEvent{}, nil
	}
	return e, err
}

// Events reads one page of events. An id contains its event's created_at, so both have the same order. updated_at is when the event
// was written. A reader who pages by it in ascending order misses no event.
func Events(ctx context.Context, q pg.Q, f EventFilter, r page.Request, now time.Time) (page.Rows[domain.StoredEvent], error) {
	w := &page.Where{}
	w.Add(`e.tenant_id = @tenant and e.livemode = @live`)
	w.Add(`e.id >= uuid_floor(?)`, now.Add(-domain.Retention))
	w.Add(`not e.sample`)
	if len(f.Types) == 1 {
		w.Add(`e.type = ?`, f.Types[0])
	} else if len(f.Types) > 1 {
		w.Add(`e.type = any(?)`, f.Types)
	}
	if f.ObjectID != "" {
		w.Add(`e.object_id = ?`, f.ObjectID)
	}
	tail, args := byID(w, r, "e")
	return page.Read(ctx, q, r, pgx.RowToStructByName[domain.StoredEvent],
		w.Bounded(`select `+eventColumns+` from events e `+tail, eventColumns, `octet_length(e.body)`), args...)
}

// byID is page.Where.Page for a table whose created_at is the time in its id.
func byID(w *page.Where, r page.Request, alias string) (string, []any) {
	if r.CreatedAfter != nil {
		w.Add(alias+`.id >= uuid_floor(?)`, *r.CreatedAfter)
	}
	if r.CreatedBefore != nil {
		w.Add(alias+`.id < uuid_floor(?)`, *r.CreatedBefore)
	}
	r.CreatedAfter, r.CreatedBefore = nil, nil
	if r.Updated {
		return w.Page(r, alias)
	}
	return w.PageByID(r, alias)
}

// Cursor is a position in the log: after the event with this id, which was written at At.
type Cursor struct {
	At time.Time
	ID ids.Event
}

// EventRange specifies which events are read after a position in the log, and the maximum number of rows and of bytes of bodies.
type EventRange struct {
	Types             []string
	After             Cursor
	MaxRows, MaxBytes int
}

// EventsAfter reads the events after a position, in the order in which they were written, and reports whether more may follow. An
// event that is larger than MaxBytes is returned as the only one. The server knows the length of a body without reading it. q must
// come from pg.DB.ReadToWatermark, so that no event before the last one is written later.
func EventsAfter(ctx context.Context, q pg.Q, r EventRange) (list []domain.StoredEvent, more bool, err error) {
	type counted struct {
		domain.StoredEvent
		Waiting int
	}
	rows, err := pg.Many(ctx, q, pgx.RowToStructByName[counted], `
		with
		-- found: the next events
		found as (
			select `+eventColumns+` from events e
			where e.tenant_id = @tenant and e.livemode = @live and (e.updated_at, e.id) > (@at, @id) and e.updated_at < `+pg.Watermark+`
			  and not e.sample and e.type = any(@types)
			order by e.updated_at, e.id limit @rows
		),
		-- sums: the same, with their number and the bytes of each and those before it
		sums as (
			select `+eventColumns+`, count(*) over ()::int as waiting, sum(octet_length(e.body)) over (order by e.updated_at, e.id) as bytes
			from found e
		)
		select `+eventColumns+`, e.waiting from sums e
		where e.bytes <= @bytes or e.bytes = octet_length(e.body) order by e.updated_at, e.id`,
		pg.Args{"at": r.After.At, "id": r.After.ID, "types": r.Types, "rows": r.MaxRows, "bytes": r.MaxBytes})
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	for _, row := range rows {
		list = append(list, row.StoredEvent)
	}
	return list, rows[0].Waiting > len(rows) || len(rows) == r.MaxRows, nil
}

// InsertSample writes an event that is not in lists. Only its delivery shows it.
func InsertSample(ctx context.Context, tx pg.Tx, e domain.Event, body []byte) error {
	return pg.Exec(ctx, tx, "insert sample", `
		insert into events (tenant_id, livemode, id, type, object_id, sample, body, updated_at)
		values (@tenant, @live, @id, @type, @object, true, @body, clock_timestamp())`,
		pg.Args{"id": e.ID, "type": e.Type, "object": e.ObjectID, "body": body})
}

// Now returns the position after all written events. q must come from pg.DB.ReadToWatermark.
func Now(ctx context.Context, q pg.Q) (Cursor, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[Cursor], pgx.ErrNoRows,
		`select `+pg.Watermark+` - interval '1 microsecond' as at, uuid_floor('2200-01-01Z') as id`)
}
