package app

import (
	"context"
	"fmt"
	"time"

	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// consumer is this service's name in the inbox.
const consumer = "payments"

// BookingProjection is this service's copy of bookings.
type BookingProjection struct {
	Worker *pg.DB
	Now    func() time.Time
}

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
	var lost []store.BookingKey
	for key, b := range newest {
		if b.Lost() {
			lost = append(lost, key)
		}
	}
	err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := store.PutBookings(ctx, tx, newest); err != nil { // before the inbox: no two batches may lock its rows in different orders
			return err
		}
		if len(lost) > 0 {
			if err := store.Cancellations.PutAll(ctx, tx, lost, a.Now()); err != nil {
				return err
			}
			if err := store.Settlements.PutAll(ctx, tx, lost, a.Now()); err != nil {
				return err
			}
		}
		_, err := inbox.OnceEach(ctx, tx, consumer, events)
		return err
	})
	if err != nil {
		return fmt.Errorf("apply events of %d bookings: %w", len(newest), err)
	}
	return nil
}
