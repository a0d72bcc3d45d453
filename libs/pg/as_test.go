package pg_test

import (
	"context"
	"errors"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// As writes for another tenant, under its policy, and what is queued afterwards is written for the own tenant, in the same
// transaction.
func TestAs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	own, other := pgtest.Ctx(t, caller.Live), pgtest.Ctx(t, caller.Test)
	refused := errors.New("refused")
	atCommit := func(ctx context.Context, tx pg.Tx) {
		c := caller.FromContext(ctx)
		tx.QueueAtCommit(`insert into notes values ($1, $2, 2, 'at the commit')`, c.Tenant, c.Live())
	}
	write := func(result error) error {
		return db.App.Tx(own, func(ctx context.Context, tx pg.Tx) error {
			err := pg.As(ctx, tx, caller.FromContext(other), func(ctx context.Context, tx pg.Tx) error {
				if err := insert(ctx, tx, 1, "now"); err != nil {
					return err
				}
				atCommit(ctx, tx)
				return result
			})
			atCommit(ctx, tx)
			return err
		})
	}
	rows := func() (mine, others int) {
		return len(bodies(t, own, db.App.Read(own))), len(bodies(t, other, db.App.Read(other)))
	}
	err := write(refused)
	if mine, others := rows(); !errors.Is(err, refused) || mine != 0 || others != 0 {
		t.Errorf("a refused change: %v, %d and %d rows", err, mine, others)
	}
	err = write(nil)
	if mine, others := rows(); err != nil || mine != 1 || others != 2 {
		t.Errorf("%v, %d and %d rows", err, mine, others)
	}
}
