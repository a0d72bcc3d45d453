package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// largest is about the size of the largest possible event.
const largest = 631 << 10

// logged writes events with bodies of these sizes and returns their ids in the order of updated_at.
func logged(t *testing.T, db *pgtest.DB, ctx context.Context, sizes []int) (list []ids.Event) {
	t.Helper()
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `
			insert into events (tenant_id, livemode, id, type, object_id, body, updated_at)
			select @tenant, @live, uuid_v7(at), 'booking.updated', 'bk_1', convert_to(repeat('x', size), 'UTF8'), at
			from unnest(@sizes::int[]) with ordinality s(size, n), lateral (select now() - interval '1 hour' + n * interval '1 ms') x(at)
			order by n returning id`, pg.Args{"sizes": sizes})
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowTo[ids.Event])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A read of the log returns at most MaxRows events and MaxBytes bytes, or a single larger event. No event is omitted, and the
// server sends only the returned events.
func TestEventsAfterEndsByBytes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	const rows, most = 4, 2*largest + 10
	sizes := []int{1, 2, 3, 4, 5, largest, largest, 10, 1, largest, largest, 11, most + 1, 1, most, most, 1}
	want := logged(t, db, ctx, sizes)
	var got []ids.Event
	var reads []int
	for r := (store.EventRange{Types: []string{"booking.updated"}, MaxRows: rows, MaxBytes: most}); ; {
		list, more, err := store.EventsAfter(ctx, db.App.ReadToWatermark(ctx), r)
		if err != nil {
			t.Fatal(err)
		}
		sent := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
			_, _, err := store.EventsAfter(ctx, tx, r)
			return err
		}).Sent()
		if int(sent) != len(list) {
			t.Errorf("the server sends %.0f rows for %d", sent, len(list))
		}
		for _, e := range list {
			got = append(got, e.ID)
			r.After = store.Cursor{At: e.UpdatedAt, ID: e.ID}
		}
		reads = append(reads, len(list))
		if last := len(got) == len(want); more == last {
			t.Errorf("after %d of %d: more %v", len(got), len(want), more)
		}
		if !more {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if want := []int{4, 3, 3, 2, 1, 1, 1, 1, 1}; !slices.Equal(reads, want) {
		t.Errorf("reads of %v events, want %v", reads, want)
	}
}

// The server sends only the rows that a page of large rows can show. All pages together are all rows, in order.
func TestPagesOfLargeRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	want := logged(t, db, ctx, append(slices.Repeat([]int{largest}, 30), slices.Repeat([]int{1}, 10)...))
	endpoint := ids.New[domain.EndpointPrefix]()
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `insert into deliveries (tenant_id, livemode, endpoint_id, id, event_id, event_type, updated_at, attempts)
			select tenant_id, livemode, @endpoint, id, id, type, updated_at, jsonb_build_array(jsonb_build_object('number', 1, 'at', now(), 'status_code', 500,
				'duration_ms', 1, 'error', null, 'response_body', convert_from(body, 'UTF8'))) from events
				where tenant_id = @tenant and livemode = @live`, pg.Args{"endpoint": endpoint})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	newest := slices.Clone(want)
	slices.Reverse(newest)
	for order, want := range map[bool][]ids.Event{true: want, false: newest} {
		pages(t, db, ctx, order, want, func(ctx context.Context, q pg.Q, r page.Request) (page.Rows[page.SortKey], error) {
			rows, err := store.Events(ctx, q, store.EventFilter{}, r, time.Now())
			return positions(rows, func(e domain.StoredEvent) page.SortKey { return page.SortKey{ID: e.ID.UUID(), Updated: e.UpdatedAt} }), err
		})
		pages(t, db, ctx, order, want, func(ctx context.Context, q pg.Q, r page.Request) (page.Rows[page.SortKey], error) {
			rows, err := store.Deliveries(ctx, q, store.DeliveryFilter{Endpoint: endpoint}, r, time.Now())
			return positions(rows, func(d domain.Delivery) page.SortKey { return page.SortKey{ID: d.ID.UUID(), Updated: d.UpdatedAt} }), err
		})
	}
}

func positions[T any](rows page.Rows[T], position func(T) page.SortKey) page.Rows[page.SortKey] {
	out := page.Rows[page.SortKey]{More: rows.More}
	for _, row := range rows.Items {
		out.Items = append(out.Items, position(row))
	}
	return out
}

// pages reads a list to its end.
func pages(t *testing.T, db *pgtest.DB, ctx context.Context, updated bool, want []ids.Event,
	read func(context.Context, pg.Q, page.Request) (page.Rows[page.SortKey], error),
) {
	t.Helper()
	var got []ids.Event
	for r := (page.Request{Limit: 100, Updated: updated}); ; {
		rows, err := read(ctx, r.Reader(ctx, db.App), r)
		if err != nil {
			t.Fatal(err)
		}
		sent := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
			_, err := read(ctx, tx, r)
			return err
		}).Sent()
		for _, p := range rows.Items {
			got = append(got, ids.FromUUID[ids.EventPrefix](p.ID))
			r.After = &page.Position{At: p.Updated, ID: p.ID}
		}
		if int(sent) > len(rows.Items)+1 {
			t.Errorf("the server sends %.0f rows, of which %d are stored", sent, len(rows.Items))
		}
		if rows.More == (len(got) == len(want)) {
			t.Errorf("after %d of %d: more %v", len(got), len(want), rows.More)
		}
		if !rows.More {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d of %d rows, or in another order", len(got), len(want))
	}
}
