package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

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
	Wake    func() // tells Run that an event has come

	failing int
}

const (
	eventsAtOnce = 100 // looked up at once
	eventReaders = 16  // reads of the gateway at once
)

// Receive keeps an event of an account. It returns when the event is committed, and does nothing else: the gateway waits.
func (a *Events) Receive(ctx context.Context, account domain.AccountID, body []byte, signature string) error {
	tenant, mode, ok, err := store.Home(ctx, a.Intents.DB.Read(ctx), account)
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
	for full := true; full && ctx.Err() == nil; {
		var found []store.EventDue
		err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = store.EventsDue(ctx, tx, a.Intents.Now(), eventsAtOnce)
			return err
		})
		if err != nil {
			return fmt.Errorf("gateway events that are due: %w", err)
		}
		failed := make([]error, len(found))
		var readers errgroup.Group
		readers.SetLimit(eventReaders)
		for i, due := range found {
			readers.Go(func() error {
				if err := a.handle(caller.With(ctx, caller.Service("payments", due.TenantID, modeOf(due.Livemode))), due); err != nil {
					failed[i] = fmt.Errorf("gateway event %s: %w", due.ID, err)
				}
				return nil
			})
		}
		_ = readers.Wait() // no reader returns an error
		a.report(ctx, errors.Join(failed...))
		full = len(found) == eventsAtOnce
	}
	return nil
}

func (a *Events) report(ctx context.Context, failed error) {
	count := 0
	if failed != nil {
		count = 1
	}
	if count != a.failing && ctx.Err() == nil {
		a.Log.WarnContext(ctx, "gateway events that are not worked off", slog.Any("error", failed))
	}
	a.failing = count
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
	if err != nil {
		at := e.Again(a.Intents.Now())
		again = &at
	}
	if errors.Is(err, domain.ErrIntentNotFound) {
		if err = nil; e.Hopeless() {
			again = nil
		}
	}
	return errors.Join(err, a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.SaveEvent(ctx, tx, *e, again) }))
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
	if _, err = a.Intents.Refresh(ctx, account, p); err != nil || !e.OfRefund() {
		return err
	}
	return a.Refunds.Refresh(ctx, account, p, e.Refund)
}
