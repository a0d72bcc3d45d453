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
	// Copies is what this service holds of other services' objects. A customer of version 0 was lost, and a booking refers to it. A
	// manual refund has no version.
	Copies = `
		select 'cu', tenant_id, livemode, id::text, version, '', '' from customers where version > 0
		union all select 'inv', tenant_id, livemode, invoice_id, version, '', '' from booking_invoices
		union all select 'pi', tenant_id, livemode, payment_id, version, '', '' from booking_payments where source = 'gateway'
		union all select 'cn', tenant_id, livemode, payment_id, 0, '', '' from booking_payments where payment_id like 'cn\_%'
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
	_, err := tx.Exec(ctx, `update `+table+` set version = @version
		where tenant_id = @tenant and livemode = @live and id = @key::uuid and version < @version`, pg.Args{"key": key, "version": version})
	if err != nil {
		return fmt.Errorf("raise version: %w", err)
	}
	return nil
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

// BookingsOf returns the bookings with payments of an invoice, or with the manual refund of a credit note.
func BookingsOf(ctx context.Context, q pg.Q, id string) ([]domain.BookingID, error) {
	return pg.Many(ctx, q, func(row pgx.CollectableRow) (b domain.BookingID, err error) { return b, row.Scan(&b) }, `
		select distinct p.booking_id from booking_payments p
		where p.tenant_id = @tenant and p.livemode = @live and (p.invoice_id = @id and p.source <> 'gateway' or p.payment_id = @id)
		order by p.booking_id`, pg.Args{"id": id})
}

// ForgetInvoice deletes the copy of an invoice without payments.
func ForgetInvoice(ctx context.Context, tx pg.Tx, id string) error {
	_, err := tx.Exec(ctx, `delete from booking_invoices i where i.tenant_id = @tenant and i.livemode = @live and i.invoice_id = @id`, pg.Args{"id": id})
	if err != nil {
		return fmt.Errorf("forget invoice: %w", err)
	}
	return nil
}

// ForgetPayments deletes the manual payments of an invoice, or the manual refund of a credit note, from a booking that is locked. It
// returns the amounts received for the booking in the currency.
func ForgetPayments(ctx context.Context, tx pg.Tx, id string, booking domain.BookingID, currency string) (domain.Received, error) {
	args := pg.Args{"id": id, "booking": booking, "currency": currency}
	b := &pgx.Batch{}
	b.Queue(`delete from booking_payments p where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking
		and (p.invoice_id = @id and p.source <> 'gateway' or p.payment_id = @id)`, args)
	return received(ctx, tx, b, args)
}
