package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// Payments keeps what has been paid of bookings, by the events of invoices.
type Payments struct {
	Bookings *Bookings
	Log      *slog.Logger
}

// ApplyEvent takes one event about an invoice, once however often it comes. Its payments are added to those that are known,
// each by its id, so that late events and events in another order come to the same sum. The context carries the event's
// tenant and mode.
func (a *Payments) ApplyEvent(ctx context.Context, event ids.Event, in domain.Invoice) error {
	err := errMoved
	for try := 0; errors.Is(err, errMoved) && try < maxMoves; try++ {
		err = a.Bookings.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			first, err := inbox.Once(ctx, tx, consumer, event)
			if err != nil || !first {
				return err
			}
			return a.apply(ctx, tx, in)
		})
	}
	if errors.Is(err, errMoved) {
		err = apperr.ErrUnavailable.WithCause(err)
	}
	if err != nil {
		return fmt.Errorf("learn invoice: %w", err)
	}
	return nil
}

func (a *Payments) apply(ctx context.Context, tx pg.Tx, in domain.Invoice) error {
	if in.Booking.IsZero() {
		_, err := store.PutInvoice(ctx, tx, in, "")
		return err
	}
	current, clock, ok, err := store.LockDue(ctx, tx, in.Booking, true)
	switch {
	case err != nil:
		return err
	case current.ID.IsZero():
		a.Log.WarnContext(ctx, "invoice of an unknown booking", slog.String("invoice", in.ID), slog.String("booking", in.Booking.String()))
		return nil
	case !ok:
		return errMoved
	}
	paid, err := store.PutInvoice(ctx, tx, in, current.Total.Currency)
	if err != nil || paid == current.Paid.Minor {
		return err
	}
	return a.Bookings.receive(ctx, tx, in.Booking, paid, clock.Now(a.Bookings.Now()).UTC().Truncate(time.Microsecond))
}

// receive writes what the booking has been paid, with its event. The booking is read anew, with the invoice among its own; a
// hold that has run out expires first, as before any other write.
func (a *Bookings) receive(ctx context.Context, tx pg.Tx, id domain.BookingID, paid int64, now time.Time) error {
	current, err := store.Booking(ctx, tx, id)
	if err != nil {
		return err
	}
	if current.Lapsed(now) {
		if current, err = a.expire(ctx, tx, current, now); err != nil {
			return err
		}
	}
	wanted, err := current.Receive(paid, now)
	if err != nil {
		return err
	}
	previous, err := diff(ctx, current, wanted)
	if err != nil {
		return err
	}
	_, err = a.save(ctx, tx, wanted, nil, previous, now)
	return err
}
