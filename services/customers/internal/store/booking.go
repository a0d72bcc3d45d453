package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

func scanBooking(row pgx.CollectableRow) (domain.Booking, error) {
	var b domain.Booking
	err := row.Scan(&b.ID, &b.CustomerID, &b.Status, &b.Total.Currency, &b.Total.Minor, &b.Version)
	return b, err
}

const oneBooking = `select b.id, b.customer_id, b.status, b.currency, b.total, b.version from bookings b
	where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`

// Booking reads what is known of a booking, or domain.ErrBookingNotFound.
func Booking(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Booking, error) {
	return pg.One(ctx, q, scanBooking, domain.ErrBookingNotFound, oneBooking, pg.Args{"id": id})
}

// BookingForUpdate locks the row until the transaction ends. Whoever adds to what is invoiced of a booking takes this lock.
func BookingForUpdate(ctx context.Context, tx pg.Tx, id domain.BookingID) (domain.Booking, error) {
	return pg.One(ctx, tx, scanBooking, domain.ErrBookingNotFound, oneBooking+` for update`, pg.Args{"id": id})
}

// PutBooking writes what is known of a booking, unless something as new is known already: messages and look-ups may come in
// any order.
func PutBooking(ctx context.Context, tx pg.Tx, b domain.Booking) error {
	_, err := tx.Exec(ctx, `
		insert into bookings as b (tenant_id, livemode, id, customer_id, status, currency, total, version)
		values (@tenant, @live, @id, @customer, @status, @currency, @total, @version)
		on conflict (tenant_id, livemode, id) do update
		set customer_id = excluded.customer_id, status = excluded.status, currency = excluded.currency, total = excluded.total,
		    version = excluded.version
		where b.version < excluded.version`, pg.Args{
		"id": b.ID, "customer": b.CustomerID, "status": b.Status, "currency": b.Total.Currency, "total": b.Total.Minor, "version": b.Version,
	})
	if err != nil {
		return fmt.Errorf("put booking: %w", err)
	}
	return nil
}

// Invoiced is the sum of the totals of a booking's invoices. Void ones do not count, nor do drafts, except those of kind
// balance: two of these would ask for the same money.
func Invoiced(ctx context.Context, tx pg.Tx, id domain.BookingID) (int64, error) {
	return pg.One(ctx, tx, pgx.RowTo[int64], pgx.ErrNoRows, `
		select coalesce(sum(v.total), 0)::bigint from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @id
		  and v.status <> 'void' and (v.status <> 'draft' or v.kind = 'balance')`, pg.Args{"id": id})
}
