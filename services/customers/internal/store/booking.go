package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

func scanBooking(row pgx.CollectableRow) (domain.Booking, error) {
	var b domain.Booking
	err := row.Scan(&b.ID, &b.CustomerID, &b.ServiceID, &b.Status, &b.Total.Currency, &b.Total.Minor, &b.Version)
	return b, err
}

const oneBooking = `select b.id, b.customer_id, b.service_id, b.status, b.currency, b.total, b.version from bookings b
	where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`

// Booking reads the copy of a booking, or returns domain.ErrBookingNotFound.
func Booking(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Booking, error) {
	return pg.One(ctx, q, scanBooking, domain.ErrBookingNotFound, oneBooking, pg.Args{"id": id})
}

// BookingForUpdate locks the row until the transaction ends. A transaction that adds to the invoiced amount of a booking takes this
// lock.
func BookingForUpdate(ctx context.Context, tx pg.Tx, id domain.BookingID) (domain.Booking, error) {
	return pg.One(ctx, tx, scanBooking, domain.ErrBookingNotFound, oneBooking+` for update`, pg.Args{"id": id})
}

const putBooking = `insert into bookings as b (tenant_id, livemode, id, customer_id, service_id, status, currency, total, version) `

// Messages and lookups can arrive in any order. A stored state that is at least as new as the incoming one remains.
const unlessKnown = `
	on conflict (tenant_id, livemode, id) do update
	set customer_id = excluded.customer_id, service_id = excluded.service_id, status = excluded.status, currency = excluded.currency, total = excluded.total,
	    version = excluded.version
	where b.version < excluded.version`

// PutBooking writes the state of a booking with the next statement, before it, unless a state at least as new is stored already.
func PutBooking(tx pg.Tx, b domain.Booking) {
	pg.Queue(tx, "put booking", putBooking+`values (@tenant, @live, @id, @customer, @service, @status, @currency, @total, @version)`+unlessKnown, pg.Args{
		"id": b.ID, "customer": b.CustomerID, "service": b.ServiceID, "status": b.Status, "currency": b.Total.Currency, "total": b.Total.Minor, "version": b.Version,
	})
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
	n := len(list)
	tenants, modes, keys := make([][16]byte, 0, n), make([]bool, 0, n), make([][16]byte, 0, n)
	customers, services := make([]domain.CustomerID, 0, n), make([]domain.ServiceID, 0, n)
	status, currencies := make([]string, 0, n), make([]string, 0, n)
	totals, versions := make([]int64, 0, n), make([]int64, 0, n)
	for key, b := range list {
		tenants, modes, keys = append(tenants, key.Tenant.UUID()), append(modes, key.Livemode), append(keys, key.ID.UUID())
		customers, services = append(customers, b.CustomerID), append(services, b.ServiceID)
		status, currencies = append(status, b.Status), append(currencies, b.Total.Currency)
		totals, versions = append(totals, b.Total.Minor), append(versions, b.Version)
	}
	_, err := tx.Exec(ctx, putBooking+`
		select * from unnest($1::uuid[], $2::boolean[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::bigint[],
			$9::bigint[]) l (tenant_id, livemode, id, customer_id, service_id, status, currency, total, version)
		order by tenant_id, livemode, id`+unlessKnown, tenants, modes, keys, customers, services, status, currencies, totals, versions)
	if err != nil {
		return fmt.Errorf("put %d bookings: %w", n, err)
	}
	return nil
}

// Balance reads what a balance of a booking is written from. Before you open the balance, lock the booking, so that of two simultaneous
// openings the second one sees the first one.
func Balance(ctx context.Context, q pg.Q, id domain.BookingID) (b domain.Balance, err error) {
	quotes, err := pg.Many(ctx, q, scanQuote, `select `+quoteColumns+` from quotes q
		where q.tenant_id = @tenant and q.livemode = @live and q.booking_id = @id and q.status = 'accepted'
		order by q.created_at desc, q.id desc limit 1`, pg.Args{"id": id})
	if err != nil {
		return domain.Balance{}, fmt.Errorf("quote of a booking: %w", err)
	}
	if len(quotes) > 0 {
		b.Quote = &quotes[0]
	}
	b.Deducted, err = pg.Many(ctx, q, scanInvoice, `select `+invoiceColumns+` from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @id
			and v.status not in ('void', 'draft')
		order by v.created_at, v.id limit @limit`, pg.Args{"id": id, "limit": domain.MaxDeducted + 1})
	if err != nil {
		return domain.Balance{}, fmt.Errorf("invoices of a booking: %w", err)
	}
	return b, nil
}
