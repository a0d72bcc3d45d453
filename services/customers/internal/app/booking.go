package app

import (
	"context"
	"errors"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// BookingProjection is what is known here of bookings.
type BookingProjection struct{ DB *pg.DB }

// ApplyEvent takes one event about a booking, once however often it comes, and never an older state than is known. The
// context carries the event's tenant and mode.
func (a *BookingProjection) ApplyEvent(ctx context.Context, event ids.Event, b domain.Booking) error {
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		return store.PutBooking(ctx, tx, b)
	})
	if err != nil {
		return fmt.Errorf("learn booking: %w", err)
	}
	return nil
}

// lookup is what bookings has answered about a booking before a transaction. Its error is answered inside the transaction,
// after the look at the idempotency record: an earlier success with the same key outranks it.
type lookup struct {
	asked   bool
	booking *domain.Booking // nil: there is none
	err     error
}

// lookUp asks bookings for a booking.
func lookUp(ctx context.Context, bookings BookingService, id domain.BookingID) lookup {
	if id.IsZero() {
		return lookup{asked: true}
	}
	b, err := bookings.Booking(ctx, id)
	if errors.Is(err, domain.ErrBookingNotFound) {
		return lookup{asked: true}
	}
	return lookup{asked: true, booking: &b, err: err}
}

// unknownBooking is a booking that is not in the projection: the transaction ends, bookings is asked, and the write begins
// anew.
type unknownBooking struct{ id domain.BookingID }

// Error implements error.
func (u unknownBooking) Error() string {
	return "booking " + u.id.String() + " is not in the projection"
}

// withBooking runs write, and once more after it has asked for a booking that write did not know.
func withBooking(ctx context.Context, bookings BookingService, first lookup, write func(found lookup) error) error {
	err := write(first)
	var unknown unknownBooking
	if !errors.As(err, &unknown) {
		return err
	}
	return write(lookUp(ctx, bookings, unknown.id))
}

// knownBooking returns the booking of an id, nil when there is none. What was looked up is written into the projection.
func knownBooking(ctx context.Context, tx pg.Tx, id domain.BookingID, found lookup, lock bool) (*domain.Booking, error) {
	if id.IsZero() {
		return nil, nil
	}
	if found.err != nil {
		return nil, found.err
	}
	if found.booking != nil {
		if err := store.PutBooking(ctx, tx, *found.booking); err != nil {
			return nil, err
		}
	}
	read := func() (domain.Booking, error) { return store.Booking(ctx, tx, id) }
	if lock {
		read = func() (domain.Booking, error) { return store.BookingForUpdate(ctx, tx, id) }
	}
	b, err := read()
	if errors.Is(err, domain.ErrBookingNotFound) {
		if !found.asked {
			return nil, unknownBooking{id}
		}
		return nil, nil
	}
	if found.booking != nil {
		b.Number = found.booking.Number
	}
	return &b, err
}
