package page_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// Read keeps no more rows than a page can show, and at least one.
func TestReadEndsByBytes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, fstest.MapFS{"00001_none.sql": {Data: []byte("-- +goose Up\n")}})
	ctx := pgtest.Ctx(t, caller.Test)
	for name, tc := range map[string]struct {
		rows, bytes, limit int
		items              int
		more               bool
	}{
		"none":                    {0, 1, 100, 0, false},
		"all":                     {100, 10, 100, 100, false},
		"one more than the limit": {101, 10, 100, 100, true},
		"large ones":              {101, 600_000, 100, 7, true}, // the seventh exceeds 4 MiB
		"large, but all":          {7, 600_000, 100, 7, false},
		"one that is very large":  {2, 5 << 20, 100, 1, true},
	} {
		q := db.App.Read(ctx)
		got, err := page.Read(ctx, q, page.Request{Limit: tc.limit}, pgx.RowTo[string],
			`select repeat('x', $2) from generate_series(1, $1)`, tc.rows, tc.bytes)
		if err != nil || len(got.Items) != tc.items || got.More != tc.more {
			t.Errorf("%s: %d rows, more %v, %v", name, len(got.Items), got.More, err)
		}
		if again, err := page.Read(ctx, q, page.Request{Limit: 1}, pgx.RowTo[string], `select 'x'`); err != nil || len(again.Items) != 1 {
			t.Errorf("%s: the connection is not usable afterwards: %v", name, err)
		}
	}
	if _, err := page.Read(ctx, db.App.Read(ctx), page.Request{Limit: 1}, pgx.RowTo[int], `select 1 / (2 - n) from generate_series(1, 2) n`); err == nil {
		t.Error("a late error is lost")
	}
}

// A page ends before it exceeds MaxBytes, to the byte, and has at least one row.
func TestFitEndsByBytes(t *testing.T) {
	t.Parallel()
	text := func(bytes int) string { return strings.Repeat("x", bytes-2) } // and its quotes
	for name, tc := range map[string]struct {
		items []string
		more  bool
		want  int
		next  bool
	}{
		"none":            {nil, false, 0, false},
		"exactly":         {[]string{text(page.MaxBytes - 10), text(10)}, false, 2, false},
		"exactly, others": {[]string{text(page.MaxBytes - 10), text(10)}, true, 2, true},
		"a byte more":     {[]string{text(page.MaxBytes - 10), text(11), text(2)}, false, 1, true},
		"the first alone": {[]string{text(page.MaxBytes + 1), text(2)}, false, 1, true},
		"only it":         {[]string{text(page.MaxBytes + 1)}, false, 1, false},
	} {
		data, more, err := page.Fit(page.Rows[string]{Items: tc.items, More: tc.more}, func(s string) string { return s })
		if err != nil || len(data) != tc.want || more != tc.next {
			t.Errorf("%s: %d rows, more %v, %v", name, len(data), more, err)
		}
	}
}
