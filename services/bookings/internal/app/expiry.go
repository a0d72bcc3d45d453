package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// dueBatch is how many lapsed holds are looked up at once.
const dueBatch = 100

// Expiry writes what every reader already sees of lapsed holds, so that their events come without anybody
// asking. Any number of processes may run it at once.
type Expiry struct {
	Bookings *Bookings
	Worker   *pg.DB // worker role: finds what is due
	Log      *slog.Logger

	failing operation.Failing
}

// Run expires what is due of all tenants, each hold in a transaction of its own. One that fails holds up no
// other and is tried again with the next run.
func (a *Expiry) Run(ctx context.Context) error {
	var failed []error
	err := pages(func(after store.Due) (list []store.Due, err error) {
		err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
			list, err = store.AllDue(ctx, tx, a.Bookings.Now(), after, dueBatch)
			return err
		})
		return list, err
	}, func(due store.Due) error {
		own := caller.With(ctx, caller.Service("bookings", due.TenantID, caller.ModeOf(due.Livemode)))
		if err := a.Bookings.expireDue(own, due.ID, false); err != nil {
			failed = append(failed, fmt.Errorf("booking %s: %w", due.ID, err))
		}
		return ctx.Err()
	})
	a.failing.Report(a.Log, "holds that do not expire")(ctx, len(failed), failed)
	return err
}

// ExpireAll expires what is due of the caller's tenant and mode, and returns when all of it is done. It waits
// for transactions that hold one of them. One that fails holds up no other, and is returned in the end.
func (a *Bookings) ExpireAll(ctx context.Context) error {
	var failed error
	err := pages(func(after store.Due) ([]store.Due, error) {
		return store.TenantDue(ctx, a.DB.Read(ctx), a.Now(), after, dueBatch)
	}, func(due store.Due) error {
		err := a.expireDue(ctx, due.ID, true)
		if failed == nil && err != nil {
			failed = fmt.Errorf("booking %s: %w", due.ID, err)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return failed
}

// pages hands each row of each page to do, until a page is not full.
func pages(list func(after store.Due) ([]store.Due, error), do func(store.Due) error) error {
	var after store.Due
	for {
		found, err := list(after)
		if err != nil {
			return err
		}
		for _, after = range found {
			if err := do(after); err != nil {
				return err
			}
		}
		if len(found) < dueBatch {
			return nil
		}
	}
}

// expireDue expires one hold, unless it has not lapsed by its tenant's own time, or not any more.
func (a *Bookings) expireDue(ctx context.Context, id domain.BookingID, wait bool) error {
	return operation.RetryTx(ctx, a.DB, func(ctx context.Context, tx pg.Tx) error {
		b, clock, ok, err := store.LockDue(ctx, tx, id, wait)
		if err != nil {
			return err
		}
		now := clock.Now(a.Now()).UTC().Truncate(time.Microsecond)
		switch {
		case !ok && wait:
			return errMoved
		case !ok, !b.Lapsed(now):
			return nil
		}
		_, err = a.expire(ctx, tx, b, now)
		return err
	})
}
