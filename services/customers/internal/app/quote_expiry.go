package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// quotesAtOnce is how many quotes a worker looks up in one query.
const quotesAtOnce = 100

// QuoteExpiry writes the expiry of quotes that readers already see as expired, so that their events are emitted even if no client
// reads them. Any number of processes may run it at the same time.
type QuoteExpiry struct {
	Quotes *Quotes
	Worker *pg.DB // worker role: finds due quotes
	Log    *slog.Logger

	failing operation.Failing
}

// Run expires due quotes of all tenants, each in its own transaction. A quote that fails does not block the others.
func (a *QuoteExpiry) Run(ctx context.Context) error {
	var failed []error
	for after, full := (store.QuoteDue{}), true; full; {
		var due []store.QuoteDue
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			due, err = store.LapsedQuotes(ctx, tx, a.Quotes.Now(), after, quotesAtOnce)
			return err
		})
		if err != nil {
			return err
		}
		for _, after = range due {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := a.expire(caller.With(ctx, caller.Service("customers", after.TenantID, caller.ModeOf(after.Livemode))), after.ID); err != nil {
				failed = append(failed, fmt.Errorf("quote %s: %w", after.ID, err))
			}
		}
		full = len(due) == quotesAtOnce
	}
	a.failing.Report(a.Log, "due quotes not expired yet")(ctx, len(failed), failed)
	return nil
}

// expire expires one quote, unless another transaction has locked it.
func (a *QuoteExpiry) expire(ctx context.Context, id domain.QuoteID) error {
	_, err := a.Quotes.expireDue(ctx, id, store.LockFreeQuote)
	return err
}

// ExpireDue records the caller's test clock and expires some of the caller's quotes that are due by this clock. It reports whether
// more may be due. It waits for transactions that have locked one of these quotes. A quote that fails does not block the others;
// ExpireDue returns its error at the end.
func (a *Quotes) ExpireDue(ctx context.Context) (more bool, err error) {
	if caller.FromContext(ctx).Mode != caller.Test {
		return false, apperr.ErrMode
	}
	if err := a.DB.Tx(ctx, testclock.Save); err != nil {
		return false, err
	}
	due, err := store.LapsedQuotesOfTenant(ctx, a.DB.Read(ctx), a.now(ctx), quotesAtOnce)
	if err != nil {
		return false, err
	}
	progress, failed := false, error(nil)
	for _, id := range due {
		expired, err := a.expireDue(ctx, id, store.LockDueQuote)
		if ctx.Err() != nil {
			return false, err
		}
		if failed == nil && err != nil {
			failed = fmt.Errorf("quote %s: %w", id, err)
		}
		progress = progress || expired
	}
	return progress && len(due) == quotesAtOnce, failed
}

// expireDue expires one quote. It returns false if the quote has not lapsed by the time of its tenant, or is no longer due.
func (a *Quotes) expireDue(
	ctx context.Context, id domain.QuoteID,
	lock func(ctx context.Context, tx pg.Tx, id domain.QuoteID) (domain.Quote, testclock.Clock, bool, error),
) (expired bool, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		q, clock, ok, err := lock(ctx, tx, id)
		if err != nil || !ok {
			return err
		}
		now := clock.Now(a.Now()).UTC().Truncate(time.Microsecond)
		if expired = q.Lapsed(now); !expired {
			return nil
		}
		_, err = a.expire(ctx, tx, q, now)
		return err
	})
	return expired, err
}
