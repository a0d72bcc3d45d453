package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// With reads a row with the scanner of the shorter rows, and its last column into a variable.
func TestWith(t *testing.T) {
	t.Parallel()
	db, last := pgtest.New(t, notes), int64(0)
	got, err := pg.One(pgtest.Ctx(t, caller.Test), db.App.Read(pgtest.Ctx(t, caller.Test)), pg.With(pgx.RowTo[string], &last), nil, `select 'a', 7::bigint`)
	if err != nil || got != "a" || last != 7 {
		t.Errorf("%q, %d, %v", got, last, err)
	}
}
