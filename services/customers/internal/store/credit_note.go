package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

const (
	noteColumns = `n.id, n.number, n.status, n.invoice_id, n.customer_id, n.booking_id, n.reason, n.lines, n.pricing, n.currency, n.subtotal,
	n.discount, n.tax, n.total, n.refund, n.refund_amount, n.returned, n.refund_parts, coalesce(n.refund_id, ''), n.refund_version, n.version,
	n.created_at, n.updated_at, n.call_attempt, n.call_since, n.call_until, n.call_next, n.call_request, n.call_actor`
	oneNote = `select ` + noteColumns + ` from credit_notes n where n.tenant_id = @tenant and n.livemode = @live and n.id = @id`
)

func scanCreditNote(row pgx.CollectableRow) (domain.CreditNote, error) {
	var n domain.CreditNote
	var lines, pricing, parts []byte
	var currency string
	err := row.Scan(&n.ID, &n.Number, &n.Status, &n.InvoiceID, &n.CustomerID, &n.BookingID, &n.Reason, &lines, &pricing, &currency, &n.Subtotal.Minor,
		&n.Discount.Minor, &n.Tax.Minor, &n.Total.Minor, &n.Way, &n.Refund.Minor, &n.Returned, &parts, &n.RefundID, &n.RefundSeen, &n.Version,
		&n.CreatedAt, &n.UpdatedAt, &n.Calling.Attempt, &n.Calling.Since, &n.Calling.Until, &n.Calling.Next, &n.Calling.Request, &n.Calling.Actor)
	if err != nil {
		return domain.CreditNote{}, fmt.Errorf("scan credit note: %w", err)
	}
	for _, a := range []*money.Amount{&n.Subtotal, &n.Discount, &n.Tax, &n.Total, &n.Refund} {
		a.Currency = currency
	}
	n.Lines, err = decodePrice(lines, pricing, &n.Totals)
	return n, errors.Join(err, unmarshal(parts, &n.Parts))
}

// CreditNote reads one credit note, or returns domain.ErrCreditNoteNotFound.
func CreditNote(ctx context.Context, q pg.Q, id domain.CreditNoteID) (domain.CreditNote, error) {
	return pg.One(ctx, q, scanCreditNote, domain.ErrCreditNoteNotFound, oneNote, pg.Args{"id": id})
}

// CreditNoteForUpdate locks the row until the transaction ends. A transaction that also locks the invoice locks the invoice first.
func CreditNoteForUpdate(ctx context.Context, tx pg.Tx, id domain.CreditNoteID) (domain.CreditNote, error) {
	return pg.One(ctx, tx, scanCreditNote, domain.ErrCreditNoteNotFound, oneNote+` for update`, pg.Args{"id": id})
}

// The number of a credit note is CN- and the counter with at least six digits. Like invoice numbers, it is given in the transaction
// that writes the row, behind a lock, so that numbers have no gap.
const (
	lockNoteNumbers = `select pg_advisory_xact_lock(hashtextextended('credit note numbers' || @tenant::uuid::text || @live::boolean::text, 0))`
	insertNote      = `with counter as (
		insert into credit_note_counters as n (tenant_id, livemode, next) values (@tenant, @live, 2)
		on conflict (tenant_id, livemode) do update set next = n.next + 1 returning n.next - 1 as seq),
		stamp as materialized (select clock_timestamp() as at)
	insert into credit_notes as n (tenant_id, livemode, id, seq, number, status, invoice_id, customer_id, booking_id, reason, lines, pricing,
		currency, subtotal, discount, tax, total, refund, refund_amount, returned, refund_parts, created_at, updated_at,
		call_attempt, call_since, call_until, call_next, call_request, call_actor)
	select @tenant, @live, @id, counter.seq, 'CN-' || lpad(counter.seq::text, greatest(6, length(counter.seq::text)), '0'), @status, @invoice,
		@customer, @booking::uuid, @reason, @lines, @pricing, @currency, @subtotal, @discount, @tax, @total, @refund, @refund_amount, @returned,
		@parts, at, at, @attempt, @since::timestamptz, @until::timestamptz, @next::timestamptz, @request, @actor
	from stamp, counter
	returning n.number, n.version, n.created_at, n.updated_at`
)

func creditNoteArgs(n domain.CreditNote) (pg.Args, error) {
	lines, pricing, err := encodePrice(n.Lines, n.Totals)
	if err != nil {
		return nil, err
	}
	parts, err := json.Marshal(n.Parts)
	if err != nil {
		return nil, fmt.Errorf("parts: %w", err)
	}
	return pg.Args{
		"id": n.ID, "status": n.Status, "invoice": n.InvoiceID, "customer": n.CustomerID, "booking": n.BookingID, "reason": n.Reason,
		"lines": string(lines), "pricing": string(pricing), "currency": n.Total.Currency, "subtotal": n.Subtotal.Minor, "discount": n.Discount.Minor,
		"tax": n.Tax.Minor, "total": n.Total.Minor, "refund": n.Way, "refund_amount": n.Refund.Minor, "returned": n.Returned, "parts": string(parts),
		"refund_id": n.RefundID, "refund_version": n.RefundSeen, "attempt": n.Calling.Attempt, "since": n.Calling.Since, "until": n.Calling.Until,
		"next": n.Calling.Next, "request": n.Calling.Request, "actor": n.Calling.Actor,
	}, nil
}

// InsertCreditNote writes a new credit note with the next number. It returns the credit note with number, version and times. It locks
// the counter until the transaction ends, so it should be the last expensive statement of the transaction.
func InsertCreditNote(ctx context.Context, tx pg.Tx, n domain.CreditNote) (domain.CreditNote, error) {
	args, err := creditNoteArgs(n)
	if err != nil {
		return domain.CreditNote{}, err
	}
	b := &pgx.Batch{}
	b.Queue(lockNoteNumbers, pg.Args{})
	b.Queue(insertNote, args)
	res := tx.SendBatch(ctx, b)
	if _, err = res.Exec(); err == nil {
		err = res.QueryRow().Scan(&n.Number, &n.Version, &n.CreatedAt, &n.UpdatedAt)
	}
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.CreditNote{}, fmt.Errorf("write credit note: %w", err)
	}
	return n, nil
}

// UpdateCreditNote writes the state of the refund of a credit note that the transaction has locked. It increments the version if the
// change is visible.
func UpdateCreditNote(ctx context.Context, tx pg.Tx, n domain.CreditNote, visible bool) (domain.CreditNote, error) {
	args, err := creditNoteArgs(n)
	if err != nil {
		return domain.CreditNote{}, err
	}
	args["visible"] = visible
	at, err := pg.One(ctx, tx, pgx.RowToStructByName[stamp], domain.ErrCreditNoteNotFound, `
		update credit_notes n set status = @status, refund_amount = @refund_amount, refund_parts = @parts, returned = @returned, refund_id = nullif(@refund_id::text, ''), refund_version = @refund_version,
			call_attempt = @attempt, call_since = @since, call_until = @until, call_next = @next, call_request = @request, call_actor = @actor,
			version = n.version + @visible::boolean::int,
			updated_at = case when @visible::boolean then clock_timestamp() else n.updated_at end
		where n.tenant_id = @tenant and n.livemode = @live and n.id = @id
		returning n.version, n.updated_at`, args)
	if err != nil {
		return domain.CreditNote{}, fmt.Errorf("update credit note: %w", err)
	}
	n.Version, n.UpdatedAt = at.Version, at.UpdatedAt
	return n, nil
}

// stamp is the version and the time of a change.
type stamp struct {
	Version   int64
	UpdatedAt time.Time
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
	_, err := tx.Exec(ctx, `update invoices v set returned = @all, returned_card = @card
		where v.tenant_id = @tenant and v.livemode = @live and v.id = @id`, pg.Args{"id": id, "all": r.All, "card": r.Card})
	if err != nil {
		return fmt.Errorf("save refunds of an invoice: %w", err)
	}
	return nil
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
	if f.Invoice != nil {
		w.Add(`n.invoice_id = ?`, *f.Invoice)
	}
	if f.Customer != nil {
		w.Add(`n.customer_id = ?`, *f.Customer)
	}
	if f.Booking != nil {
		w.Add(`n.booking_id = ?`, *f.Booking)
	}
	tail, args := w.Page(r, "n")
	return page.Read(ctx, q, r, scanCreditNote, `select `+noteColumns+` from credit_notes n `+tail, args...)
}

// CreditNotesLeft returns up to limit credit notes of all tenants and modes whose request to payments a worker has to repeat, oldest
// first. It skips the owners in except. tx has the worker role.
func CreditNotesLeft(ctx context.Context, tx pg.Tx, real time.Time, except []operation.Owner, limit int) ([]Left[domain.CreditNoteID], error) {
	tenants, modes := operation.Owners(except)
	return pg.Many(ctx, tx, pgx.RowToStructByName[Left[domain.CreditNoteID]], `
		select n.tenant_id, n.livemode, n.id from credit_notes n
		where n.call_until is not null and n.call_next <= $3`+operation.Outside("n")+`
		order by n.call_next, n.id limit $4`, tenants, modes, real, limit)
}

// UnfinishedNoteRefunds is UnfinishedAccepts for the refunds of credit notes.
func UnfinishedNoteRefunds(ctx context.Context, tx pg.Tx, real time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, unfinished+`
		select n.call_since as since, n.call_until as until from credit_notes n where n.call_until is not null) step`+left, real, domain.Lease)
}
