package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// The queries of the command repair. Package repair describes their columns.
const (
	// Copies is what this service holds of other services' objects. A customer of version 0 was lost, and a booking refers to it. An
	// account of money has the key of payments. Its version is unknown if the booking now has another currency.
	Copies = `
		select 'cu', tenant_id, livemode, id::text, version, '', '' from customers where version > 0
		union all select 'inv', tenant_id, livemode, invoice_id, version, '', '' from booking_invoices
		union all select 'ma', tenant_id, livemode, 'ma_' || id::text || ':' || currency, account_version, '', '' from bookings where account_version > 0
		union select 'ma', p.tenant_id, p.livemode, 'ma_' || p.booking_id::text || ':' || p.currency, 0, '', '' from booking_payments p
			join bookings b on (b.tenant_id, b.livemode, b.id) = (p.tenant_id, p.livemode, p.booking_id) where b.currency <> p.currency
		union all select 'qt', tenant_id, livemode, quote_id::text, 0, 'booked', '' from bookings
			where quote_id is not null and status in ('pending', 'confirmed')`
	OwnBookings = `
		select tenant_id, livemode, id::text as key, version, updated_at as changed_at, true as logged,
			'{customers,payments}'::text[] as holders, array_remove(array[
				case when id >= @first then 'booking.created' end,
				case when cancelled_at >= @since and updated_at >= @since then 'booking.cancelled' end], null) as events
		from bookings`
	OwnServices = ownCatalogue + `services`
	OwnUnits    = ownCatalogue + `units`
	OwnPackages = ownCatalogue + `packages`

	ownCatalogue = `
		select tenant_id, livemode, id::text as key, version, updated_at as changed_at, false as logged,
			'{customers}'::text[] as holders, '{}'::text[] as events
		from `
	// RaiseNumbers makes the next number of bookings higher than each number in a copy.
	RaiseNumbers = `
		insert into booking_counters as c (tenant_id, livemode, next)
		select tenant_id, livemode, max(substring(number from '[0-9]+$')::bigint) + 1 from repair_copies
		where prefix = 'bk' and number ~ '[0-9]+$' group by 1, 2
		on conflict (tenant_id, livemode) do update set next = excluded.next where c.next < excluded.next
		returning format('tenant %s, livemode %s: the next is %s', tenant_id, livemode, next)`
)

// RaiseVersion sets the version of a row of a table with versions, unless the row has that version already.
func RaiseVersion(ctx context.Context, tx pg.Tx, table, key string, version int64) error {
	return pg.Exec(ctx, tx, "raise version", `update `+table+` set version = @version
		where tenant_id = @tenant and livemode = @live and id = @key::uuid and version < @version`, pg.Args{"key": key, "version": version})
}

// ForgetCustomer deletes the copy of a customer that the customers service has lost. If a booking refers to it, it stays with version
// 0, below each version of a customer.
func ForgetCustomer(ctx context.Context, tx pg.Tx, id domain.CustomerID) error {
	args := pg.Args{"id": id}
	_, err := tx.Exec(ctx, `update customers c set version = 0 where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, args)
	if err == nil {
		_, err = tx.Exec(ctx, `delete from customers c where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and not exists (
			select from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.customer_id = @id)`, args)
	}
	if err != nil {
		return fmt.Errorf("forget customer: %w", err)
	}
	return nil
}

// BookingsOf returns the booking of an invoice, or nothing.
func BookingsOf(ctx context.Context, q pg.Q, id string) ([]domain.BookingID, error) {
	return pg.Many(ctx, q, pgx.RowTo[domain.BookingID], `
		select i.booking_id from booking_invoices i
		where i.tenant_id = @tenant and i.livemode = @live and i.invoice_id = @id and i.booking_id is not null`, pg.Args{"id": id})
}

// ForgetInvoice deletes the copy of an invoice of a booking that is locked. It returns the sums of the booking's other invoices in the
// currency.
func ForgetInvoice(ctx context.Context, tx pg.Tx, id string, booking domain.BookingID, currency string) (domain.InvoiceSums, error) {
	_, err := tx.Exec(ctx, `delete from booking_invoices i where i.tenant_id = @tenant and i.livemode = @live and i.invoice_id = @id`, pg.Args{"id": id})
	if err != nil {
		return domain.InvoiceSums{}, fmt.Errorf("forget invoice: %w", err)
	}
	return InvoiceSums(ctx, tx, booking, currency)
}

// ForgetAccount deletes the payments of the account of a booking, which is locked.
func ForgetAccount(ctx context.Context, tx pg.Tx, id domain.BookingID, currency string) error {
	return pg.Exec(ctx, tx, "forget payments", `delete from booking_payments p
		where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @id and p.currency = @currency`, pg.Args{"id": id, "currency": currency})
}
