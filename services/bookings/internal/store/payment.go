package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

// PutInvoice writes an invoice and its payments from an event. It returns the amounts received for its booking in the currency, or
// nothing without a booking. The booking must be locked. The newest event determines the booking of an invoice. A payment is
// written once and reversed once, regardless of the order of the events.
func PutInvoice(ctx context.Context, tx pg.Tx, in domain.Invoice, currency string) (domain.Received, error) {
	ids, amounts, currencies := make([]string, len(in.Payments)), make([]int64, len(in.Payments)), make([]string, len(in.Payments))
	paid, reversed := make([]*time.Time, len(in.Payments)), make([]*time.Time, len(in.Payments))
	for i, p := range in.Payments {
		ids[i], amounts[i], currencies[i], paid[i], reversed[i] = p.ID, p.Amount.Minor, p.Amount.Currency, p.PaidAt, p.ReversedAt
	}
	args := pg.Args{
		"invoice": in.ID, "booking": in.Booking, "version": in.Version, "currency": currency,
		"ids": ids, "amounts": amounts, "currencies": currencies, "paid_at": paid, "reversed": reversed,
	}
	b := &pgx.Batch{}
	b.Queue(putInvoice, args)
	b.Queue(dropPayments, args)
	if len(in.Payments) > 0 && !in.Booking.IsZero() {
		b.Queue(putPayments, args)
	}
	return received(ctx, tx, b, args)
}

// PutGatewayPayment writes a payment at the gateway from an event, unless a state at least as new is stored already. It returns the
// amounts received for its booking in the currency. The booking must be locked.
func PutGatewayPayment(ctx context.Context, tx pg.Tx, p domain.GatewayPayment, currency string) (domain.Received, error) {
	args := pg.Args{
		"id": p.ID, "booking": p.Booking, "amount": p.Amount.Minor, "refunded": p.Refunded, "paid_in": p.Amount.Currency,
		"invoice": p.Invoice, "disputed": p.Disputed, "late": p.Late, "paid_at": p.PaidAt, "version": p.Version, "currency": currency,
	}
	b := &pgx.Batch{}
	b.Queue(putGatewayPayment, args)
	return received(ctx, tx, b, args)
}

// PutManualRefund writes a manual refund from an event, as a payment of 0 that is refunded. It returns the amounts received for its
// booking in the currency. The booking must be locked.
func PutManualRefund(ctx context.Context, tx pg.Tx, r domain.ManualRefund, currency string) (domain.Received, error) {
	args := pg.Args{
		"id": r.ID, "booking": r.Booking, "invoice": r.Invoice, "refunded": r.Amount.Minor, "paid_in": r.Amount.Currency, "currency": currency,
	}
	b := &pgx.Batch{}
	b.Queue(putManualRefund, args)
	return received(ctx, tx, b, args)
}

// received sends a batch with the query for the amounts received for the booking.
func received(ctx context.Context, tx pg.Tx, b *pgx.Batch, args pg.Args) (out domain.Received, err error) {
	b.Queue(paidOf, args)
	res := tx.SendBatch(ctx, b)
	for range b.Len() - 1 {
		_, failed := res.Exec()
		err = errors.Join(err, failed)
	}
	sum, failed := pg.NextOne(res, pgx.RowToStructByName[domain.Received])
	if err = errors.Join(err, failed, res.Close()); err != nil {
		return domain.Received{}, fmt.Errorf("put payment: %w", err)
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
	// dropPayments deletes the manual payments that the newest state of an invoice lacks: after a restore, the customers service has
	// lost them. A manual refund has the amount 0.
	dropPayments = `
		delete from booking_payments p
		where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking::uuid and p.invoice_id = @invoice and p.source <> 'gateway'
			and p.amount > 0 and not p.payment_id = any(@ids::text[])
			and exists (select from booking_invoices i where i.tenant_id = @tenant and i.livemode = @live and i.invoice_id = @invoice and i.version = @version)`
	putPayments = `
		insert into booking_payments as p (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, paid_at, reversed_at)
		select distinct on (n.id) @tenant::uuid, @live::boolean, n.id, @booking::uuid, @invoice::text, n.amount, n.currency, n.paid_at, n.reversed_at
		from unnest(@ids::text[], @amounts::bigint[], @currencies::text[], @paid_at::timestamptz[], @reversed::timestamptz[])
			as n(id, amount, currency, paid_at, reversed_at)
		order by n.id, n.reversed_at
		on conflict (tenant_id, livemode, payment_id) do update
		set reversed_at = coalesce(p.reversed_at, excluded.reversed_at), paid_at = coalesce(p.paid_at, excluded.paid_at)
		where p.reversed_at is null and excluded.reversed_at is not null or p.paid_at is null and excluded.paid_at is not null`
	putGatewayPayment = `
		insert into booking_payments as p (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, source, refunded, disputed,
			late, paid_at, version)
		values (@tenant, @live, @id, @booking, @invoice, @amount, @paid_in, 'gateway', @refunded, @disputed, @late, @paid_at, @version)
		on conflict (tenant_id, livemode, payment_id) do update
		set amount = excluded.amount, refunded = excluded.refunded, disputed = excluded.disputed, invoice_id = excluded.invoice_id,
			paid_at = excluded.paid_at, version = excluded.version
		where p.version < excluded.version`
	putManualRefund = `
		insert into booking_payments (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, refunded)
		values (@tenant, @live, @id, @booking, @invoice, 0, @paid_in, @refunded)
		on conflict do nothing`
	paidOf = `
		select coalesce(sum(p.amount), 0)::bigint as paid, coalesce(sum(p.refunded), 0)::bigint as refunded,
			coalesce(bool_or(p.disputed), false) as disputed
		from booking_payments p
		where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = @booking::uuid
		  and p.reversed_at is null and p.currency = @currency`
)

// Payments reads one page of the payments of a booking, newest first, in one round trip, or returns domain.ErrBookingNotFound. For
// a booking without payments, the query returns one row of nulls.
func Payments(ctx context.Context, q pg.Q, booking domain.BookingID, r page.Request) (page.Rows[domain.BookingPayment], error) {
	sql, args := paymentsSQL(booking, r)
	rows, err := page.Read(ctx, q, r, scanPayment, sql, args...)
	switch {
	case err != nil:
		return page.Rows[domain.BookingPayment]{}, err
	case len(rows.Items) == 0:
		return page.Rows[domain.BookingPayment]{}, domain.ErrBookingNotFound
	case rows.Items[0].ID == "":
		rows.Items = nil
	}
	return rows, nil
}

// Settlement reads a booking with the counted payments at the gateway, or returns domain.ErrBookingNotFound.
func Settlement(ctx context.Context, q pg.Q, id domain.BookingID) (domain.Settlement, error) {
	return pg.One(ctx, q, scanSettlement, domain.ErrBookingNotFound, `
		select b.status, b.cancel_policy, b.currency, b.refund_due, b.hold_expires_at, b.version,
			(select json_agg(json_build_object('id', p.payment_id, 'late', p.late) order by p.payment_id) from booking_payments p
				where p.tenant_id = @tenant and p.livemode = @live and p.booking_id = b.id and p.source = 'gateway')
		from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = @id`, pg.Args{"id": id})
}

func scanSettlement(row pgx.CollectableRow) (domain.Settlement, error) {
	var s domain.Settlement
	var policy, payments []byte
	err := row.Scan(&s.Booking.Status, &policy, &s.Booking.Total.Currency, &s.Booking.RefundDue, &s.Booking.HoldExpiresAt, &s.Booking.Version, &payments)
	if err != nil {
		return domain.Settlement{}, fmt.Errorf("scan settlement: %w", err)
	}
	if s.Booking.Policy, err = fromJSON[domain.Policy](policy); err != nil {
		return domain.Settlement{}, fmt.Errorf("policy: %w", err)
	}
	if len(payments) == 0 {
		return s, nil
	}
	return s, json.Unmarshal(payments, &s.Payments)
}

func paymentsSQL(booking domain.BookingID, r page.Request) (string, []any) {
	w := &page.Where{}
	w.Add(`p.tenant_id = @tenant and p.livemode = @live and p.booking_id = ?`, booking)
	tail, args := w.Page(r, "p")
	// @p1 is the booking, the first argument of w.
	return `select p.id, p.payment_id, p.source, p.amount, p.currency, p.refunded, p.disputed, p.invoice_id, p.paid_at, p.reversed_at, p.created_at
		from bookings b left join lateral (select * from booking_payments p ` + tail + `) p on true
		where b.tenant_id = @tenant and b.livemode = @live and b.id = @p1 order by p.created_at desc, p.id desc`, args
}

func scanPayment(row pgx.CollectableRow) (domain.BookingPayment, error) {
	var p struct {
		Row                             *[16]byte
		ID, Source, Currency, InvoiceID *string
		Amount, Refunded                *int64
		Disputed                        *bool
		PaidAt, ReversedAt, CreatedAt   *time.Time
	}
	err := row.Scan(&p.Row, &p.ID, &p.Source, &p.Amount, &p.Currency, &p.Refunded, &p.Disputed, &p.InvoiceID, &p.PaidAt, &p.ReversedAt, &p.CreatedAt)
	if err != nil {
		return domain.BookingPayment{}, fmt.Errorf("scan payment: %w", err)
	}
	if p.ID == nil {
		return domain.BookingPayment{}, nil
	}
	return domain.BookingPayment{
		Row: *p.Row, ID: *p.ID, Source: *p.Source, Amount: money.Amount{Minor: *p.Amount, Currency: *p.Currency}, Refunded: *p.Refunded,
		Disputed: *p.Disputed, InvoiceID: *p.InvoiceID, PaidAt: p.PaidAt, ReversedAt: p.ReversedAt, CreatedAt: *p.CreatedAt,
	}, nil
}
