package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// invoices also reads the payments and the state of the booking, so that one statement reads them all as of the same instant.
var invoices = pg.NewTable("invoices", "v", domain.ErrInvoiceNotFound, func(v *domain.Invoice) pg.Fields {
	price := storePrice(v.Lines, v.Totals)
	var from, to *civil.Date
	if v.Served != nil {
		from, to = &v.Served.First, &v.Served.Last
	}
	var payments []storedPayment
	return pg.Fields{
		Fixed: pg.F{"id", &v.ID, "lead_id", &v.LeadID, "quote_id", &v.QuoteID},
		Values: pg.F{
			"status", &v.Status, "kind", &v.Kind, "customer_id", &v.CustomerID, "booking_id", &v.BookingID, "lines", &price.lines,
			"pricing", &price.pricing, "currency", money.CurrencyOf(&v.Total, &v.Subtotal, &v.Discount, &v.Tax, &v.Paid),
			"subtotal", &v.Subtotal.Minor, "discount", &v.Discount.Minor, "tax", &v.Tax.Minor, "total", &v.Total.Minor, "paid", &v.Paid.Minor,
			"credited", &v.Credited, "returned", &v.Returned.All, "returned_card", &v.Returned.Card, "credit_notes", &v.CreditNotes,
			"credited_parts", pg.JSON(&v.CreditedParts), "parts", pg.JSON(&v.Parts), "due_at", &v.DueAt, "billing_address", &v.BillingAddress,
			"billing", &v.Billing, "notes", &v.Notes, "metadata", pg.Raw(&v.Metadata), "opened_at", &v.OpenedAt, "paid_at", &v.PaidAt,
			"voided_at", &v.VoidedAt, "served_from", &from, "served_to", &to,
		},
		Read: pg.F{
			"number", &v.Number, "version", &v.Version, "created_at", &v.CreatedAt, "updated_at", &v.UpdatedAt,
			`(select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = v.booking_id) as booking_status`,
			&v.BookingStatus,
			`(select json_agg(json_build_object('id', p.id, 'amount', p.amount, 'method', p.method, 'source', p.source, 'paid_at', p.paid_at,
					'reference', p.reference, 'reversed_at', p.reversed_at, 'charge', p.charge_id, 'part', p.charge_part, 'refunded', p.refunded,
					'disputed', p.disputed) order by p.position)
				from invoice_payments p where p.tenant_id = @tenant and p.livemode = @live and p.invoice_id = v.id) as payments`,
			&payments,
		},
		Done: func() error {
			v.Lines = price.read(&v.Totals)
			if from != nil && to != nil {
				v.Served = &domain.Days{First: *from, Last: *to}
			}
			for _, p := range payments {
				one := domain.Payment{
					Amount: money.Amount{Minor: p.Amount, Currency: v.Total.Currency}, Method: p.Method, Source: domain.PaymentSource(p.Source),
					PaidAt: p.PaidAt.UTC(), Reference: p.Reference, ReversedAt: p.ReversedAt,
					Part: domain.ChargePart{Charge: p.Charge, Place: p.Part, Refunded: p.Refunded, Disputed: p.Disputed},
				}
				if err := one.ID.Scan(p.ID); err != nil {
					return err
				}
				v.Payments = append(v.Payments, one)
			}
			return nil
		},
	}
})

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

// Invoice reads one invoice, or returns domain.ErrInvoiceNotFound. Apply domain.Invoice.At before you show it.
func Invoice(ctx context.Context, q pg.Q, id domain.InvoiceID) (domain.Invoice, error) {
	return invoices.Get(ctx, q, id, "")
}

// InvoiceForUpdate locks the row until the transaction ends.
func InvoiceForUpdate(ctx context.Context, tx pg.Tx, id domain.InvoiceID) (domain.Invoice, error) {
	return invoices.Get(ctx, tx, id, "for update")
}

// CustomerForReference reads a customer that a row of the transaction is to reference, and prevents its erasure until the
// transaction ends. Lock the customer before the row.
func CustomerForReference(ctx context.Context, tx pg.Tx, id domain.CustomerID) (domain.Customer, error) {
	return customers.One(ctx, tx, thisCustomer+` for key share`, pg.Args{"id": id})
}

// The number of an invoice is the prefix and the counter with at least six digits.
const (
	noNumber   = `counter as (select null::bigint as seq) `
	nextNumber = `counter as (
		insert into invoice_counters as n (tenant_id, livemode, next) values (@tenant, @live, 2)
		on conflict (tenant_id, livemode) do update set next = n.next + 1 returning n.next - 1 as seq) `
	// lockNumbers runs before nextNumber. If transactions waited for the row itself, each commit would wake up all of them, and all
	// but one would wait again.
	lockNumbers = `select pg_advisory_xact_lock(hashtextextended('invoice numbers' || @tenant::uuid::text || @live::boolean::text, 0))`
	seq         = `(select seq from counter)`
	number      = `(select @prefix || lpad(seq::text, greatest(6, length(seq::text)), '0') from counter)`
	nextVersion = `seq = coalesce(v.seq, ` + seq + `), number = coalesce(v.number, ` + number + `), version = v.version + 1, updated_at = clock_timestamp()`
)

var (
	insertDraft   = invoices.InsertNow(noNumber, "seq", seq, "number", number)
	insertOpened  = invoices.InsertNow(nextNumber, "seq", seq, "number", number)
	updateInvoice = `with ` + noNumber + invoices.UpdateWith(nextVersion)
	openInvoice   = `with ` + nextNumber + invoices.UpdateWith(nextVersion)
)

// InsertInvoice writes a new draft and returns it with version and times.
func InsertInvoice(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
	return writeInvoice(ctx, tx, insertDraft, v, "", &pgx.Batch{})
}

// InsertOpened writes a new open invoice with the next number. It returns the invoice with number, version and times.
func InsertOpened(ctx context.Context, tx pg.Tx, v domain.Invoice, prefix string) (domain.Invoice, error) {
	return writeInvoice(ctx, tx, insertOpened, v, prefix, &pgx.Batch{})
}

// UpdateInvoice writes what can change on an invoice that the transaction has locked, except its payments. It increments the
// version, and returns the invoice with the new version and time.
func UpdateInvoice(ctx context.Context, tx pg.Tx, v domain.Invoice) (domain.Invoice, error) {
	return writeInvoice(ctx, tx, updateInvoice, v, "", &pgx.Batch{})
}

// OpenInvoice is UpdateInvoice for a draft that gets the next number. It locks the counter until the transaction ends, so it should
// be the last expensive statement of the transaction.
func OpenInvoice(ctx context.Context, tx pg.Tx, v domain.Invoice, prefix string) (domain.Invoice, error) {
	return writeInvoice(ctx, tx, openInvoice, v, prefix, &pgx.Batch{})
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
	return writeInvoice(ctx, tx, updateInvoice, v, "", after)
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
	return writeInvoice(ctx, tx, updateInvoice, v, "", after)
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
	return writeInvoice(ctx, tx, updateInvoice, v, "", after)
}

// writeInvoice sends the statement, those of the invoice's metadata and those of after in one round trip. It returns the invoice with
// number, version and times.
func writeInvoice(ctx context.Context, tx pg.Tx, sql string, v domain.Invoice, prefix string, after *pgx.Batch) (domain.Invoice, error) {
	args := invoices.Args(v)
	args["prefix"] = prefix
	b := &pgx.Batch{}
	if sql == insertOpened || sql == openInvoice {
		b.Queue(lockNumbers, pg.Args{})
	}
	b.Queue(sql+invoices.Stamp+`, v.number`, args).QueryRow(pg.Into(&v.Version, &v.CreatedAt, &v.UpdatedAt, &v.Number))
	if sql != insertDraft && sql != insertOpened {
		invoiceMetadata.QueueDelete(b, v.ID)
	}
	invoiceMetadata.QueueInsert(b, v.ID, v.Metadata)
	b.QueuedQueries = append(b.QueuedQueries, after.QueuedQueries...)
	return pg.SendFor(ctx, tx, b, "write invoice", &v)
}

// DeleteInvoice deletes an invoice without payments that the transaction has locked.
func DeleteInvoice(ctx context.Context, tx pg.Tx, id domain.InvoiceID) error {
	b := &pgx.Batch{}
	invoiceMetadata.QueueDelete(b, id)
	b.Queue(`delete from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id})
	return pg.Send(ctx, tx, b, "delete invoice")
}
