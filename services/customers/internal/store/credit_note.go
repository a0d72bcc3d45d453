package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

var notes = pg.NewTable("credit_notes", "n", domain.ErrCreditNoteNotFound, func(n *domain.CreditNote) pg.Fields {
	price := storePrice(n.Lines, n.Totals)
	return pg.Fields{
		Fixed: pg.F{
			"id", &n.ID, "invoice_id", &n.InvoiceID, "customer_id", &n.CustomerID, "booking_id", &n.BookingID, "reason", &n.Reason,
			"lines", &price.lines, "pricing", &price.pricing, "currency", money.CurrencyOf(&n.Total, &n.Subtotal, &n.Discount, &n.Tax, &n.Refund),
			"subtotal", &n.Subtotal.Minor, "discount", &n.Discount.Minor, "tax", &n.Tax.Minor, "total", &n.Total.Minor, "refund", &n.Way,
		},
		Values: append(pg.F{
			"status", &n.Status, "refund_amount", &n.Refund.Minor, "returned", &n.Returned, "refund_parts", &n.Parts, "refund_id", pg.Null(&n.RefundID),
			"refund_version", &n.RefundSeen, "call_attempt", &n.Calling.Attempt,
		}, leaseFields("call", &n.Calling)...),
		Read: pg.F{"number", &n.Number, "version", &n.Version, "created_at", &n.CreatedAt, "updated_at", &n.UpdatedAt},
		Done: func() error {
			n.Lines = price.read(&n.Totals)
			return nil
		},
	}
})

// CreditNote reads one credit note, or returns domain.ErrCreditNoteNotFound.
func CreditNote(ctx context.Context, q pg.Q, id domain.CreditNoteID) (domain.CreditNote, error) {
	return notes.Get(ctx, q, id, "")
}

// CreditNoteForUpdate locks the row until the transaction ends. A transaction that also locks the invoice locks the invoice first.
func CreditNoteForUpdate(ctx context.Context, tx pg.Tx, id domain.CreditNoteID) (domain.CreditNote, error) {
	return notes.Get(ctx, tx, id, "for update")
}

// The number of a credit note is CN- and the counter with at least six digits. Like invoice numbers, it is given in the transaction
// that writes the row, behind a lock, so that numbers have no gap.
var (
	lockNoteNumbers = `select pg_advisory_xact_lock(hashtextextended('credit note numbers' || @tenant::uuid::text || @live::boolean::text, 0))`
	insertNote      = notes.InsertNow(`counter as (
		insert into credit_note_counters as n (tenant_id, livemode, next) values (@tenant, @live, 2)
		on conflict (tenant_id, livemode) do update set next = n.next + 1 returning n.next - 1 as seq) `,
		"seq", `(select seq from counter)`, "number", `(select 'CN-' || lpad(seq::text, greatest(6, length(seq::text)), '0') from counter)`) +
		` returning n.number, n.version, n.created_at, n.updated_at`
	updateNote = notes.UpdateWith(`version = n.version + @visible::boolean::int,
		updated_at = case when @visible::boolean then clock_timestamp() else n.updated_at end`) + notes.Stamp
)

// InsertCreditNote writes a new credit note with the next number. It returns the credit note with number, version and times. It locks
// the counter until the transaction ends, so it should be the last expensive statement of the transaction.
func InsertCreditNote(ctx context.Context, tx pg.Tx, n domain.CreditNote) (domain.CreditNote, error) {
	b := &pgx.Batch{}
	b.Queue(lockNoteNumbers, pg.Args{})
	b.Queue(insertNote, notes.Args(n)).QueryRow(pg.Into(&n.Number, &n.Version, &n.CreatedAt, &n.UpdatedAt))
	return pg.SendFor(ctx, tx, b, "write credit note", &n)
}

// UpdateCreditNote writes the state of the refund of a credit note that the transaction has locked. It increments the version if the
// change is visible.
func UpdateCreditNote(ctx context.Context, tx pg.Tx, n domain.CreditNote, visible bool) (domain.CreditNote, error) {
	args := notes.Args(n)
	args["visible"] = visible
	b := &pgx.Batch{}
	b.Queue(updateNote, args).QueryRow(pg.Into(&n.Version, &n.CreatedAt, &n.UpdatedAt))
	return pg.SendFor(ctx, tx, b, "update credit note", &n)
}

// PutNoteRefunds writes what a credit note refunds of charges, with the next statement, before it. The transaction holds the money of the
// booking.
func PutNoteRefunds(tx pg.Tx, n domain.CreditNote, parts []domain.NotePart) {
	charges, amounts := make([]string, len(parts)), make([]int64, len(parts))
	for i, p := range parts {
		charges[i], amounts[i] = p.Charge, p.Amount
	}
	pg.Queue(tx, "put refunds of a credit note", `insert into credit_note_refunds as r (tenant_id, livemode, charge_id, credit_note_id, invoice_id, amount)
		select @tenant, @live, l.charge, @note, @invoice, l.amount from unnest(@charges::text[], @amounts::bigint[]) l (charge, amount)
		on conflict (tenant_id, livemode, charge_id, credit_note_id) do update set amount = excluded.amount`,
		pg.Args{"note": n.ID, "invoice": n.InvoiceID, "charges": charges, "amounts": amounts})
}

// NoteRefunds returns what the credit notes of an invoice refund, by charge.
func NoteRefunds(ctx context.Context, q pg.Q, id domain.InvoiceID) (map[string]int64, error) {
	type held struct {
		Charge string
		Amount int64
	}
	list, err := pg.Many(ctx, q, pgx.RowToStructByName[held], `select r.charge_id as charge, sum(r.amount)::bigint as amount from credit_note_refunds r
		where r.tenant_id = @tenant and r.livemode = @live and r.invoice_id = @id group by r.charge_id`, pg.Args{"id": id})
	byCharge := make(map[string]int64, len(list))
	for _, h := range list {
		byCharge[h.Charge] = h.Amount
	}
	return byCharge, err
}

// PutReturned writes what the credit notes of an invoice have refunded, which no response shows. The transaction has locked the
// invoice.
func PutReturned(ctx context.Context, tx pg.Tx, id domain.InvoiceID, r domain.Returned) error {
	return pg.Exec(ctx, tx, "save refunds of an invoice", `update invoices v set returned = @all, returned_card = @card
		where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id, "all": r.All, "card": r.Card})
}

// CreditNoteFilter selects credit notes of a list. Nil fields select all.
type CreditNoteFilter struct {
	Invoice  *domain.InvoiceID
	Customer *domain.CustomerID
	Booking  *domain.BookingID
}

// CreditNotes reads one page.
func CreditNotes(ctx context.Context, q pg.Q, f CreditNoteFilter, r page.Request) (page.Rows[domain.CreditNote], error) {
	w := &page.Where{}
	w.Add(`n.tenant_id = @tenant and n.livemode = @live`)
	page.Equal(w, `n.invoice_id = ?`, f.Invoice)
	page.Equal(w, `n.customer_id = ?`, f.Customer)
	page.Equal(w, `n.booking_id = ?`, f.Booking)
	tail, args := w.Page(r, "n")
	return page.Read(ctx, q, r, notes.Scan, notes.Select+tail, args...)
}
