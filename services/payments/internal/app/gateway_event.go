package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// EventReader checks and reads the webhooks of the gateway.
type EventReader interface {
	ReadEvent(body []byte, signature string, secrets []domain.Secret) (domain.Event, error)
}

// Events stores the events that the gateway sends, and processes them. For each event, the intent must be read again.
type Events struct {
	Intents *Intents
	Refunds *Refunds
	Worker  *pg.DB // worker role: finds due events
	Reader  EventReader
	Log     *slog.Logger
	Wake    func()          // signals Run that an event has arrived
	Woken   <-chan struct{} // receives the signals of Wake; nil: Run finds events by polling

	failing operation.Failing
}

// Receive stores an event of an account. It returns when the event is committed and does nothing else, because the gateway waits
// for the response.
func (a *Events) Receive(ctx context.Context, account domain.AccountID, body []byte, signature string) error {
	tenant, mode, ok, err := store.OwnerOf(ctx, a.Intents.DB.Read(ctx), account)
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
	if e.Intent == "" { // about no payment, or nothing new
		return nil
	}
	e.AccountID = account
	err = a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		tx.AfterCommit(a.Wake)
		return store.ReceiveEvent(ctx, tx, e, now)
	})
	failpoint.Here("event.stored")
	return err
}

// Run processes due events of all tenants.
func (a *Events) Run(ctx context.Context) error {
	due := operation.Workers[store.EventDue]{
		Service: "payments",
		DB:      a.Worker, Now: a.Intents.Now, Find: store.EventsDue, Owner: func(row store.EventDue) operation.Owner { return row.Owner }, Woken: a.Woken,
		Do: func(ctx context.Context, row store.EventDue) error {
			if err := a.handle(ctx, row); err != nil {
				return fmt.Errorf("gateway events about %s: %w", row.Intent, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "gateway events not processed yet"),
	}
	if err := due.Run(ctx); err != nil {
		return fmt.Errorf("gateway events that are due: %w", err)
	}
	return nil
}

// eventsAtOnce limits how many events about one intent a single read processes.
const eventsAtOnce = 100

// handle processes the events about an intent by reading the intent once. If the read fails, the events stay due for a later time.
func (a *Events) handle(ctx context.Context, due store.EventDue) error {
	var taken store.Taken
	err := a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		now := a.Intents.Now()
		taken, err = a.Intents.Accounts.TakeEvents(ctx, tx, due, now, domain.EventLease(now), eventsAtOnce)
		return err
	})
	list := taken.Events
	if err != nil || len(list) == 0 {
		return err
	}
	save := func(ctx context.Context, tx pg.Tx) error {
		tx.AfterCommit(func() { a.Intents.Metrics.settle(list, a.Intents.Now()) })
		return store.SaveEvents(ctx, tx, due.AccountID, list)
	}
	unknown := taken.Intent == nil
	if !unknown {
		var saved bool
		if saved, err = a.refresh(ctx, taken, save); saved {
			return nil
		}
	}
	for i, e := range list {
		if unknown && err == nil {
			list[i] = awaited(e, a.Intents.Now())
		} else {
			list[i].DueAt = a.again(ctx, e, err)
		}
	}
	return errors.Join(err, a.Intents.DB.Tx(ctx, save))
}

// awaited returns an event whose intent is unknown. The event is retried for a while, and then dropped.
func awaited(e domain.Event, now time.Time) domain.Event {
	if e.Dropped = e.Foreign(now); !e.Dropped {
		e.DueAt = later(now, e.Again(now))
	}
	return e
}

// again returns when to retry an event whose intent could not be read because of cause. It returns nil for an event that is
// processed or given up.
func (a *Events) again(ctx context.Context, e domain.Event, cause error) *time.Time {
	now := a.Intents.Now()
	if cause == nil {
		return nil
	}
	var refused *domain.RefusedError
	if at := e.Retry(now, errors.As(cause, &refused) && refused.Unread); at != nil {
		return later(now, *at)
	}
	a.Log.ErrorContext(ctx, "gateway event abandoned", slog.String("event", e.ID), slog.String("type", e.Type),
		slog.String("account", e.AccountID.String()), slog.String("intent", string(e.Intent)), slog.Int("tries", e.Tries), slog.Any("error", cause))
	a.Intents.Metrics.eventGivenUp()
	return nil
}

// refresh reads an intent again, and its refunds if an event is about one. save ends the events. saved reports that save was
// committed together with the result of the read.
func (a *Events) refresh(ctx context.Context, taken store.Taken, save func(ctx context.Context, tx pg.Tx) error) (saved bool, err error) {
	account, err := taken.Account()
	if err != nil {
		return false, err
	}
	p := *taken.Intent
	var refunds []string
	ofRefund := false
	for _, e := range taken.Events {
		p.EverDisputed = p.EverDisputed || e.OfDispute()
		if e.OfRefund() {
			ofRefund, refunds = true, append(refunds, e.Refund)
		}
	}
	if ofRefund { // first, so that the amount of a failed refund is not mistaken for one that others refunded
		if err := a.Refunds.Refresh(ctx, account, p, refunds...); err != nil {
			return false, err
		}
	}
	_, err = a.Intents.read(ctx, account, p, save)
	return err == nil, err
}

// later adds jitter to a time, so that calls that failed at the same time are not retried at the same time.
func later(now, at time.Time) *time.Time {
	at = now.Add(jitter(at.Sub(now)))
	return &at
}

// Refresh reads an intent's state at the gateway and applies it, unless a read that began later was already applied.
func (a *Intents) Refresh(ctx context.Context, account domain.Account, p domain.Intent) (domain.Intent, error) {
	begun, err := a.beginRead(ctx, p.ID)
	if err != nil {
		return domain.Intent{}, err
	}
	begun.EverDisputed = begun.EverDisputed || p.EverDisputed
	return a.read(ctx, account, begun, nil)
}

// beginRead numbers a read of an intent, and of its refunds, before it begins.
func (a *Intents) beginRead(ctx context.Context, id domain.IntentID) (begun domain.Intent, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		begun, err = store.BeginRead(ctx, tx, id)
		return err
	})
	return begun, err
}

// maxPages is how many pages of an intent's charges and refunds one read covers. The next read covers the rest.
const maxPages = 1000

// errMorePages reports that an intent has more charges or refunds than one read covers.
var errMorePages = errors.New("the payment gateway has more charges or refunds of the intent")

// read completes a read that has begun, page by page, each page in its own call and transaction. If also is not nil, it runs in the
// transaction that applies the last page.
func (a *Intents) read(
	ctx context.Context, account domain.Account, begun domain.Intent, also func(ctx context.Context, tx pg.Tx) error,
) (p domain.Intent, err error) {
	for range maxPages {
		snapshot, err := a.Gateway.Read(ctx, account, begun)
		if err != nil {
			return domain.Intent{}, err
		}
		if !snapshot.More {
			return a.applyRead(ctx, begun, snapshot, also)
		}
		if _, err = a.applyRead(ctx, begun, snapshot, nil); err != nil {
			return domain.Intent{}, err
		}
		disputed := begun.EverDisputed
		if begun, err = a.beginRead(ctx, begun.ID); err != nil {
			return domain.Intent{}, err
		}
		begun.EverDisputed = begun.EverDisputed || disputed
	}
	return domain.Intent{}, errMorePages
}

// applyRead applies the result of a read, unless a read that began later was already applied.
func (a *Intents) applyRead(
	ctx context.Context, begun domain.Intent, snapshot domain.Snapshot, also func(ctx context.Context, tx pg.Tx) error,
) (p domain.Intent, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		p, err = store.IntentForUpdate(ctx, tx, begun.ID)
		if err == nil && p.Applied < begun.Reads {
			p, err = a.apply(ctx, tx, p, snapshot, func(p domain.Intent, snapshot domain.Snapshot, now time.Time) domain.Intent {
				return p.ApplyRead(snapshot, begun.Reads, now)
			})
		}
		if err != nil || also == nil {
			return err
		}
		return also(ctx, tx)
	})
	return p, err
}
