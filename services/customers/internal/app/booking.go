package app

import (
	"context"
	"errors"
	"fmt"

	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// BookingProjection is this service's copy of bookings.
type BookingProjection struct{ Worker *pg.DB }

// BookingEvent is the state of a booking in an event.
type BookingEvent struct {
	inbox.Event
	Booking domain.Booking
}

// ApplyEvents applies events about bookings of any tenants, all or none. It never replaces a state by an older one. Because
// versions decide, a repeated event changes nothing.
func (a *BookingProjection) ApplyEvents(ctx context.Context, list []BookingEvent) error {
	if len(list) == 0 {
		return nil
	}
	events, newest := make([]inbox.Event, len(list)), map[store.BookingKey]domain.Booking{}
	for i, e := range list {
		events[i] = e.Event
		key := store.BookingKey{Tenant: e.Tenant, Livemode: e.Livemode, ID: e.Booking.ID}
		if known, ok := newest[key]; !ok || known.Version < e.Booking.Version {
			newest[key] = e.Booking
		}
	}
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := store.PutBookings(ctx, tx, newest); err != nil { // before the inbox: no two batches may lock its rows in different orders
			return err
		}
		_, err := inbox.OnceEach(ctx, tx, consumer, events)
		return err
	})
	if err != nil {
		return fmt.Errorf("apply events of %d bookings: %w", len(newest), err)
	}
	return nil
}

// lookup is the response of bookings about a booking, requested before a transaction. Its error is returned inside the transaction,
// after the lookup of the idempotency record: an earlier success with the same key takes precedence.
type lookup struct {
	done    bool
	booking *domain.Booking // nil: there is none
	err     error
}

// lookUp requests a booking from bookings.
func lookUp(ctx context.Context, bookings BookingService, id domain.BookingID) lookup {
	if id.IsZero() {
		return lookup{done: true}
	}
	b, err := bookings.Booking(ctx, id)
	if errors.Is(err, domain.ErrBookingNotFound) {
		return lookup{done: true}
	}
	return lookup{done: true, booking: &b, err: err}
}

// booking returns the booking with an id, or nil if there is none. It locks the booking of a balance. If the projection lacks the
// booking, it requests it from bookings once and writes the result into the projection.
func (w *InvoiceWrite) booking(ctx context.Context, tx pg.Tx, id domain.BookingID) (*domain.Booking, error) {
	if id.IsZero() {
		return nil, nil
	}
	found := w.found
	if found.err != nil {
		return nil, found.err
	}
	if found.booking != nil {
		store.PutBooking(tx, *found.booking)
	}
	read := func() (domain.Booking, error) { return store.Booking(ctx, tx, id) }
	if w.MakesBalance() {
		read = func() (domain.Booking, error) { return store.BookingForUpdate(ctx, tx, id) }
	}
	b, err := read()
	if errors.Is(err, domain.ErrBookingNotFound) {
		if found.done {
			return nil, nil
		}
		return nil, w.again(id)
	}
	if err != nil || found.booking == nil {
		return &b, err
	}
	if found.booking.Version < b.Version { // it has changed since
		return nil, w.again(id)
	}
	b.Number, b.Package, b.Guests, b.Price = found.booking.Number, found.booking.Package, found.booking.Guests, found.booking.Price
	return &b, nil
}

// again returns the error that requests a booking from bookings, and repeats the transaction with the response.
func (w *InvoiceWrite) again(id domain.BookingID) error {
	return &operation.Again{Why: "booking " + id.String() + " is not in the projection", Fetch: func(ctx context.Context) error {
		w.found = lookUp(ctx, w.bookings, id)
		return nil
	}}
}
