package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// maxPayable bounds the invoices and the charges of a booking that one transaction allocates.
const maxPayable = 100

// HoldMoney prevents other transactions from allocating money of a booking until this one ends. The lock is taken with the next
// statement, before it. Call it before you lock an invoice.
func HoldMoney(tx pg.Tx, booking domain.BookingID) {
	pg.Queue(tx, "hold money of a booking", `select `+holdMoney("@booking"), pg.Args{"booking": booking})
}

// HoldMoneyOfInvoice is HoldMoney for the booking of an invoice, if it has one.
func HoldMoneyOfInvoice(tx pg.Tx, id domain.InvoiceID) {
	pg.Queue(tx, "hold money of an invoice", `select `+holdMoney("v.booking_id")+` from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and v.id = @id and v.booking_id is not null`, pg.Args{"id": id})
}

func holdMoney(booking string) string {
	return `pg_advisory_xact_lock(hashtextextended('money of ' || @tenant::uuid::text || @live::boolean::text || ` + booking + `::uuid::text, 0))`
}

// InvoiceWithCard is Invoice together with the sum of the charges of its booking in its currency, both as of the same instant.
func InvoiceWithCard(ctx context.Context, q pg.Q, id domain.InvoiceID) (v domain.Invoice, received int64, err error) {
	v, err = pg.One(ctx, q, pg.With(scanInvoice, &received), domain.ErrInvoiceNotFound, `select `+invoiceColumns+`, (select coalesce(sum(c.amount), 0)::bigint from charges c
			where c.tenant_id = @tenant and c.livemode = @live and c.booking_id = v.booking_id and coalesce(c.currency, v.currency) = v.currency)
		from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id})
	return v, received, err
}

// InsertCharge writes a charge that is not allocated to an invoice yet. It returns false if the charge is already stored. Its row
// is locked until the transaction ends.
func InsertCharge(ctx context.Context, tx pg.Tx, c domain.Charge) (bool, error) {
	tag, err := tx.Exec(ctx, `
		insert into charges (tenant_id, livemode, id, booking_id, amount, unapplied, currency)
		values (@tenant, @live, @id, @booking, @amount, @amount, @currency)
		on conflict do nothing`, pg.Args{"id": c.ID, "booking": c.Booking, "amount": c.Amount.Minor, "currency": c.Amount.Currency})
	if err != nil {
		return false, fmt.Errorf("insert charge: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// undirected is what other refunds than those of credit notes have returned of a charge.
const undirected = `case when c.directed > c.refunded then c.refunded else c.refunded - c.directed end`

// UnallocatedCharges returns the charges of a booking with a part that is neither allocated to an invoice nor refunded, the oldest
// first.
func UnallocatedCharges(ctx context.Context, q pg.Q, booking domain.BookingID) ([]domain.UnallocatedCharge, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.UnallocatedCharge], `
		select c.id, coalesce(c.currency, '') as currency, c.unapplied - `+undirected+` as rest, c.disputed,
			(select count(*) from invoices v
				join invoice_payments p on p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id
				where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @booking
					and p.source = 'gateway' and coalesce(p.charge_id, p.reference) = c.id)::int as parts
		from charges c
		where c.tenant_id = @tenant and c.livemode = @live and c.booking_id = @booking
			and c.unapplied > `+undirected+`
		order by c.created_at nulls first, c.id limit @limit`, pg.Args{"booking": booking, "limit": maxPayable})
}

// TakeUnapplied records that an invoice took an amount of a charge.
func TakeUnapplied(ctx context.Context, tx pg.Tx, id string, amount int64) error {
	_, err := tx.Exec(ctx, `update charges c set unapplied = c.unapplied - @amount
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, pg.Args{"id": id, "amount": amount})
	if err != nil {
		return fmt.Errorf("save charge: %w", err)
	}
	return nil
}

// PutChargeState writes the gateway's state of a charge. newer is false if a state at least as new is stored already. unapplied is
// the amount that no invoice took.
func PutChargeState(ctx context.Context, tx pg.Tx, c domain.Charge) (unapplied int64, newer bool, err error) {
	found, err := pg.Many(ctx, tx, pgx.RowTo[int64], `
		update charges c set refunded = @refunded, disputed = @disputed, version = @version,
			amount = greatest(c.amount, @amount), unapplied = c.unapplied + greatest(0, @amount - c.amount)
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and c.version < @version returning c.unapplied`,
		pg.Args{"id": c.ID, "amount": c.Amount.Minor, "refunded": c.Refunded, "disputed": c.Disputed, "version": c.Version})
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return found[0], true, nil
}

// Charge reads a charge with the amount that no invoice took.
func Charge(ctx context.Context, q pg.Q, id string) (c domain.Charge, unapplied int64, err error) {
	c, err = pg.One(ctx, q, func(row pgx.CollectableRow) (c domain.Charge, err error) {
		return c, row.Scan(&c.ID, &c.Booking, &c.Amount.Minor, &c.Refunded, &c.Disputed, &c.Version, &unapplied)
	}, pgx.ErrNoRows, `select c.id, c.booking_id, c.amount, c.refunded, c.disputed, c.version, c.unapplied from charges c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, pg.Args{"id": id})
	return c, unapplied, err
}

// ChargedInvoices returns the invoices that a charge paid, in the order of payment.
func ChargedInvoices(ctx context.Context, q pg.Q, c domain.Charge) ([]domain.ChargedInvoice, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.ChargedInvoice], `
		select p.invoice_id as invoice, p.id as payment, p.amount,
			coalesce((select sum(r.amount) from credit_note_refunds r where r.tenant_id = @tenant and r.livemode = @live and r.charge_id = @id
				and r.invoice_id = p.invoice_id and r.known), 0)::bigint as directed from invoices v
		join invoice_payments p on p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id
		where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @booking
			and p.source = 'gateway' and coalesce(p.charge_id, p.reference) = @id
		order by p.charge_part, p.paid_at, p.id`, pg.Args{"booking": c.Booking, "id": c.ID})
}

// PutDisputed writes whether payments are disputed. It does not change the version of their invoices, which the transaction has
// locked.
func PutDisputed(ctx context.Context, tx pg.Tx, list []domain.ChargedInvoice, disputed bool) error {
	if len(list) == 0 {
		return nil
	}
	invoices, payments := make([]domain.InvoiceID, len(list)), make([]domain.PaymentID, len(list))
	for i, p := range list {
		invoices[i], payments[i] = p.Invoice, p.Payment
	}
	_, err := tx.Exec(ctx, `update invoice_payments p set disputed = @disputed
		where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = any(@invoices::uuid[]) and p.id = any(@payments::uuid[])
			and p.disputed <> @disputed`, pg.Args{"invoices": invoices, "payments": payments, "disputed": disputed})
	if err != nil {
		return fmt.Errorf("save disputed payments: %w", err)
	}
	return nil
}

// PayableInvoices returns the invoices of a booking that await money, in the order in which they are paid: first the named one,
// then the others, oldest first.
func PayableInvoices(ctx context.Context, q pg.Q, booking domain.BookingID, named domain.InvoiceID) ([]domain.InvoiceID, error) {
	return pg.Many(ctx, q, pgx.RowTo[domain.InvoiceID], `
		select v.id from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and v.booking_id = @booking and v.status in ('open', 'partially_paid', 'uncollectible')
		order by v.id is distinct from @named::uuid, v.created_at, v.id
		limit @limit`, pg.Args{"booking": booking, "named": named, "limit": maxPayable})
}

// BookingMoney is a booking of any tenant with money that is not allocated to an invoice.
type BookingMoney struct {
	TenantID  ids.Tenant
	Livemode  bool
	BookingID domain.BookingID
}

// UnallocatedBookings returns up to limit bookings after the given one, of all tenants and modes, that have money not allocated to
// an invoice. tx has the worker role.
func UnallocatedBookings(ctx context.Context, tx pg.Tx, after BookingMoney, limit int) ([]BookingMoney, error) {
	return pg.Many(ctx, tx, pgx.RowToStructByName[BookingMoney], `
		select distinct c.tenant_id, c.livemode, c.booking_id from charges c
		where c.unapplied > `+undirected+` and (c.tenant_id, c.livemode, c.booking_id) > ($1::uuid, $2::boolean, $3::uuid)
		order by c.tenant_id, c.livemode, c.booking_id limit $4`, after.TenantID.UUID(), after.Livemode, after.BookingID.UUID(), limit)
}
