package page_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// For a bounded list the server sends the rows that Read keeps, in the list's order, and one more, so that Read knows
// whether others follow.
func TestBoundedListEndsAtTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, fstest.MapFS{"00001_none.sql": {Data: []byte("-- +goose Up\n")}})
	ctx := pgtest.Ctx(t, caller.Test)
	for name, tc := range map[string]struct {
		rows, bytes  int
		kept, beyond int
	}{
		"none":           {0, 1, 0, 0},
		"one":            {1, 5 << 20, 1, 0},
		"two":            {2, 5 << 20, 1, 1},
		"small ones":     {101, 10, 100, 1},
		"large ones":     {12, 600_000, 7, 1}, // the seventh passes 4 MiB
		"large, but all": {7, 600_000, 7, 0},
		"very large":     {3, 5 << 20, 1, 1},
	} {
		r := page.Request{Limit: 100}
		w := &page.Where{}
		tail, args := w.PageByID(r, "t")
		sql := w.Bounded(fmt.Sprintf(`select t.id, t.body from (select n as id, repeat('x', %d) as body from generate_series(1, %d) n) t `, tc.bytes, tc.rows)+tail,
			`t.id, t.body`, `octet_length(t.body)`)
		rows, err := db.App.Read(ctx).Query(ctx, sql, args...)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
			ID   int
			Body string
		}])
		if err != nil {
			t.Fatal(err)
		}
		if len(sent) != tc.kept+tc.beyond {
			t.Errorf("%s: %d rows are sent, want %d", name, len(sent), tc.kept+tc.beyond)
		}
		for i, row := range sent {
			if row.ID != tc.rows-i {
				t.Errorf("%s: row %d is %d", name, i, row.ID)
			}
		}
		got, err := page.Read(ctx, db.App.Read(ctx), r, pgx.RowToStructByPos[struct {
			ID   int
			Body string
		}], sql, args...)
		if err != nil || len(got.Items) != tc.kept || got.More != (tc.beyond > 0) {
			t.Errorf("%s: %d rows are kept, more %v, %v", name, len(got.Items), got.More, err)
		}
	}
}
