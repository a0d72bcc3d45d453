package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// quotesAtOnce is how many quotes a worker looks up at once.
const quotesAtOnce = 100

// QuoteExpiry writes what every reader already sees of quotes that have expired, so that their events come without anybody
// asking. Any number of processes may run it at once.
type QuoteExpiry struct {
	Quotes *Quotes
	Worker *pg.DB // worker role: finds what is due
	Log    *slog.Logger

	failing operation.Failing
}

// Run expires what is due of all tenants, each quote in a transaction of its own. One that fails holds up no other.
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
	a.failing.Report(a.Log, "quotes that do not expire")(ctx, len(failed), failed)
	return nil
}

// expire expires one quote, unless another transaction has it.
func (a *QuoteExpiry) expire(ctx context.Context, id domain.QuoteID) error {
	_, err := a.Quotes.expireDue(ctx, id, store.LockFreeQuote)
	return err
}

// ExpireDue notes the caller's test clock, expires some of the caller's quotes that are due by it, and reports whether more may
// be due. It waits for transactions that hold one of them. One that fails holds up no other of them, and is returned in the end.
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

// expireDue expires one quote, unless it has not lapsed by its tenant's own time, or not any more; then it returns false.
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

// QuoteCompleter resumes the accepts that a process has left behind: the quote is accepted then, or plainly sent again. Any
// number of processes may run it at once.
type QuoteCompleter struct {
	Quotes     *Quotes
	Operations operation.Runner
	Worker     *pg.DB // worker role: finds what is left
	Log        *slog.Logger

	failing operation.Failing
}

// Run resumes what is left of all tenants. One that fails is tried again after a while that doubles.
func (a *QuoteCompleter) Run(ctx context.Context) error {
	left := operation.Workers[store.QuoteLeft]{
		Service: "customers", DB: a.Worker, Now: a.Quotes.Now, Find: store.QuotesLeft,
		Home: func(row store.QuoteLeft) operation.Home { return row.Home },
		Do: func(ctx context.Context, row store.QuoteLeft) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("quote %s: %w", row.ID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "accepts of quotes that cannot be completed"),
	}
	return left.Run(ctx)
}

// complete makes the next attempt at one accept.
func (a *QuoteCompleter) complete(ctx context.Context, id domain.QuoteID) error {
	return operation.Resume(ctx, a.Operations, &leftAccept{accept: accept{Quotes: a.Quotes, id: id, quote: domain.Quote{ID: id}}})
}

// Unfinished measures how many accepts and conversions wait for a completer and since when, so that an alert can tell.
type Unfinished struct {
	Worker *pg.DB // worker role: counts them
	Now    func() time.Time

	count, age *prometheus.GaugeVec
}

// NewUnfinished makes the metrics and registers them.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *Unfinished {
	a := &Unfinished{Worker: worker, Now: now, count: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished", Help: "Accepts of quotes and conversions of leads whose first process has left them, by resource.",
	}, []string{"resource"}), age: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished_oldest_seconds", Help: "Age of the oldest of chain_unfinished, from its first attempt; 0 when there is none.",
	}, []string{"resource"})}
	reg.MustRegister(a.count, a.age)
	return a
}

// Run counts them once.
func (a *Unfinished) Run(ctx context.Context) error {
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		for resource, measure := range map[string]func(ctx context.Context, tx pg.Tx, real time.Time) (store.Unfinished, error){
			"quote": store.UnfinishedAccepts, "lead": store.UnfinishedConversions,
		} {
			left, err := measure(ctx, tx, a.Now())
			if err != nil {
				return fmt.Errorf("count unfinished accepts and conversions: %w", err)
			}
			a.count.WithLabelValues(resource).Set(float64(left.Count))
			a.age.WithLabelValues(resource).Set(left.Age)
		}
		return nil
	})
}
