package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// Received is what a booking has been paid, and what of it was refunded, in its currency.
type Received struct{ Paid, Refunded int64 }

// PutInvoice writes what an event says of an invoice and its payments, and returns what its booking now has been paid in the
// currency, nothing without a booking. The booking must be locked. Which booking an invoice is for follows the newest event; a
// payment is written once and reversed once, in whatever order the events come.
func PutInvoice(ctx context.Context, tx pg.Tx, in domain.Invoice, currency string) (Received, error) {
	ids, amounts, currencies := make([]string, len(in.Payments)), make([]int64, len(in.Payments)), make([]string, len(in.Payments))
	reversed := make([]*time.Time, len(in.Payments))
	for i, p := range in.Payments {
		ids[i], amounts[i], currencies[i], reversed[i] = p.ID, p.Amount.Minor, p.Amount.Currency, p.ReversedAt
	}
	args := pg.Args{
		"invoice": in.ID, "booking": in.Booking, "version": in.Version, "currency": currency,
		"ids": ids, "amounts": amounts, "currencies": currencies, "reversed": reversed,
	}
	b := &pgx.Batch{}
	b.Queue(putInvoice, args)
	if len(in.Payments) > 0 && !in.Booking.IsZero() {
		b.Queue(putPayments, args)
	}
	return received(ctx, tx, b, args)
}

// PutGatewayPayment writes what an event says of a payment at the gateway, unless something as new is known already, and returns
// what its booking now has been paid in the currency. The booking must be locked.
func PutGatewayPayment(ctx context.Context, tx pg.Tx, p domain.GatewayPayment, currency string) (Received, error) {
	args := pg.Args{
		"id": p.ID, "booking": p.Booking, "amount": p.Amount.Minor, "refunded": p.Refunded, "paid_in": p.Amount.Currency,
		"version": p.Version, "currency": currency,
	}
	b := &pgx.Batch{}
	b.Queue(putGatewayPayment, args)
	return received(ctx, tx, b, args)
}

// received sends a batch, and with it the question what the booking has been paid now.
func received(ctx context.Context, tx pg.Tx, b *pgx.Batch, args pg.Args) (out Received, err error) {
	b.Queue(paidOf, args)
	res := tx.SendBatch(ctx, b)
	for range b.Len() - 1 {
		_, failed := res.Exec()
		err = errors.Join(err, failed)
	}
	sum, failed := pg.NextOne(res, pgx.RowToStructByName[Received])
	if err = errors.Join(err, failed, res.Close()); err != nil {
		return Received{}, fmt.Errorf("put payment: %w", err)
	}
	return *sum, nil
}

const (
	putInvoice = `
		insert into booking_invoices as i (tenant_id, livemode, invoice_id, booking_id, version)
		values (@tenant, @live, @invoice, @booking::uuid, @version)
		on conflict (tenant_id, livemode, invoice_id) do update
		set booking_id = excluded.booking_id, version = excluded.version
		where i.version < excluded.version`
	putPayments = `
		insert into booking_payments as p (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, reversed_at)
		select distinct on (n.id) @tenant::uuid, @live::boolean, n.id, @booking::uuid, @invoice::text, n.amount, n.currency, n.reversed_at
		from unnest(@ids::text[], @amounts::bigint[], @currencies::text[], @reversed::timestamptz[]) as n(id, amount, currency, reversed_at)
		order by n.id, n.reversed_at
		on conflict (tenant_id, livemode, payment_id) do update
		set reversed_at = excluded.reversed_at
		where p.reversed_at is null and excluded.reversed_at is not null`
	putGatewayPayment = `
		insert into booking_payments as p (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, source, refunded, version)
		values (@tenant, @live, @id, @booking, '', @amount, @paid_in, 'gateway', @refunded, @version)
		on conflict (tenant_id, livemode, payment_id) do update
		set amount = excluded.amount, refunded = excluded.refunded, version = excluded.version
		where p.version < excluded.version`
	paidOf = `
		select coalesce(sum(p.amount), 0)::bigint as paid, coalesce(sum(p.refunded), 0)::bigint as refunded from booking_payments p
		where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking::uuid
		  and p.reversed_at is null and p.currency = @currency`
)
