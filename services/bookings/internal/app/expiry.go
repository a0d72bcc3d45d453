package app

import (
	"context"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// dueBatch is the number of lapsed holds that are read in one batch.
const dueBatch = 100

// Expiry writes the expiry of lapsed holds, which every reader already sees as expired, so that their events are sent even without
// a request. Any number of processes can run it at the same time.
type Expiry struct {
	Bookings *Bookings
	Worker   *pg.DB // worker role: finds due holds
	Log      *slog.Logger

	failing operation.Failing
}

// Run expires the due holds of all tenants, each in its own transaction. A hold that fails does not delay others, and is retried in
// the next run.
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
	a.failing.Report(a.Log, "due holds not expired yet")(ctx, len(failed), failed)
	return err
}

// ExpireAll expires the due holds of the caller's tenant and mode, and returns when all are done. It waits for transactions that
// have locked one of them. A hold that fails does not delay others, and its error is returned at the end.
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

// pages calls do for each row of each page until a page is not full.
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

// expireDue expires one hold, unless it has not lapsed by its tenant's own time.
func (a *Bookings) expireDue(ctx context.Context, id domain.BookingID, wait bool) error {
	return operation.RetryTx(ctx, a.DB, func(ctx context.Context, tx pg.Tx) error {
		b, clock, ok, err := store.LockDue(ctx, tx, id, wait)
		if err != nil {
			return err
		}
		ctx = underClock(ctx, clock)
		now := a.now(ctx)
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
