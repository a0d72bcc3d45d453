package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Payments records the payments of bookings from the events of invoices.
type Payments struct {
	Bookings *Bookings
	Log      *slog.Logger
}

// ApplyInvoice applies an event about an invoice once, even if it is delivered repeatedly. It adds the invoice's payments to the
// known ones by their ids, so the order of events does not affect the sum. The context carries the event's tenant and mode.
func (a *Payments) ApplyInvoice(ctx context.Context, event ids.Event, in domain.Invoice) error {
	return a.once(ctx, event, func(ctx context.Context, tx pg.Tx) error {
		if in.Booking.IsZero() {
			_, err := store.PutInvoice(ctx, tx, in, "")
			return err
		}
		return a.apply(ctx, tx, in.Booking, "invoice "+in.ID, func(currency string, _ bool) (domain.Received, error) {
			return store.PutInvoice(ctx, tx, in, currency)
		})
	})
}

// ApplyGateway applies an event about a payment at the gateway once, even if it is delivered repeatedly. It never replaces a state
// by an older one.
func (a *Payments) ApplyGateway(ctx context.Context, event ids.Event, p domain.GatewayPayment) error {
	return a.once(ctx, event, func(ctx context.Context, tx pg.Tx) error {
		return a.apply(ctx, tx, p.Booking, "payment "+p.ID, func(currency string, lost bool) (domain.Received, error) {
			p.Late = lost
			return store.PutGatewayPayment(ctx, tx, p, currency)
		})
	})
}

// ApplyManualRefund applies an event about a refund outside the gateway once, even if it is delivered repeatedly. The refund never
// changes.
func (a *Payments) ApplyManualRefund(ctx context.Context, event ids.Event, r domain.ManualRefund) error {
	return a.once(ctx, event, func(ctx context.Context, tx pg.Tx) error {
		return a.apply(ctx, tx, r.Booking, "credit note "+r.ID, func(currency string, _ bool) (domain.Received, error) {
			return store.PutManualRefund(ctx, tx, r, currency)
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

// apply locks the booking, writes its payments with put, and updates its amounts. The argument of put is whether the booking is
// canceled or expired.
func (a *Payments) apply(
	ctx context.Context, tx pg.Tx, booking domain.BookingID, of string, put func(currency string, lost bool) (domain.Received, error),
) error {
	current, clock, ok, err := store.LockDue(ctx, tx, booking, true)
	switch {
	case err != nil:
		return err
	case current.ID.IsZero():
		a.Log.WarnContext(ctx, "payment of an unknown booking", slog.String("of", of), slog.String("booking", booking.String()))
		return nil
	case !ok:
		return errMoved
	}
	now := clock.Now(a.Bookings.Now()).UTC().Truncate(time.Microsecond)
	status := current.At(now).Status
	got, err := put(current.Total.Currency, status == domain.Cancelled || status == domain.Expired)
	if err != nil || got == current.Received() {
		return err
	}
	return a.Bookings.receive(ctx, tx, booking, got, now)
}

// receive writes the amounts received for the booking, with its event. It reads the booking again, with the invoice among its
// invoices. If its hold has lapsed, the booking expires first, as before any other write.
func (a *Bookings) receive(ctx context.Context, tx pg.Tx, id domain.BookingID, got domain.Received, now time.Time) error {
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
	_, err = a.save(ctx, tx, next, nil, previous, now)
	return err
}
