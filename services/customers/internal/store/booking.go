package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

var bookings = pg.NewTable("bookings", "b", domain.ErrBookingNotFound, func(b *domain.Booking) pg.Fields {
	return pg.Fields{Fixed: pg.F{"id", &b.ID}, Values: pg.F{
		"customer_id", &b.CustomerID, "service_id", &b.ServiceID, "status", &b.Status, "currency", &b.Total.Currency, "total", &b.Total.Minor,
		"version", &b.Version,
	}}
})

// Booking reads the copy of a booking, or returns domain.ErrBookingNotFound.
func Booking(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Booking, error) {
	return bookings.Get(ctx, q, id, "")
}

// BookingForUpdate locks the row until the transaction ends. A transaction that adds to the invoiced amount of a booking takes this
// lock.
func BookingForUpdate(ctx context.Context, tx pg.Tx, id domain.BookingID) (domain.Booking, error) {
	return bookings.Get(ctx, tx, id, "for update")
}

// PutBooking writes the state of a booking with the next statement, before it, unless a state at least as new is stored already.
func PutBooking(tx pg.Tx, b domain.Booking) {
	pg.Queue(tx, "put booking", bookings.PutNewer(), bookings.Args(b))
}

// BookingKey is a booking of any tenant and mode.
type BookingKey struct {
	Tenant   ids.Tenant
	Livemode bool
	ID       domain.BookingID
}

// PutBookings is PutBooking for bookings of any tenants. It uses one statement, which locks the rows in the order of their ids. tx
// has the worker role.
func PutBookings(ctx context.Context, tx pg.Tx, list map[BookingKey]domain.Booking) error {
	rows := slices.Collect(maps.Keys(list))
	return pg.Exec(ctx, tx, "put bookings", `
		insert into bookings as b (tenant_id, livemode, id, customer_id, service_id, status, currency, total, version)
		select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::bigint[],
			$9::bigint[]) l (tenant_id, livemode, id, customer_id, service_id, status, currency, total, version)
		order by tenant_id, livemode, id`+bookings.Newer(),
		pg.Column(rows, func(k BookingKey) [16]byte { return k.Tenant.UUID() }), pg.Column(rows, func(k BookingKey) bool { return k.Livemode }),
		pg.Column(rows, func(k BookingKey) [16]byte { return k.ID.UUID() }), pg.Column(rows, func(k BookingKey) domain.CustomerID { return list[k].CustomerID }),
		pg.Column(rows, func(k BookingKey) domain.ServiceID { return list[k].ServiceID }), pg.Column(rows, func(k BookingKey) string { return list[k].Status }),
		pg.Column(rows, func(k BookingKey) string { return list[k].Total.Currency }), pg.Column(rows, func(k BookingKey) int64 { return list[k].Total.Minor }),
		pg.Column(rows, func(k BookingKey) int64 { return list[k].Version }))
}

// Balance reads what a balance of a booking is written from. Before you open the balance, lock the booking, so that of two simultaneous
// openings the second one sees the first one.
func Balance(ctx context.Context, q pg.Q, id domain.BookingID) (b domain.Balance, err error) {
	if b.Quote, err = pg.First(ctx, q, quotes.Scan, quotes.Own+`q.booking_id = @id and q.status = 'accepted'
		order by q.created_at desc, q.id desc limit 1`, pg.Args{"id": id}); err != nil {
		return domain.Balance{}, fmt.Errorf("quote of a booking: %w", err)
	}
	b.Deducted, err = invoices.Many(ctx, q, `v.booking_id = @id and v.status not in ('void', 'draft') order by v.created_at, v.id limit @limit`,
		pg.Args{"id": id, "limit": domain.MaxDeducted + 1})
	return b, err
}
