package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"

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

	failing int
}

// Run expires what is due of all tenants, each quote in a transaction of its own.
func (a *QuoteExpiry) Run(ctx context.Context) error {
	failed, err := eachQuote(ctx, a.Worker, a.Quotes.Now(), store.LapsedQuotes, a.expire)
	a.failing = report(ctx, a.Log, "quotes that do not expire", failed, a.failing)
	return err
}

// expire expires one quote, unless it has not lapsed by its tenant's own time, or not any more, or somebody else has it.
func (a *QuoteExpiry) expire(ctx context.Context, id domain.QuoteID) error {
	return a.Quotes.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		q, clock, ok, err := store.LockFreeQuote(ctx, tx, id)
		if err != nil || !ok {
			return err
		}
		now := clock.Now(a.Quotes.Now()).UTC().Truncate(time.Microsecond)
		if !q.Lapsed(now) {
			return nil
		}
		_, err = a.Quotes.expire(ctx, tx, q, now)
		return err
	})
}

// QuoteCompleter resumes the accepts that a process has left behind: the quote is accepted then, or plainly sent again. Any
// number of processes may run it at once.
type QuoteCompleter struct {
	Quotes *Quotes
	Worker *pg.DB // worker role: finds what is left
	Log    *slog.Logger

	failing int
}

// Run resumes what is left of all tenants. One that fails is tried again after a while that doubles.
func (a *QuoteCompleter) Run(ctx context.Context) error {
	failed, err := eachQuote(ctx, a.Worker, a.Quotes.Now(), store.QuotesLeft, a.complete)
	a.failing = report(ctx, a.Log, "accepts of quotes that cannot be completed", failed, a.failing)
	return err
}

// complete makes the next attempt at one accept. That bookings refuses it is an end too.
func (a *QuoteCompleter) complete(ctx context.Context, id domain.QuoteID) error {
	q, ok, err := a.resume(ctx, id)
	if err != nil || !ok {
		return err
	}
	c := caller.FromContext(ctx)
	acting, err := a.Quotes.Tenants.Acting(ctx, c.Tenant, c.Mode)
	if err != nil {
		return err
	}
	acting.RequestID = q.Accepting.Request
	ctx = caller.With(ctx, acting)
	info, err := a.Quotes.Tenants.Invoicing(ctx)
	if err != nil {
		return err
	}
	err = a.Quotes.bookQuote(ctx, func(ctx context.Context, write func(ctx context.Context, tx pg.Tx) (domain.Quote, error)) error {
		return a.Quotes.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := write(ctx, tx)
			return err
		})
	}, q, info)
	if refused(err) || errors.Is(err, errAccepting) {
		return nil
	}
	return err
}

// resume takes an accept whose process has had its time; false when it is not left behind any more, or somebody else has it.
func (a *QuoteCompleter) resume(ctx context.Context, id domain.QuoteID) (q domain.Quote, ok bool, err error) {
	err = a.Quotes.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		q, _, ok, err = store.LockFreeQuote(ctx, tx, id)
		if err != nil || !ok {
			return err
		}
		now := a.Quotes.Now()
		if ok = q.Accepting.UnderWay() && !now.Before(*q.Accepting.Next); !ok {
			return nil
		}
		q.Accepting = q.Accepting.Begin(now, "")
		return store.SaveAccepting(ctx, tx, q)
	})
	return q, ok, err
}

// eachQuote hands each quote that list finds to do, as this service in the quote's tenant and mode. One that fails holds up no
// other.
func eachQuote(
	ctx context.Context, worker *pg.DB, now time.Time,
	list func(ctx context.Context, tx pg.Tx, real time.Time, after store.QuoteDue, limit int) ([]store.QuoteDue, error),
	do func(ctx context.Context, id domain.QuoteID) error,
) (failed []error, err error) {
	for after, full := (store.QuoteDue{}), true; full && err == nil; {
		var found []store.QuoteDue
		err = worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = list(ctx, tx, now, after, quotesAtOnce)
			return err
		})
		for _, after = range found {
			if ctx.Err() != nil {
				return failed, ctx.Err()
			}
			if err := do(caller.With(ctx, caller.Service("customers", after.TenantID, modeOf(after))), after.ID); err != nil {
				failed = append(failed, fmt.Errorf("quote %s: %w", after.ID, err))
			}
		}
		full = len(found) == quotesAtOnce
	}
	return failed, err
}

func modeOf(due store.QuoteDue) caller.Mode {
	if due.Livemode {
		return caller.Live
	}
	return caller.Test
}

// report logs how many fail when that has changed, and returns it.
func report(ctx context.Context, log *slog.Logger, what string, failed []error, before int) int {
	if len(failed) != before && ctx.Err() == nil {
		log.WarnContext(ctx, what, slog.Int("count", len(failed)), slog.Any("error", errors.Join(failed...)))
	}
	return len(failed)
}

// Unfinished measures how many accepts and conversions wait for a completer, so that an alert can tell.
type Unfinished struct {
	Worker *pg.DB // worker role: counts them
	Now    func() time.Time

	gauge *prometheus.GaugeVec
}

// NewUnfinished makes the metric and registers it.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *Unfinished {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chain_unfinished", Help: "Accepts of quotes and conversions of leads whose first process has left them, by resource.",
	}, []string{"resource"})
	reg.MustRegister(g)
	return &Unfinished{Worker: worker, Now: now, gauge: g}
}

// Run counts them once.
func (a *Unfinished) Run(ctx context.Context) error {
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		quotes, leads, err := store.Unfinished(ctx, tx, a.Now())
		if err != nil {
			return fmt.Errorf("count unfinished accepts and conversions: %w", err)
		}
		a.gauge.WithLabelValues("quote").Set(float64(quotes))
		a.gauge.WithLabelValues("lead").Set(float64(leads))
		return nil
	})
}
