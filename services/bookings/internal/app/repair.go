package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/repair"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// Repair describes how this service agrees with the others again after a restore.
func Repair() repair.Service {
	return repair.Service{
		Name: "bookings", Copies: store.Copies,
		Kinds: []repair.Kind{
			{Prefix: "bk", Own: store.OwnBookings, Publish: publishBooking},
			{Prefix: "srv", Own: store.OwnServices, Publish: publishItem("services", "service.updated", store.Service, view.Service)},
			{Prefix: "un", Own: store.OwnUnits, Publish: publishItem("units", "unit.updated", store.Unit, view.Unit)},
			{Prefix: "pkg", Own: store.OwnPackages, Publish: publishItem("packages", "package.updated", store.Package, view.Package)},
		},
		Fixes:    []repair.Fix{{What: "counters of booking numbers raised above numbers that receivers have seen", SQL: store.RaiseNumbers}},
		Counters: map[string]string{"bookings": "booking_counters"},
		Forget: map[string]func(ctx context.Context, tx pg.Tx, id string) error{
			"cu": forgetCustomer, "inv": forgetInvoice, "ma": forgetAccount,
		},
	}
}

// publishBooking publishes the stored state of a booking.
func publishBooking(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
	var id domain.BookingID
	if err := id.Scan(key); err != nil {
		return err
	}
	if _, err := store.BookingForUpdate(ctx, tx, id); errors.Is(err, domain.ErrBookingNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if err := store.RaiseVersion(ctx, tx, "bookings", key, version); err != nil {
		return err
	}
	b, err := store.Booking(ctx, tx, id)
	if err != nil {
		return err
	}
	body, err := outbox.Body(ctx, view.Booking, b)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		events = []string{"booking.updated"}
	}
	for _, kind := range events {
		e := bookingCreated(b, body)
		e.Type = kind
		if err := outbox.Emit(ctx, tx, nil, e); err != nil {
			return err
		}
	}
	return nil
}

// publishItem returns a function that publishes the stored state of a row of the catalogue.
func publishItem[P ids.Prefix, T, V any](
	table, event string, read func(context.Context, pg.Q, ids.ID[P]) (T, error), show func(T, api.Mode) V,
) func(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
	return func(ctx context.Context, tx pg.Tx, key string, version int64, _ []string) error {
		var id ids.ID[P]
		if err := id.Scan(key); err != nil {
			return err
		}
		if err := store.RaiseVersion(ctx, tx, table, key, version); err != nil {
			return err
		}
		item, err := read(ctx, tx, id)
		if err != nil {
			return err
		}
		e := catalogueUpdated(event, id.String(), version)
		if e.Object, err = outbox.Body(ctx, show, item); err != nil {
			return err
		}
		return outbox.Emit(ctx, tx, nil, e)
	}
}

func forgetCustomer(ctx context.Context, tx pg.Tx, id string) error {
	customer, err := ids.Parse[ids.CustomerPrefix](id)
	if err != nil {
		return err
	}
	return store.ForgetCustomer(ctx, tx, customer)
}

// repaired applies changes of the command repair.
var repaired = &Payments{Bookings: &Bookings{Now: time.Now}, Log: slog.Default()}

// forgetAccount removes the money of a lost account from the amounts of its booking. key is ma_, the booking's stored id, and the currency.
func forgetAccount(ctx context.Context, tx pg.Tx, key string) error {
	text, currency, _ := strings.Cut(strings.TrimPrefix(key, "ma_"), ":")
	var booking domain.BookingID
	if err := booking.Scan(text); err != nil {
		return err
	}
	return repaired.apply(ctx, tx, booking, "account "+key, func(b domain.Booking) (domain.Balance, error) {
		if err := store.ForgetAccount(ctx, tx, booking, currency); err != nil || currency != b.Total.Currency {
			return b.Balance(), err
		}
		return domain.Balance{Invoices: b.Invoices}, nil
	})
}

// forgetInvoice removes a lost invoice from the amounts of its booking.
func forgetInvoice(ctx context.Context, tx pg.Tx, id string) error {
	list, err := store.BookingsOf(ctx, tx, id)
	if err != nil {
		return err
	}
	for _, booking := range list {
		err := repaired.apply(ctx, tx, booking, id, func(b domain.Booking) (domain.Balance, error) {
			return withInvoices(b, func() (domain.InvoiceSums, error) { return store.ForgetInvoice(ctx, tx, id, b.ID, b.Total.Currency) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}
