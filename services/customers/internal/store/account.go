package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// LockAccount prevents other transactions from allocating money of an account until this one ends. The lock is taken with the next
// statement, before it. Call it before you lock an invoice.
func LockAccount(tx pg.Tx, of domain.AccountRef) {
	pg.Queue(tx, "hold money of an account", `select `+lockAccount("@account"), pg.Args{"account": of.UUID()})
}

// LockAccountOfInvoice is LockAccount for the account of an invoice.
func LockAccountOfInvoice(tx pg.Tx, id domain.InvoiceID) {
	pg.Queue(tx, "hold money of an invoice", `select `+lockAccount("("+invoiceAccount+")")+` from invoices v
		where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id})
}

func lockAccount(account string) string {
	return `pg_advisory_xact_lock(hashtextextended('money of ' || @tenant::uuid::text || @live::boolean::text || ` + account + `::uuid::text, 0))`
}

// ofAccount is the condition for the invoices v of an account.
func ofAccount(of domain.AccountRef) string {
	if of.Booking.IsZero() {
		return `v.id = @account`
	}
	return `v.booking_id = @account`
}

// accountArgs adds the account to the arguments of a statement.
func accountArgs(of domain.AccountRef, args pg.Args) pg.Args {
	args["account"], args["currency"] = of.UUID(), of.Currency
	return args
}

const accountVersion = `select a.version from money_accounts a
	where a.tenant_id = @tenant and a.livemode = @live and a.id = @account and a.currency = @currency`

// AccountVersion returns the version of an account that was applied last; 0: none.
func AccountVersion(ctx context.Context, q pg.Q, of domain.AccountRef) (int64, error) {
	return pg.One(ctx, q, pgx.RowTo[int64], nil, `select coalesce((`+accountVersion+`), 0)`, accountArgs(of, pg.Args{}))
}

// AccountForUpdate holds the money of an account. It returns the version that was applied last, and those of the given charges that are
// stored.
func AccountForUpdate(ctx context.Context, tx pg.Tx, of domain.AccountRef, charges []string) (version int64, known map[string]StoredCharge, err error) {
	LockAccount(tx, of)
	var list []StoredCharge
	b := &pgx.Batch{}
	b.Queue(`select coalesce((`+accountVersion+`), 0)`, accountArgs(of, pg.Args{})).QueryRow(pg.Into(&version))
	b.Queue(`select c.id, c.amount, c.refunded, c.directed, c.disputed, c.reference, c.version, c.call_until is null as recorded from charges c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = any(@charges::text[])`, pg.Args{"charges": charges}).
		Query(pg.ListInto(&list, pgx.RowToStructByName[StoredCharge]))
	err = pg.Send(ctx, tx, b, "read account")
	known = make(map[string]StoredCharge, len(list))
	for _, c := range list {
		known[c.ID] = c
	}
	return version, known, err
}

// PutAccount writes the version of an account that was applied, with the next statement, before it.
func PutAccount(tx pg.Tx, a domain.Account) {
	pg.Queue(tx, "put account", `
		insert into money_accounts as a (tenant_id, livemode, id, currency, returned, version) values (@tenant, @live, @account, @currency, @returned, @version)
		on conflict (tenant_id, livemode, id, currency) do update set returned = excluded.returned, version = excluded.version`,
		accountArgs(a.AccountRef, pg.Args{"returned": a.Returned, "version": a.Applied()}))
}

// invoiceAccount is the account of an invoice v. Under row-level security, an index cannot be searched for the result of coalesce.
const invoiceAccount = `case when v.booking_id is null then v.id else v.booking_id end`

// InvoiceAccount is the account of an invoice.
type InvoiceAccount struct {
	domain.AccountRef

	Version int64 // that was applied last
	Calling bool  // a client records a payment, and payments has not responded yet
}

// AccountOfInvoice reads the account of an invoice.
func AccountOfInvoice(ctx context.Context, q pg.Q, id domain.InvoiceID) (InvoiceAccount, error) {
	return pg.One(ctx, q, func(row pgx.CollectableRow) (a InvoiceAccount, err error) {
		var booking domain.BookingID
		var currency string
		err = row.Scan(&booking, &currency, &a.Version, &a.Calling)
		a.AccountRef = domain.AccountOf(booking, id, currency)
		return a, err
	}, domain.ErrInvoiceNotFound, `
		select v.booking_id, v.currency, coalesce((select a.version from money_accounts a
				where a.tenant_id = @tenant and a.livemode = @live and a.id = `+invoiceAccount+` and a.currency = v.currency), 0),
			exists (select from charges c where c.tenant_id = @tenant and c.livemode = @live and c.booking_id = `+invoiceAccount+`
				and c.call_until is not null)
		from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id})
}

// HandedBack reads what was handed back of an account outside the gateway, except by credit notes, and the money on its invoices. Money
// that a credit note is about to refund is still on its invoice: payments may have recorded something else first.
func HandedBack(ctx context.Context, q pg.Q, of domain.AccountRef) (domain.HandedBack, error) {
	return pg.One(ctx, q, pgx.RowToStructByPos[domain.HandedBack], pgx.ErrNoRows, `
		with a as (select coalesce(sum(a.returned), 0)::bigint as returned, coalesce(sum(a.returned_free), 0)::bigint as free from money_accounts a
				where a.tenant_id = @tenant and a.livemode = @live and a.id = @account and a.currency = @currency),
			c as (select coalesce(sum(c.refunded), 0)::bigint as refunded from charges c
				where c.tenant_id = @tenant and c.livemode = @live and c.booking_id = @account and coalesce(c.currency, @currency) = @currency),
			v as (select v.id, v.paid - v.returned as paid, v.returned_card from invoices v
				where v.tenant_id = @tenant and v.livemode = @live and `+ofAccount(of)+` and v.currency = @currency and v.paid > 0),
			n as (select coalesce(sum(n.returned) filter (where n.refund = 'manual' and n.call_until is null), 0)::bigint as returned,
					coalesce(sum(n.returned) filter (where n.call_until is not null), 0)::bigint as begun from credit_notes n
				join v on v.id = n.invoice_id where n.tenant_id = @tenant and n.livemode = @live),
			p as (select coalesce(sum(p.refunded), 0)::bigint as refunded from v
				join invoice_payments p on p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id)
		select greatest(0, a.returned - c.refunded - n.returned), a.free,
			(n.begun + coalesce((select sum(v.paid) from v), 0) - greatest(0, p.refunded - coalesce((select sum(v.returned_card) from v), 0)))::bigint
		from a, c, n, p`, accountArgs(of, pg.Args{}))
}

// AddReturnedFree adds to the amount that was handed back of money on no invoice.
func AddReturnedFree(tx pg.Tx, of domain.AccountRef, more int64) {
	pg.Queue(tx, "save what was handed back", `update money_accounts a set returned_free = a.returned_free + @more
		where a.tenant_id = @tenant and a.livemode = @live and a.id = @account and a.currency = @currency`, accountArgs(of, pg.Args{"more": more}))
}

// EndManualRefund writes that payments has recorded the manual refund of a credit note, with the next statement, before it.
func EndManualRefund(tx pg.Tx, id domain.CreditNoteID) {
	pg.Queue(tx, "end refund of a credit note", `
		update credit_notes n set call_since = null, call_until = null, call_next = null, call_request = '', call_actor = ''
		where n.tenant_id = @tenant and n.livemode = @live and n.id = @id and n.refund = 'manual' and n.call_until is not null`, pg.Args{"id": id})
}

// receipts are the charges of payments that clients record.
var receipts = pg.NewTable("charges", "c", domain.ErrPaymentNotFound, func(r *domain.Receipt) pg.Fields {
	return pg.Fields{Written: append(pg.F{
		"id", chargeID(r.ID), "booking_id", r.Account.UUID(), "currency", r.Account.Currency, "method", r.Method, "reference", r.Reference,
		"paid_at", r.PaidAt, "invoice_id", r.Invoice, "call_amount", r.Amount, "call_attempt", r.Calling.Attempt,
	}, leaseFields("call", &r.Calling)...)}
})

// InsertReceipt writes a payment that payments has not recorded yet, with the commit of the transaction.
func InsertReceipt(tx pg.Tx, r domain.Receipt) {
	tx.QueueAtCommit(receipts.Insert("amount", "0", "unapplied", "0"), receipts.Args(r))
}

// PutReceiptCall writes the attempt to record a payment.
func PutReceiptCall(tx pg.Tx, r domain.Receipt) {
	tx.QueueAtCommit(`
		update charges c set call_attempt = @call_attempt, call_since = @call_since, call_until = @call_until, call_next = @call_next
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and c.call_until is not null`, receipts.Args(r))
}

// chargeID returns the id of the charge of a payment that a client recorded.
func chargeID(id domain.PaymentID) string {
	_, key := ids.Stored(id.String())
	return key
}

const oneReceipt = `
	select c.id::uuid, v.id, v.booking_id, v.currency, coalesce(c.call_amount, c.amount), c.method, c.reference, c.paid_at, c.call_attempt, c.call_since,
		c.call_until, c.call_next, c.call_request, c.call_actor
	from charges c join invoices v on v.tenant_id = @tenant and v.livemode = @live and v.id = c.invoice_id
	where c.tenant_id = @tenant and c.livemode = @live and c.method <> 'card' `

func scanReceipt(row pgx.CollectableRow) (r domain.Receipt, err error) {
	var booking domain.BookingID
	var currency string
	err = row.Scan(&r.ID, &r.Invoice, &booking, &currency, &r.Amount, &r.Method, &r.Reference, &r.PaidAt, &r.Calling.Attempt, &r.Calling.Since,
		&r.Calling.Until, &r.Calling.Next, &r.Calling.Request, &r.Calling.Actor)
	r.Account = domain.AccountOf(booking, r.Invoice, currency)
	return r, err
}

// ReceiptForUpdate locks a payment that a client records, or returns domain.ErrPaymentNotFound.
func ReceiptForUpdate(ctx context.Context, tx pg.Tx, id domain.PaymentID) (domain.Receipt, error) {
	return pg.One(ctx, tx, scanReceipt, domain.ErrPaymentNotFound, oneReceipt+`and c.id = @id for update of c`, pg.Args{"id": chargeID(id)})
}

// DeleteReceipt deletes a payment that payments has not recorded and will not record.
func DeleteReceipt(ctx context.Context, tx pg.Tx, id domain.PaymentID) error {
	return pg.Exec(ctx, tx, "delete payment", `delete from charges c
		where c.tenant_id = @tenant and c.livemode = @live and c.id = @id and c.call_until is not null`, pg.Args{"id": chargeID(id)})
}

// Dues reads the sums of the opened, not voided invoices of an account, and the named invoice, if it is not zero and exists, all as of the
// same instant.
func Dues(ctx context.Context, q pg.Q, of domain.AccountRef, named domain.InvoiceID) (domain.Dues, error) {
	const due = `case when v.status = 'void' then 0 else greatest(0, v.total - v.credited - v.paid + v.returned) end as due`
	return pg.One(ctx, q, func(row pgx.CollectableRow) (d domain.Dues, err error) {
		var status, currency *string
		var rest *int64
		var n domain.NamedInvoice
		err = row.Scan(&d.Version, &d.Invoiced, &d.Due, &d.Placed, &status, &rest, &n.Booking, &currency)
		if err == nil && status != nil {
			n.Status, n.Due, n.Currency = domain.InvoiceStatus(*status), *rest, *currency
			d.Named = &n
		}
		return d, err
	}, pgx.ErrNoRows, `
		select coalesce((`+accountVersion+`), 0), s.invoiced, s.due, s.placed, n.status, n.due, n.booking_id, n.currency
		from (select coalesce(sum(v.total), 0)::bigint as invoiced, coalesce(sum(v.due), 0)::bigint as due, coalesce(sum(v.paid), 0)::bigint as placed
			from (select v.total, v.paid, `+due+` from invoices v
				where v.tenant_id = @tenant and v.livemode = @live and `+ofAccount(of)+` and v.currency = @currency
					and v.status not in ('draft', 'void')) v) s
		left join (select v.status, v.booking_id, v.currency, `+due+` from invoices v
			where v.tenant_id = @tenant and v.livemode = @live and v.id = @named::uuid) n on true`, accountArgs(of, pg.Args{"named": named}))
}
