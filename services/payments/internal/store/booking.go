package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
)

const putBooking = `insert into bookings as b (tenant_id, livemode, id, customer_id, status, version) `

// Messages and lookups can arrive in any order. A stored state that is at least as new as the incoming one remains.
const unlessKnown = `
	on conflict (tenant_id, livemode, id) do update
	set customer_id = excluded.customer_id, status = excluded.status, version = excluded.version
	where b.version < excluded.version`

// HoldBooking writes a state of a booking, unless a state at least as new is stored, and returns the newest state. Until the
// transaction ends, no other transaction can write a newer state, but others can hold the booking too.
func HoldBooking(ctx context.Context, tx pg.Tx, b domain.Booking) (status string, err error) {
	args := pg.Args{"id": b.ID, "customer": b.CustomerID, "status": b.Status, "version": b.Version}
	const held = `select b.status from bookings b
		where b.tenant_id = @tenant and b.livemode = @live and b.id = @id and b.version >= @version for share`
	found, err := pg.Many(ctx, tx, pgx.RowTo[string], held, args)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0], nil
	}
	if _, err := tx.Exec(ctx, putBooking+`values (@tenant, @live, @id, @customer, @status, @version)`+unlessKnown, args); err != nil {
		return "", fmt.Errorf("put booking: %w", err)
	}
	return pg.One(ctx, tx, pgx.RowTo[string], domain.ErrBookingNotFound, held, args)
}

// HeldStatus returns the stored state of a booking, or "" if the booking is unknown. Until the transaction ends, no other
// transaction can write a newer state. A transaction that writes it afterwards sees what this one wrote about the booking's
// intents.
func HeldStatus(ctx context.Context, tx pg.Tx, id domain.BookingID) (string, error) {
	return pg.One(ctx, tx, pgx.RowTo[string], pgx.ErrNoRows, `select coalesce((
		select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id for share), '')`, pg.Args{"id": id})
}

// TakenOf returns what was received for a booking in a currency, by card and on its account.
func TakenOf(ctx context.Context, q pg.Q, booking domain.BookingID, invoice domain.InvoiceID, currency string) (domain.Taken, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Taken], pgx.ErrNoRows, `
		select coalesce(sum(p.received), 0)::bigint as booking,
			coalesce(sum(p.received) filter (where p.invoice_id is null or p.invoice_id = @invoice::uuid), 0)::bigint as invoice,
			coalesce((select a.received from money_accounts a
				where a.tenant_id = @tenant and a.livemode = @live and a.id = @booking and a.currency = @currency), 0) as account
		from payment_intents p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking and p.gateway_id is not null
			and p.currency = @currency`, pg.Args{"booking": booking, "invoice": invoice, "currency": currency})
}

// BookingKey is a booking of any tenant and mode.
type BookingKey struct {
	Tenant   ids.Tenant
	Livemode bool
	ID       domain.BookingID
}

// PutBookings writes bookings of any tenants in one statement, which locks the rows in the order of their ids. tx has the worker
// role.
func PutBookings(ctx context.Context, tx pg.Tx, list map[BookingKey]domain.Booking) error {
	n := len(list)
	tenants, modes, keys := make([][16]byte, 0, n), make([]bool, 0, n), make([][16]byte, 0, n)
	customers, status, versions := make([]domain.CustomerID, 0, n), make([]string, 0, n), make([]int64, 0, n)
	for key, b := range list {
		tenants, modes, keys = append(tenants, key.Tenant.UUID()), append(modes, key.Livemode), append(keys, key.ID.UUID())
		customers, status, versions = append(customers, b.CustomerID), append(status, b.Status), append(versions, b.Version)
	}
	_, err := tx.Exec(ctx, putBooking+`
		select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::text[], $6::bigint[])
		     l (tenant_id, livemode, id, customer_id, status, version)
		order by tenant_id, livemode, id`+unlessKnown, tenants, modes, keys, customers, status, versions)
	if err != nil {
		return fmt.Errorf("put %d bookings: %w", n, err)
	}
	return nil
}
