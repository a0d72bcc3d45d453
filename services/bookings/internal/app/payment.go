package app

import (
	"context"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Payments applies what payments and customers report about the money of bookings. It is for display, and confirms bookings whose
// deposit is paid; all other decisions ask the owner.
type Payments struct {
	Bookings *Bookings
	Log      *slog.Logger
}

// ApplyInvoice applies an event about an invoice once, even if it is delivered repeatedly. It never replaces a state by an older one.
// The context carries the event's tenant and mode.
func (a *Payments) ApplyInvoice(ctx context.Context, event ids.Event, in domain.Invoice) error {
	return a.once(ctx, event, func(ctx context.Context, tx pg.Tx) error {
		if in.Booking.IsZero() {
			_, err := store.PutInvoice(ctx, tx, in, "")
			return err
		}
		return a.apply(ctx, tx, in.Booking, "invoice "+in.ID, func(b domain.Booking) (domain.Balance, error) {
			return withInvoices(b, func() (domain.InvoiceSums, error) { return store.PutInvoice(ctx, tx, in, b.Total.Currency) })
		})
	})
}

// withInvoices returns the balance of a booking with other sums of its invoices.
func withInvoices(b domain.Booking, put func() (domain.InvoiceSums, error)) (r domain.Balance, err error) {
	r = b.Balance()
	r.Invoices, err = put()
	return r, err
}

// ApplyAccount applies an event about an account once, even if it is delivered repeatedly. It never replaces a state by an older one.
func (a *Payments) ApplyAccount(ctx context.Context, event ids.Event, in domain.Account) error {
	return a.once(ctx, event, func(ctx context.Context, tx pg.Tx) error {
		return a.apply(ctx, tx, in.Booking, "account", func(b domain.Booking) (domain.Balance, error) {
			r := b.Balance()
			if in.Currency == b.Total.Currency {
				r = r.With(in)
			}
			return r, store.PutPayments(ctx, tx, in)
		})
	})
}

// once runs the effect of an event in a transaction with its inbox row. It repeats this if the booking has moved to another unit.
func (a *Payments) once(ctx context.Context, event ids.Event, effect func(ctx context.Context, tx pg.Tx) error) error {
	err := operation.RetryTx(ctx, a.Bookings.DB, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		return effect(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("apply event of payment: %w", err)
	}
	return nil
}

// apply locks the booking, writes a copy with put, and updates the booking to the balance that put returns.
func (a *Payments) apply(
	ctx context.Context, tx pg.Tx, booking domain.BookingID, of string, put func(domain.Booking) (domain.Balance, error),
) error {
	current, clock, ok, err := store.LockDue(ctx, tx, booking, true)
	switch {
	case err != nil:
		return err
	case current.ID.IsZero():
		a.Log.WarnContext(ctx, "payment of an unknown booking ignored", slog.String("of", of), slog.String("booking", booking.String()))
		return nil
	case !ok:
		return errMoved
	}
	got, err := put(current)
	if err != nil || got == current.Balance() {
		return err
	}
	return a.Bookings.receive(underClock(ctx, clock), tx, booking, got)
}

// receive writes the balance of the booking, with an event if a client can see the change. It reads the booking again, with the invoice
// among its invoices. If its hold has lapsed, the booking expires first, as before any other write.
func (a *Bookings) receive(ctx context.Context, tx pg.Tx, id domain.BookingID, got domain.Balance) error {
	now := a.now(ctx)
	current, err := store.Booking(ctx, tx, id)
	if err != nil {
		return err
	}
	if current.Lapsed(now) {
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return err
		}
	}
	next, err := current.Receive(got, now)
	if err != nil {
		return err
	}
	previous, err := outbox.Previous(ctx, view.Booking, current, next)
	if err != nil {
		return err
	}
	if string(previous) == "{}" {
		return store.UpdateBalance(ctx, tx, id, got)
	}
	_, err = a.save(ctx, tx, next, nil, previous, now)
	return err
}
