package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// maxPayable bounds the invoices and the charges of an account that one transaction allocates.
const maxPayable = 100

// StoredCharge is a charge as it is stored.
type StoredCharge struct {
	ID        string
	Amount    int64
	Refunded  int64
	Directed  int64
	Disputed  bool
	Reference *string
	Version   int64
	Recorded  bool // payments has recorded it
}

var charges = pg.NewTable("charges", "c", nil, func(c *domain.Charge) pg.Fields {
	return pg.Fields{
		Fixed: pg.F{"id", &c.ID},
		Written: pg.F{
			"booking_id", c.Account.UUID(), "amount", &c.Amount.Minor, "currency", &c.Amount.Currency, "method", &c.Method, "reference", &c.Reference,
			"paid_at", &c.PaidAt, "invoice_id", &c.Invoice, "version", &c.Version,
		},
	}
})

// PutCharge writes a charge that the account has not shown before, with the next statement, before it. unapplied is the amount that no
// invoice took. A payment that a client recorded is complete from then on.
func PutCharge(tx pg.Tx, c domain.Charge, unapplied int64) {
	args := charges.Args(c)
	args["unapplied"] = unapplied
	pg.Queue(tx, "put charge", charges.Insert("unapplied", "@unapplied")+`
		on conflict (tenant_id, livemode, id) do update set amount = excluded.amount, unapplied = excluded.unapplied, version = excluded.version,
			call_amount = null, call_since = null, call_until = null, call_next = null, call_request = '', call_actor = ''`, args)
}

// undirected is what other refunds than those of credit notes have returned of a charge.
const undirected = `case when c.directed > c.refunded then c.refunded else c.refunded - c.directed end`

// handedBack is the part of the unapplied amount of a charge that was handed back. The other charges of the account come first.
var handedBack = `least(c.unapplied, greatest(0, f.free - case when f.free > 0 then (
		select coalesce(sum(greatest(0, o.unapplied - (` + strings.ReplaceAll(undirected, "c.", "o.") + `))), 0)::bigint from charges o
		where o.tenant_id = @tenant and o.livemode = @live and o.booking_id = @account and o.id <> c.id
			and coalesce(o.currency, @currency) = @currency) else 0 end))`

// UnallocatedCharges returns the charges of an account with a part that is neither allocated to an invoice nor refunded, the oldest
// first.
func UnallocatedCharges(ctx context.Context, q pg.Q, of domain.AccountRef) ([]domain.UnallocatedCharge, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.UnallocatedCharge], `
		select c.id, coalesce(c.currency, '') as currency, c.unapplied - `+undirected+` as rest, c.disputed, c.method, c.paid_at, c.reference,
			(select count(*) from invoices v
				join invoice_payments p on p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id
				where v.tenant_id = @tenant and v.livemode = @live and `+ofAccount(of)+`
					and p.charge_id = c.id)::int as parts
		from charges c
		where c.tenant_id = @tenant and c.livemode = @live and c.booking_id = @account
			and c.unapplied > `+undirected+` and coalesce(c.currency, @currency) = @currency
		order by c.created_at nulls first, c.id limit @limit`, accountArgs(of, pg.Args{"limit": maxPayable}))
}

// AddUnapplied changes the amount of a charge that no invoice took.
func AddUnapplied(ctx context.Context, tx pg.Tx, id string, more int64) error {
	return pg.Exec(ctx, tx, "save charge", `update charges c set unapplied = c.unapplied + @more
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, pg.Args{"id": id, "more": more})
}

// PutChargeState writes the newest state of a charge. Its amount only rises.
func PutChargeState(ctx context.Context, tx pg.Tx, c domain.Charge) error {
	return pg.Exec(ctx, tx, "save state of a charge", `
		update charges c set refunded = @refunded, directed = @directed, disputed = @disputed, version = @version,
			amount = greatest(c.amount, @amount), unapplied = c.unapplied + greatest(0, @amount - c.amount)
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`,
		pg.Args{"id": c.ID, "amount": c.Amount.Minor, "refunded": c.Refunded, "directed": c.Directed, "disputed": c.Disputed, "version": c.Version})
}

// ClearCharge writes that a payment was reversed.
func ClearCharge(tx pg.Tx, id string) {
	pg.Queue(tx, "clear charge", `update charges c set amount = 0, unapplied = 0
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, pg.Args{"id": id})
}

// Charge reads a charge with the amount that no invoice took and that was not handed back. Its credit notes count as refunded from the
// moment that they are issued, whether or not the account shows their refunds.
func Charge(ctx context.Context, q pg.Q, of domain.AccountRef, id string) (c domain.Charge, unapplied int64, err error) {
	c, err = pg.One(ctx, q, func(row pgx.CollectableRow) (c domain.Charge, err error) {
		return c, row.Scan(&c.ID, &c.Amount.Minor, &c.Refunded, &c.Disputed, &c.Version, &unapplied)
	}, pgx.ErrNoRows, `
		with f as (select coalesce(sum(a.returned_free), 0)::bigint as free from money_accounts a
			where a.tenant_id = @tenant and a.livemode = @live and a.id = @account and a.currency = @currency)
		select c.id, c.amount, `+undirected+` + (select coalesce(sum(r.amount), 0)::bigint from credit_note_refunds r
			where r.tenant_id = @tenant and r.livemode = @live and r.charge_id = c.id), c.disputed, c.version, c.unapplied - `+handedBack+` from charges c, f
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id`, accountArgs(of, pg.Args{"id": id}))
	c.Account = of
	return c, unapplied, err
}

// ChargedInvoices returns the invoices that a charge paid, in the order of payment.
func ChargedInvoices(ctx context.Context, q pg.Q, of domain.AccountRef, charge string) ([]domain.ChargedInvoice, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.ChargedInvoice], `
		select p.invoice_id as invoice, p.id as payment, p.amount,
			coalesce((select sum(r.amount) from credit_note_refunds r where r.tenant_id = @tenant and r.livemode = @live and r.charge_id = @id
				and r.invoice_id = p.invoice_id), 0)::bigint as directed from invoices v
		join invoice_payments p on p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id
		where v.tenant_id = @tenant and v.livemode = @live and `+ofAccount(of)+`
			and p.reversed_at is null and p.charge_id = @id
		order by p.charge_part, p.paid_at, p.id`, accountArgs(of, pg.Args{"id": charge}))
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
	return pg.Exec(ctx, tx, "save disputed payments", `update invoice_payments p set disputed = @disputed
		where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = any(@invoices::uuid[]) and p.id = any(@payments::uuid[])
			and p.disputed <> @disputed`, pg.Args{"invoices": invoices, "payments": payments, "disputed": disputed})
}

// MoneyInvoice is an invoice of an account that awaits money, or on which credit notes may have left more money than it needs.
type MoneyInvoice struct {
	ID     domain.InvoiceID
	Awaits bool
}

// MoneyInvoices returns the invoices of an account that await money or may have too much of it, in the order in which they are paid: first
// the named one, then the others, oldest first.
func MoneyInvoices(ctx context.Context, q pg.Q, of domain.AccountRef, named domain.InvoiceID) ([]MoneyInvoice, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[MoneyInvoice], `
		select v.id, v.status in ('open', 'partially_paid', 'uncollectible') as awaits from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and `+ofAccount(of)+` and v.currency = @currency
			and (v.status in ('open', 'partially_paid', 'uncollectible') or v.credited > v.returned and v.paid > v.returned)
		order by v.id is distinct from @named::uuid, v.created_at, v.id
		limit @limit`, accountArgs(of, pg.Args{"named": named, "limit": maxPayable}))
}
