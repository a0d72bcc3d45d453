package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// EventReader checks and reads the webhooks of the gateway.
type EventReader interface {
	ReadEvent(body []byte, signature string, secrets []domain.Secret) (domain.Event, error)
}

// Events keeps the events that the gateway sends, and works them off: each one says that an intent is to be read again.
type Events struct {
	Intents *Intents
	Refunds *Refunds
	Worker  *pg.DB // worker role: finds what is due
	Reader  EventReader
	Log     *slog.Logger
	Wake    func()          // tells Run that an event has come
	Woken   <-chan struct{} // what Wake has told; nil: Run finds it by looking

	failing failing
}

// Receive keeps an event of an account. It returns when the event is committed, and does nothing else: the gateway waits.
func (a *Events) Receive(ctx context.Context, account domain.AccountID, body []byte, signature string) error {
	tenant, mode, ok, err := store.HomeOf(ctx, a.Intents.DB.Read(ctx), account)
	if err != nil {
		return err
	}
	if !ok {
		return domain.ErrAccountNotFound
	}
	from := caller.Service("payments", tenant, mode)
	from.RequestID = caller.FromContext(ctx).RequestID
	ctx = caller.With(ctx, from)
	now := a.Intents.Now()
	secrets, err := a.Intents.Accounts.WebhookSecrets(ctx, a.Intents.DB.Read(ctx), account, now)
	if err != nil {
		return err
	}
	e, err := a.Reader.ReadEvent(body, signature, secrets)
	if err != nil {
		return err
	}
	e.AccountID = account
	return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		tx.AfterCommit(a.Wake)
		return store.PutEvent(ctx, tx, e, now)
	})
}

// Run works off what is due of all tenants.
func (a *Events) Run(ctx context.Context) error {
	due := workers[store.EventDue]{
		db: a.Worker, now: a.Intents.Now, find: store.EventsDue, home: func(row store.EventDue) store.Home { return row.Home }, woken: a.Woken,
		do: func(ctx context.Context, row store.EventDue) error {
			if err := a.handle(ctx, row); err != nil {
				return fmt.Errorf("gateway event %s: %w", row.ID, err)
			}
			return nil
		},
		report: a.failing.report(a.Log, "gateway events that are not worked off"),
	}
	if err := due.run(ctx); err != nil {
		return fmt.Errorf("gateway events that are due: %w", err)
	}
	return nil
}

// handle works off one event. It stays due, for later, when that fails.
func (a *Events) handle(ctx context.Context, due store.EventDue) error {
	var e *domain.Event
	err := a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		now := a.Intents.Now()
		e, err = store.TakeEvent(ctx, tx, due.AccountID, due.ID, now, domain.EventLease(now))
		return err
	})
	if err != nil || e == nil {
		return err
	}
	err = a.refresh(ctx, *e)
	var again *time.Time
	switch now := a.Intents.Now(); {
	case errors.Is(err, domain.ErrIntentNotFound):
		if err = nil; !e.Hopeless() {
			again = later(now, e.Again(now))
		}
	case err != nil:
		var refused *domain.RefusedError
		if at := e.Retry(now, errors.As(err, &refused) && refused.Unread); at != nil {
			again = later(now, *at)
		} else {
			a.Log.ErrorContext(ctx, "a gateway event is given up", slog.String("event", e.ID), slog.String("type", e.Type),
				slog.String("account", e.AccountID.String()), slog.String("intent", string(e.Intent)), slog.Int("tries", e.Tries), slog.Any("error", err))
			a.Intents.Metrics.eventGivenUp()
			err = nil
		}
	}
	return errors.Join(err, a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.SaveEvent(ctx, tx, *e, again) }))
}

// sweepAtOnce is how many events one statement deletes.
const sweepAtOnce = 1000

// Sweep deletes the events of all tenants that were worked off long ago.
func (a *Events) Sweep(ctx context.Context) error {
	for {
		var n int64
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			n, err = store.SweepEvents(ctx, tx, a.Intents.Now().Add(-domain.EventLifetime), sweepAtOnce)
			return err
		})
		if err != nil || n < sweepAtOnce {
			return err
		}
	}
}

// later is a time to which jitter is added, so that what failed together is not tried again together.
func later(now, at time.Time) *time.Time {
	at = now.Add(jitter(at.Sub(now)))
	return &at
}

// refresh reads the intent of an event again, and the refunds of it where the event is about one.
func (a *Events) refresh(ctx context.Context, e domain.Event) error {
	p, err := store.Intent(ctx, a.Intents.DB.Read(ctx), e.Intent)
	if err != nil {
		return err
	}
	account, err := a.Intents.Accounts.Account(ctx, a.Intents.DB.Read(ctx), p.AccountID)
	if err != nil {
		return err
	}
	p.EverDisputed = p.EverDisputed || e.OfDispute()
	if _, err = a.Intents.Refresh(ctx, account, p); err != nil || !e.OfRefund() {
		return err
	}
	return a.Refunds.Refresh(ctx, account, p, e.Refund)
}
