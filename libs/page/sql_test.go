package page_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// For a bounded list the server sends the rows that Read keeps, in the list's order, and one more, so that Read can report whether
// others follow.
func TestBoundedListEndsAtTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, fstest.MapFS{"00001_none.sql": {Data: []byte("-- +goose Up\n")}})
	ctx := pgtest.Ctx(t, caller.Test)
	for name, tc := range map[string]struct {
		rows, bytes      int
		retained, beyond int
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
		if len(sent) != tc.retained+tc.beyond {
			t.Errorf("%s: %d rows are sent, want %d", name, len(sent), tc.retained+tc.beyond)
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
		if err != nil || len(got.Items) != tc.retained || got.More != (tc.beyond > 0) {
			t.Errorf("%s: %d rows are stored, more %v, %v", name, len(got.Items), got.More, err)
		}
	}
}

// A list of alternatives is one statement, in which each alternative has its own order and limit and is read once.
func TestUnion(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, fstest.MapFS{"00001_none.sql": {Data: []byte("-- +goose Up\n")}})
	ctx := pgtest.Ctx(t, caller.Test)
	list := func(r page.Request, alternatives []page.Alternative) []int {
		t.Helper()
		sql, args := page.Union(r, alternatives, func(w *page.Where) (string, []any) {
			w.Add(`l.n <> ?`, 5)
			tail, args := w.Page(r, "l")
			return `select l.n, l.created_at, l.updated_at, l.sort_week, l.id from (
				select n, n % 3 || '' as state, n as id, timestamptz '2020-01-01' + n * interval '1 s' as created_at,
				       timestamptz '2020-01-01' + (n % 7) * interval '1 s' as sort_week,
				       timestamptz '2020-01-01' - n * interval '1 s' as updated_at
				from generate_series(1, 30) n) l ` + tail, args
		})
		rows, err := r.Reader(ctx, db.App).Query(ctx, `select n from (`+sql+`) all_of_them`, args...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	r := page.Request{Limit: 3}
	for name, tc := range map[string]struct {
		alternatives []page.Alternative
		updated      bool
		by           string
		want         []int
	}{
		"all":              {nil, false, "", []int{30, 29, 28, 27}},
		"one":              {page.OneOf("l.state", []string{"1"}), false, "", []int{28, 25, 22, 19}},
		"two":              {page.OneOf("l.state", []string{"1", "0"}), false, "", []int{30, 28, 27, 25}},
		"one, named twice": {page.OneOf("l.state", []string{"1", "1"}), false, "", []int{28, 25, 22, 19}},
		"of two columns":   {[]page.Alternative{page.When(`l.state = ? and l.n < ?`, "2", 9), page.When(`l.n = 30`)}, false, "", []int{30, 8, 2}},
		"by change":        {page.OneOf("l.state", []string{"1", "0"}), true, "", []int{30, 28, 27, 25}},
		"by week":          {nil, false, "week", []int{7, 14, 21, 28}},
		"by week, two":     {page.OneOf("l.state", []string{"1", "0"}), false, "week", []int{7, 21, 28, 1}},
	} {
		r.Updated, r.By = tc.updated, tc.by
		if got := list(r, tc.alternatives); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A list contains as many rows as have bodies, and reports whether others follow.
func TestShow(t *testing.T) {
	t.Parallel()
	place := func(n int) page.SortKey { return page.SortKey{ID: [16]byte{byte(n)}} }
	for _, tc := range []struct {
		bodies     []string
		more, want bool
	}{{[]string{"a", "b"}, false, false}, {[]string{"a", "b"}, true, true}, {[]string{"a"}, false, true}} {
		got := page.Show(page.Rows[int]{Items: []int{1, 2}, More: tc.more}, tc.bodies, place)
		if len(got.Items) != len(tc.bodies) || got.More != tc.want || got.Items[0] != (page.Shown[string]{Key: place(1), Body: "a"}) {
			t.Errorf("%+v of %v", got, tc)
		}
	}
}
