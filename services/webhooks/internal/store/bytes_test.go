package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

// largest is about the size of the largest event that there can be.
const largest = 631 << 10

// logged stores events with bodies of these sizes, and returns them in the order in which they came in.
func logged(t *testing.T, db *pgtest.DB, ctx context.Context, sizes []int) (list []ids.Event) { //nolint:revive // t leads in tests
	t.Helper()
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, `
			insert into events (id, type, object_id, body, updated_at)
			select uuid_v7(at), 'booking.updated', 'bk_1', convert_to(repeat('x', size), 'UTF8'), at
			from unnest($1::int[]) with ordinality s(size, n), lateral (select now() - interval '1 hour' + n * interval '1 ms') x(at)
			order by n returning id`, sizes)
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

// A read of the log ends by bytes where it does not end by rows, a larger event comes alone, nothing is passed by, and
// the server sends what is shown and no more.
func TestEventsBehindEndsByBytes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	ctx := pgtest.Ctx(t, caller.Live)
	const rows, most = 4, 2*largest + 10
	sizes := []int{1, 2, 3, 4, 5, largest, largest, 10, 1, largest, largest, 11, most + 1, 1, most, most, 1}
	want := logged(t, db, ctx, sizes)
	var got []ids.Event
	var reads []int
	for r := (store.EventRange{Types: []string{"booking.updated"}, MaxRows: rows, MaxBytes: most}); ; {
		list, more, err := store.EventsBehind(ctx, db.App.ReadSettled(ctx), r)
		if err != nil {
			t.Fatal(err)
		}
		sent := explain(t, db, ctx, "auto", func(ctx context.Context, q pg.Q) error {
			_, _, err := store.EventsBehind(ctx, q, r)
			return err
		}).sent
		if int(sent) != len(list) {
			t.Errorf("the server sends %.0f rows for %d", sent, len(list))
		}
		for _, e := range list {
			got = append(got, e.ID)
			r.After = store.Cursor{At: e.UpdatedAt, ID: e.ID}
		}
		reads = append(reads, len(list))
		if last := len(got) == len(want); more == last {
			t.Errorf("behind %d of %d: more %v", len(got), len(want), more)
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
