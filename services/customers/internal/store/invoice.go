package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// invoiceColumns also contains the payments and the state of the booking, so that one statement reads them all as of the same
// instant.
const invoiceColumns = `v.id, v.number, v.status, v.kind, v.customer_id, v.lead_id, v.quote_id, v.booking_id, v.lines, v.pricing, v.currency,
	v.subtotal, v.discount, v.tax, v.total, v.paid, v.credited, v.returned, v.returned_card, v.credit_notes, v.credited_parts, v.parts,
	v.due_at, v.billing_address, v.billing, v.notes, v.metadata, v.version,
	v.created_at, v.updated_at, v.opened_at, v.paid_at, v.voided_at, v.served_from, v.served_to,
	(select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = v.booking_id) as booking_status,
	(select json_agg(json_build_object('id', p.id, 'amount', p.amount, 'method', p.method, 'source', p.source, 'paid_at', p.paid_at,
			'reference', p.reference, 'reversed_at', p.reversed_at, 'charge', p.charge_id, 'part', p.charge_part, 'refunded', p.refunded,
			'disputed', p.disputed) order by p.position)
		from invoice_payments p where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id) as payments`

const oneInvoice = `select ` + invoiceColumns + ` from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`

// invoiceMetadata is the table of the metadata pairs by which lists are filtered.
var invoiceMetadata = pg.MetadataTable{Name: "invoice_metadata", Owner: "invoice_id"}

// storedPayment is a payment as the statement returns it.
type storedPayment struct {
	ID         string     `json:"id"`
	Amount     int64      `json:"amount"`
	Method     string     `json:"method"`
	Source     string     `json:"source"`
	PaidAt     time.Time  `json:"paid_at"`
	Reference  *string    `json:"reference"`
	ReversedAt *time.Time `json:"reversed_at"`
	Charge     string     `json:"charge"`
	Part       int        `json:"part"`
	Refunded   int64      `json:"refunded"`
	Disputed   bool       `json:"disputed"`
}

func scanInvoice(row pgx.CollectableRow) (domain.Invoice, error) {
	var v domain.Invoice
	var lines, pricing, billing, payments, credited, parts []byte
	var currency string
	var from, to *civil.Date
	err := row.Scan(&v.ID, &v.Number, &v.Status, &v.Kind, &v.CustomerID, &v.LeadID, &v.QuoteID, &v.BookingID, &lines, &pricing, &currency,
		&v.Subtotal.Minor, &v.Discount.Minor, &v.Tax.Minor, &v.Total.Minor, &v.Paid.Minor, &v.Credited, &v.Returned.All, &v.Returned.Card,
		&v.CreditNotes, &credited, &parts, &v.DueAt, &v.BillingAddress, &billing,
		&v.Notes, &v.Metadata, &v.Version, &v.CreatedAt, &v.UpdatedAt, &v.OpenedAt, &v.PaidAt, &v.VoidedAt, &from, &to,
		&v.BookingStatus, &payments)
	if err != nil {
		return domain.Invoice{}, fmt.Errorf("scan invoice: %w", err)
	}
	for _, a := range []*money.Amount{&v.Subtotal, &v.Discount, &v.Tax, &v.Total, &v.Paid} {
		a.Currency = currency
	}
	if from != nil && to != nil {
		v.Served = &domain.Days{First: *from, Last: *to}
	}
	var stored []storedPayment
	v.Lines, err = decodePrice(lines, pricing, &v.Totals)
	err = errors.Join(err, unmarshal(billing, &v.Billing), unmarshal(payments, &stored), unmarshal(credited, &v.CreditedParts),
		unmarshal(parts, &v.Parts))
	for _, p := range stored {
		one := domain.Payment{
			Amount: money.Amount{Minor: p.Amount, Currency: currency}, Method: p.Method, Source: domain.PaymentSource(p.Source),
			PaidAt: p.PaidAt.UTC(), Reference: p.Reference, ReversedAt: p.ReversedAt,
			Part: domain.ChargePart{Charge: p.Charge, Place: p.Part, Refunded: p.Refunded, Disputed: p.Disputed},
		}
		err = errors.Join(err, one.ID.Scan(p.ID))
		v.Payments = append(v.Payments, one)
	}
	if err != nil {
		return domain.Invoice{}, fmt.Errorf("invoice %s: %w", v.ID, err)
	}
	return v, nil
}

// unmarshal reads JSON. null leaves v unchanged.
func unmarshal(raw []byte, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// Invoice reads one invoice, or returns domain.ErrInvoiceNotFound. Apply domain.Invoice.At before you show it.
func Invoice(ctx context.Context, q pg.Q, id domain.InvoiceID) (domain.Invoice, error) {
	return pg.One(ctx, q, scanInvoice, domain.ErrInvoiceNotFound, oneInvoice, pg.Args{"id": id})
}

// InvoiceForUpdate locks the row until the transaction ends. A separate statement reads it after the lock. A single statement that
// waits for the lock would read the payments as of its start.
func InvoiceForUpdate(ctx context.Context, tx pg.Tx, id domain.InvoiceID) (domain.Invoice, error) {
	b := &pgx.Batch{}
	b.Queue(`select from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = @id for update`, pg.Args{"id": id})
	b.Queue(oneInvoice, pg.Args{"id": id})
	res := tx.SendBatch(ctx, b)
	_, err := res.Exec()
	var found *domain.Invoice
	if err == nil {
		found, err = pg.NextOne(res, scanInvoice)
	}
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Invoice{}, fmt.Errorf("lock invoice: %w", err)
	}
	if found == nil {
		return domain.Invoice{}, domain.ErrInvoiceNotFound
	}
	return *found, nil
}

// CustomerForReference reads a customer that a row of the transaction is to reference, and prevents its erasure until the
// transaction ends. Lock the customer before the row.
func CustomerForReference(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Customer], domain.ErrCustomerNotFound, oneCustomer+` for key share`, pg.Args{"id": id})
}

// The number of an invoice is the prefix and the counter with at least six digits.
const (
	noNumber   = `with counter as (select null::bigint as seq) `
	nextNumber = `with counter as (
		insert into invoice_counters as n (tenant_id, livemode, next) values (@tenant, @live, 2)
		on conflict (tenant_id, livemode) do update set next = n.next + 1 returning n.next - 1 as seq) `
	// lockNumbers runs before nextNumber. If transactions waited for the row itself, each commit would wake up all of them, and all
	// but one would wait again.
	lockNumbers = `select pg_advisory_xact_lock(hashtextextended('invoice numbers' || @tenant::uuid::text || @live::boolean::text, 0))`
	numbered    = `@prefix || lpad(counter.seq::text, greatest(6, length(counter.seq::text)), '0')`
)

// invoiceArgs returns the columns that are written, by name.
func invoiceArgs(v domain.Invoice, prefix string) (pg.Args, error) {
	lines, pricing, err := encodePrice(v.Lines, v.Totals)
	if err != nil {
		return nil, err
	}
	var billing []byte
	if v.Billing != nil {
		if billing, err = json.Marshal(v.Billing); err != nil {
			return nil, fmt.Errorf("billing: %w", err)
		}
	}
	credited, failed := jsonParts(v.CreditedParts)
	parts, err := jsonParts(v.Parts)
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	args := pg.Args{
		"id": v.ID, "prefix": prefix, "status": v.Status, "kind": v.Kind, "customer": v.CustomerID, "lead": v.LeadID, "quote": v.QuoteID,
		"booking": v.BookingID, "lines": string(lines), "pricing": string(pricing), "currency": v.Total.Currency, "subtotal": v.Subtotal.Minor,
		"discount": v.Discount.Minor, "tax": v.Tax.Minor, "total": v.Total.Minor, "paid": v.Paid.Minor, "due_at": v.DueAt,
		"address": v.BillingAddress, "billing": pg.JSONText(billing), "notes": v.Notes, "metadata": pg.JSONText(v.Metadata),
		"opened_at": v.OpenedAt, "paid_at": v.PaidAt, "voided_at": v.VoidedAt, "credited": v.Credited, "returned": v.Returned.All,
		"returned_card": v.Returned.Card, "credit_notes": v.CreditNotes, "credited_parts": credited, "parts": parts,
		"served_from": nil, "served_to": nil,
	}
	if v.Served != nil {
		args["served_from"], args["served_to"] = v.Served.First.UTC(), v.Served.Last.UTC()
	}
	return args, nil
}

// jsonParts returns parts as a parameter of a json column; nil becomes null.
func jsonParts(ps domain.Parts) (*string, error) {
	if ps == nil {
		return nil, nil
	}
	raw, err := json.Marshal(ps)
	if err != nil {
		return nil, fmt.Errorf("parts: %w", err)
	}
	return pg.JSONText(raw), nil
}

// InsertInvoice writes a new draft and returns it with version and times.
func InsertInvoice(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
	return insertInvoice(ctx, tx, noNumber, v, "")
}

// InsertOpened writes a new open invoice with the next number. It returns the invoice with number, version and times.
func InsertOpened(ctx context.Context, tx pg.Tx, v domain.Invoice, prefix string) (domain.Invoice, error) {
	return insertInvoice(ctx, tx, nextNumber, v, prefix)
}

func insertInvoice(ctx context.Context, tx pg.Tx, counter string, v domain.Invoice, prefix string) (domain.Invoice, error) {
	args, err := invoiceArgs(v, prefix)
	if err != nil {
		return domain.Invoice{}, err
	}
	b := &pgx.Batch{}
	if counter == nextNumber {
		b.Queue(lockNumbers, pg.Args{})
	}
	b.Queue(counter+`, stamp as materialized (select clock_timestamp() as at)
		insert into invoices as v (tenant_id, livemode, id, seq, number, status, kind, customer_id, lead_id, quote_id, booking_id, lines, pricing,
			currency, subtotal, discount, tax, total, paid, parts, due_at, billing_address, billing, notes, metadata, opened_at, paid_at,
			voided_at, served_from, served_to, created_at, updated_at)
		select @tenant, @live, @id, counter.seq, `+numbered+`, @status, @kind, @customer, @lead::uuid, @quote::uuid, @booking::uuid, @lines, @pricing,
			@currency, @subtotal, @discount, @tax, @total, @paid, @parts, @due_at::timestamptz, @address, @billing, @notes, @metadata,
			@opened_at::timestamptz, @paid_at::timestamptz, @voided_at::timestamptz, @served_from::date, @served_to::date, at, at from stamp, counter
		returning v.number, v.version, v.created_at, v.updated_at`, args)
	invoiceMetadata.QueueInsert(b, v.ID, v.Metadata)
	return stampedInvoice(ctx, tx, b, counter, v)
}

// UpdateInvoice writes what can change on an invoice that the transaction has locked, except its payments. It increments the
// version, and returns the invoice with the new version and time.
func UpdateInvoice(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
	return updateInvoice(ctx, tx, &pgx.Batch{}, noNumber, v, "")
}

// OpenInvoice is UpdateInvoice for a draft that gets the next number. It locks the counter until the transaction ends, so it should
// be the last expensive statement of the transaction.
func OpenInvoice(ctx context.Context, tx pg.Tx, v domain.Invoice, prefix string) (domain.Invoice, error) {
	return updateInvoice(ctx, tx, &pgx.Batch{}, nextNumber, v, prefix)
}

// AddPayment is UpdateInvoice with one more payment, the last of the invoice.
func AddPayment(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
	after, p := &pgx.Batch{}, v.Payments[len(v.Payments)-1]
	after.Queue(`
		insert into invoice_payments (tenant_id, livemode, invoice_id, position, id, amount, method, source, paid_at, reference,
			charge_id, charge_part, disputed)
		values (@tenant, @live, @invoice, @position, @id, @amount, @method, @source, @paid_at, @reference, nullif(@charge::text, ''), @part,
			@disputed)`, pg.Args{
		"invoice": v.ID, "position": len(v.Payments), "id": p.ID, "amount": p.Amount.Minor, "method": p.Method, "source": p.Source,
		"paid_at": p.PaidAt, "reference": p.Reference, "charge": p.Part.Charge, "part": p.Part.Place,
		"disputed": p.Part.Disputed,
	})
	return updateInvoice(ctx, tx, after, noNumber, v, "")
}

// ReducePayments is UpdateInvoice with the amounts and the reversals of all payments.
func ReducePayments(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
	after, amounts, refunded := &pgx.Batch{}, make([]int64, len(v.Payments)), make([]int64, len(v.Payments))
	reversed := make([]*time.Time, len(v.Payments))
	for i, p := range v.Payments {
		amounts[i], refunded[i], reversed[i] = p.Amount.Minor, p.Part.Refunded, p.ReversedAt
	}
	after.Queue(`
		update invoice_payments p set amount = r.amount, refunded = r.refunded, reversed_at = r.reversed_at
		from unnest(@amounts::bigint[], @refunded::bigint[], @reversed::timestamptz[]) with ordinality r (amount, refunded, reversed_at, position)
		where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = @invoice and p.position = r.position
			and (p.amount, p.refunded, p.reversed_at) is distinct from (r.amount, r.refunded, r.reversed_at)`,
		pg.Args{"invoice": v.ID, "amounts": amounts, "refunded": refunded, "reversed": reversed})
	return updateInvoice(ctx, tx, after, noNumber, v, "")
}

// RefundPayments is UpdateInvoice with the refunds and the dispute of the payments that are parts of a charge.
func RefundPayments(ctx context.Context, tx pg.Tx, v domain.Invoice, parts map[domain.PaymentID]int64, disputed bool) (domain.Invoice, error) {
	after, list, refunded := &pgx.Batch{}, slices.Collect(maps.Keys(parts)), make([]int64, len(parts))
	for i, id := range list {
		refunded[i] = parts[id]
	}
	after.Queue(`
		update invoice_payments p set refunded = r.refunded, disputed = @disputed
		from unnest(@list::uuid[], @refunded::bigint[]) r (id, refunded)
		where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = @invoice and p.id = r.id`,
		pg.Args{"invoice": v.ID, "list": list, "refunded": refunded, "disputed": disputed})
	return updateInvoice(ctx, tx, after, noNumber, v, "")
}

func updateInvoice(ctx context.Context, tx pg.Tx, after *pgx.Batch, counter string, v domain.Invoice, prefix string) (domain.Invoice, error) {
	args, err := invoiceArgs(v, prefix)
	if err != nil {
		return domain.Invoice{}, err
	}
	b := &pgx.Batch{}
	if counter == nextNumber {
		b.Queue(lockNumbers, pg.Args{})
	}
	b.Queue(counter+`
		update invoices v set seq = coalesce(v.seq, counter.seq), number = coalesce(v.number, `+numbered+`), status = @status, kind = @kind,
			customer_id = @customer, booking_id = @booking, lines = @lines, pricing = @pricing, currency = @currency, subtotal = @subtotal,
			discount = @discount, tax = @tax, total = @total, paid = @paid, credited = @credited, returned = @returned,
			returned_card = @returned_card, credit_notes = @credit_notes, credited_parts = @credited_parts, parts = @parts, due_at = @due_at, billing_address = @address,
			billing = @billing, notes = @notes, metadata = @metadata, opened_at = @opened_at, paid_at = @paid_at,
			voided_at = @voided_at, served_from = @served_from, served_to = @served_to, version = v.version + 1, updated_at = clock_timestamp()
		from counter where v.tenant_id = @tenant and v.livemode = @live and v.id = @id
		returning v.number, v.version, v.created_at, v.updated_at`, args)
	invoiceMetadata.QueueDelete(b, v.ID)
	invoiceMetadata.QueueInsert(b, v.ID, v.Metadata)
	b.QueuedQueries = append(b.QueuedQueries, after.QueuedQueries...)
	return stampedInvoice(ctx, tx, b, counter, v)
}

// stampedInvoice sends a batch in one round trip. Its first statement after the lock of the numbers returns number, version and
// times.
func stampedInvoice(ctx context.Context, tx pg.Tx, b *pgx.Batch, counter string, v domain.Invoice) (domain.Invoice, error) {
	res := tx.SendBatch(ctx, b)
	var err error
	if counter == nextNumber {
		_, err = res.Exec()
	}
	if err == nil {
		err = res.QueryRow().Scan(&v.Number, &v.Version, &v.CreatedAt, &v.UpdatedAt)
	}
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Invoice{}, fmt.Errorf("write invoice: %w", err)
	}
	return v, nil
}

// DeleteInvoice deletes an invoice without payments that the transaction has locked.
func DeleteInvoice(ctx context.Context, tx pg.Tx, id domain.InvoiceID) error {
	b := &pgx.Batch{}
	invoiceMetadata.QueueDelete(b, id)
	b.Queue(`delete from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("delete invoice: %w", err)
	}
	return nil
}
