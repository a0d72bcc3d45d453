package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/webhooks/internal/domain"
)

// ObjectRange specifies which events about objects are read: those after After for the first object, and all for the others.
// MaxRows and MaxBytes limit the number of events and the bytes of their bodies.
type ObjectRange struct {
	Objects           []string
	After             *ids.Event
	MaxRows, MaxBytes int
}

// ObjectEvent is an event with the object that it is about.
type ObjectEvent struct {
	ID       ids.Event
	ObjectID string
	Body     []byte
}

// EventsOfObjects reads events about objects, one object after the other in the order of the list, oldest event first, and reports
// whether more may follow. An event that is larger than MaxBytes is returned as the only one.
func EventsOfObjects(ctx context.Context, q pg.Q, r ObjectRange, now time.Time) (list []ObjectEvent, more bool, err error) {
	type counted struct {
		ObjectEvent
		Waiting int
	}
	rows, err := pg.Many(ctx, q, pgx.RowToStructByName[counted], `
		with
		-- found: the keys of the next events, and the bytes of their bodies, which the server knows without reading these
		found as (
			select o.n, f.id, f.bytes
			from unnest(@objects::text[]) with ordinality as o(object_id, n) cross join lateral (
				select e.id, octet_length(e.body) as bytes from events e
				where e.tenant_id = @tenant and e.livemode = @live and e.object_id = o.object_id and not e.sample
				  and e.id > greatest(uuid_floor(@from), case when o.n = 1 then @after::uuid end)
				order by e.id limit @rows) f
			order by o.n, f.id limit @rows
		),
		-- sums: the same, with their number and the bytes of each and those before it
		sums as (
			select n, id, bytes, count(*) over ()::int as waiting, sum(bytes) over (order by n, id) as total from found
		)
		select e.id, e.object_id, e.body, s.waiting
		from sums s join events e on e.tenant_id = @tenant and e.livemode = @live and e.id = s.id
		where s.total <= @bytes or s.total = s.bytes order by s.n, s.id`,
		pg.Args{
			"objects": r.Objects, "after": r.After, "from": now.Add(-domain.Retention), "rows": r.MaxRows, "bytes": r.MaxBytes,
		})
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	for _, row := range rows {
		list = append(list, row.ObjectEvent)
	}
	return list, rows[0].Waiting > len(rows) || len(rows) == r.MaxRows, nil
}
