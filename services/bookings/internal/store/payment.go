package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
)

var invoices = pg.NewTable("booking_invoices", "i", nil, func(in *domain.Invoice) pg.Fields {
	return pg.Fields{Fixed: pg.F{"invoice_id", &in.ID}, Values: pg.F{
		"booking_id", &in.Booking, "version", &in.Version, "currency", &in.Currency, "opened", &in.Opened, "deposit", &in.Deposit, "total", &in.Total,
		"due", &in.Due, "paid", &in.Paid, "credited", &in.Credited,
	}}
})

// PutInvoice writes an invoice from an event, unless a state at least as new is stored already. It returns the sums of the invoices of
// its booking in the currency. The booking must be locked. The newest event determines the booking of an invoice.
func PutInvoice(ctx context.Context, tx pg.Tx, in domain.Invoice, currency string) (domain.InvoiceSums, error) {
	if err := pg.Exec(ctx, tx, "put invoice", invoices.PutNewer(), invoices.Args(in)); err != nil {
		return domain.InvoiceSums{}, err
	}
	return InvoiceSums(ctx, tx, in.Booking, currency)
}

// InvoiceSums adds up the invoices of a booking in a currency.
func InvoiceSums(ctx context.Context, q pg.Q, booking domain.BookingID, currency string) (domain.InvoiceSums, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.InvoiceSums], pgx.ErrNoRows, invoiceSums, pg.Args{"booking": booking, "currency": currency})
}

const invoiceSums = `
	select coalesce(sum(i.total), 0)::bigint as invoiced, coalesce(sum(i.due), 0)::bigint as dues, coalesce(sum(i.paid), 0)::bigint as placed,
		coalesce(sum(i.credited), 0)::bigint as credited, coalesce(bool_and(i.due = 0) filter (where i.deposit), false) as deposit_paid
	from booking_invoices i
	where i.tenant_id = @tenant and i.livemode = @live and i.booking_id = @booking::uuid and i.opened and i.currency = @currency`

// PutPayments writes the payments in an event about an account, for lists. It never replaces a state by an older one. The booking must be
// locked.
func PutPayments(ctx context.Context, tx pg.Tx, a domain.Account) error {
	n := len(a.Payments)
	ids, sources, invoices, amounts, refunded := make([]string, n), make([]string, n), make([]string, n), make([]int64, n), make([]int64, n)
	disputed, paid, reversed, versions := make([]bool, n), make([]*time.Time, n), make([]*time.Time, n), make([]int64, n)
	for i, p := range a.Payments {
		ids[i], sources[i], invoices[i], amounts[i], refunded[i] = p.ID, p.Source, p.InvoiceID, p.Amount.Minor, p.Refunded
		disputed[i], paid[i], reversed[i], versions[i] = p.Disputed, p.PaidAt, p.ReversedAt, p.Version
	}
	return pg.Exec(ctx, tx, "put payments", `
		insert into booking_payments as p (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, source, refunded, disputed,
			paid_at, reversed_at, version)
		select @tenant::uuid, @live::boolean, n.id, @booking::uuid, n.invoice, n.amount, @currency::text, n.source, n.refunded, n.disputed,
			n.paid_at, n.reversed_at, n.version
		from unnest(@ids::text[], @sources::text[], @invoices::text[], @amounts::bigint[], @refunded::bigint[], @disputed::boolean[],
			@paid_at::timestamptz[], @reversed::timestamptz[], @versions::bigint[])
			n (id, source, invoice, amount, refunded, disputed, paid_at, reversed_at, version)
		on conflict (tenant_id, livemode, payment_id) do update
		set invoice_id = excluded.invoice_id, amount = excluded.amount, refunded = excluded.refunded, disputed = excluded.disputed,
			paid_at = excluded.paid_at, reversed_at = excluded.reversed_at, version = excluded.version
		where p.version < excluded.version`, pg.Args{
		"booking": a.Booking, "currency": a.Currency, "ids": ids, "sources": sources, "invoices": invoices, "amounts": amounts,
		"refunded": refunded, "disputed": disputed, "paid_at": paid, "reversed": reversed, "versions": versions,
	})
}

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

func paymentsSQL(booking domain.BookingID, r page.Request) (string, []any) {
	w := &page.Where{}
	w.Add(`p.tenant_id = @tenant and p.livemode = @live and p.booking_id = ?`, booking)
	tail, args := w.Page(r, "p")
	// @p1 is the booking, the first argument of w.
	return `select p.id, p.payment_id, p.source, p.amount, p.currency, p.refunded, p.disputed, p.invoice_id, p.paid_at, p.reversed_at, p.created_at
		from bookings b left join lateral (select * from booking_payments p ` + tail + `) p on true
		where b.tenant_id = @tenant and b.livemode = @live and b.id = @p1 order by p.created_at desc, p.id desc`, args
}

func scanPayment(row pgx.CollectableRow) (p domain.BookingPayment, err error) {
	var id *[16]byte
	err = row.Scan(&id, pg.Null(&p.ID), pg.Null(&p.Source), pg.Null(&p.Amount.Minor), pg.Null(&p.Amount.Currency), pg.Null(&p.Refunded),
		pg.Null(&p.Disputed), pg.Null(&p.InvoiceID), &p.PaidAt, &p.ReversedAt, pg.Null(&p.CreatedAt))
	if id != nil {
		p.Row = *id
	}
	return p, err
}
