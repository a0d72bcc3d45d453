package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

const (
	cancelAtOnce = 20               // intents of one booking that one step cancels in parallel
	lostLease    = 60 * time.Second // longer than a step takes
)

// Canceler cancels the open intents of canceled or expired bookings, so that payers can no longer pay them. If a payment succeeds
// before, it stays and is shown. Any number of processes may run Canceler at the same time.
type Canceler struct {
	Intents *Intents
	Worker  *pg.DB // worker role: finds due bookings
	Log     *slog.Logger

	failing operation.Failing
}

// errOpen reports that a booking has more intents to cancel.
var errOpen = errors.New("intents of the booking are still open")

// Run cancels due intents of all tenants. It retries a booking later if that fails.
func (a *Canceler) Run(ctx context.Context) error {
	due := operation.Workers[store.DueBooking]{
		Service: "payments",
		DB:      a.Worker, Now: a.Intents.Now, Find: store.Cancellations.Find(), Owner: func(row store.DueBooking) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.DueBooking) error {
			if err := a.step(ctx, row.BookingID); err != nil {
				return fmt.Errorf("booking %s: %w", row.BookingID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "payment intents of cancelled bookings not canceled yet"),
	}
	if err := due.Run(ctx); err != nil {
		return fmt.Errorf("bookings whose intents are to be cancelled: %w", err)
	}
	return nil
}

// step cancels the next open intents of a booking. If that fails, or more intents are open, the booking stays due for a later step.
func (a *Canceler) step(ctx context.Context, booking domain.BookingID) error {
	var tries int
	now := a.Intents.Now()
	err := a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
		tries, err = store.Cancellations.Take(ctx, tx, booking, now, now.Add(lostLease))
		return err
	})
	if err != nil || tries == 0 {
		return err
	}
	err = a.cancel(ctx, booking)
	saved := a.Intents.endStep(ctx, store.Cancellations, booking, tries, err)
	if errors.Is(err, errOpen) {
		err = nil
	}
	return errors.Join(err, saved)
}

// endStep ends a booking if the step had no error and no intent is left. Otherwise, the booking is due again later.
func (a *Intents) endStep(ctx context.Context, list store.DueBookings, booking domain.BookingID, tries int, err error) error {
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err == nil {
			if ended, err := list.End(ctx, tx, booking); ended || err != nil {
				return err
			}
		}
		now := a.Now()
		return list.Postpone(ctx, tx, booking, *later(now, domain.Event{Tries: tries}.Again(now)))
	})
}

// cancel cancels the next open intents of a booking. An intent that is being created counts as open until its call has ended.
func (a *Canceler) cancel(ctx context.Context, booking domain.BookingID) error {
	list, err := store.OpenIntents(ctx, a.Intents.DB.Read(ctx), booking, cancelAtOnce)
	if err != nil {
		return err
	}
	failed := make([]error, len(list)+1)
	var all sync.WaitGroup
	for i, p := range list {
		if p.Status == domain.Creating {
			failed[i] = errOpen
			continue
		}
		all.Go(func() {
			if err := operation.Recovered(func() error { return a.Intents.cancelFor(ctx, p) }); err != nil {
				failed[i] = fmt.Errorf("%s: %w", p.GatewayID, err)
			}
		})
	}
	all.Wait()
	if len(list) == cancelAtOnce {
		failed[len(list)] = errOpen
	}
	return errors.Join(failed...)
}

// cancelFor cancels an intent at the gateway for the platform itself. If the gateway refuses, its state decides.
func (a *Intents) cancelFor(ctx context.Context, p domain.Intent) error {
	account, err := a.Accounts.Account(ctx, a.DB.Read(ctx), p.AccountID)
	if err != nil {
		return err
	}
	snapshot, err := a.Gateway.Cancel(ctx, account, p)
	var refused *domain.RefusedError
	if errors.As(err, &refused) {
		_, err = a.Refresh(ctx, account, p)
		return err
	}
	if err != nil {
		return err
	}
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		_, err := a.applyResponse(ctx, tx, p.ID, snapshot)
		return err
	})
}
