package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

func TestDownTellsADeadServerFromAnError(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, nil), pgtest.Ctx(t, caller.Test)
	in := func(ctx context.Context, sql string) error {
		return db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
	}
	_, refused := pgx.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	late, stop := context.WithTimeout(ctx, 50e6)
	defer stop()
	for name, tc := range map[string]struct {
		err  error
		down bool
	}{
		"terminated":     {in(ctx, `select pg_terminate_backend(pg_backend_pid())`), true},
		"refused":        {refused, true},
		"wrong table":    {in(ctx, `select from nowhere`), false},
		"plain":          {errors.New("plain"), false},
		"client is gone": {in(ended, `select 1`), false},
		"too slow":       {in(late, `select pg_sleep(5)`), false},
	} {
		if tc.err == nil || pg.Down(tc.err) != tc.down {
			t.Errorf("%s: down is not %v: %v", name, tc.down, tc.err)
		}
	}
}
