package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

var quotes = pg.NewTable("quotes", "q", domain.ErrQuoteNotFound, func(q *domain.Quote) pg.Fields {
	price := storePrice(q.Lines, q.Totals)
	return pg.Fields{
		Fixed: pg.F{
			"id", &q.ID, "number", &q.Number, "timezone", civil.ZoneOf(&q.Loc), "accept_attempt", &q.Accepting.Attempt,
			"currency", money.CurrencyOf(&q.Total, &q.Subtotal, &q.Discount, &q.Tax, &q.Deposit),
		},
		Values: append(pg.F{
			"status", &q.Status, "customer_id", &q.CustomerID, "lead_id", &q.LeadID, "service_id", &q.ServiceID, "unit_id", &q.UnitID,
			"package_id", &q.PackageID, "event_day", &q.Day, "event_at", &q.EventAt, "event_start", &q.Start, "event_end", &q.End,
			"guest_count", &q.Guests, "line_items", &price.lines, "pricing", &price.pricing, "subtotal", &q.Subtotal.Minor,
			"discount", &q.Discount.Minor, "tax", &q.Tax.Minor, "total", &q.Total.Minor, "deposit", &q.Deposit.Minor, "expires_at", &q.ExpiresAt,
			"sent_at", &q.SentAt, "accepted_at", &q.AcceptedAt, "declined_at", &q.DeclinedAt, "cancelled_at", &q.CancelledAt,
			"booking_id", &q.BookingID, "decline_reason", &q.DeclineReason, "notes", &q.Notes, "terms", &q.Terms, "metadata", pg.Raw(&q.Metadata),
		}, leaseFields("accept", &q.Accepting)...),
		Read: pg.F{
			"version", &q.Version, "created_at", &q.CreatedAt, "updated_at", &q.UpdatedAt, quoteBookingStatus + " booking_status", &q.BookingStatus,
			quoteInvoiceIDs + " invoice_ids", &q.InvoiceIDs,
		},
		Done: func() error {
			q.Lines = price.read(&q.Totals)
			return nil
		},
	}
})

// leaseFields are the columns of an operation in progress, without the number of the attempt.
func leaseFields(prefix string, a *domain.Accepting) pg.F {
	return pg.F{
		prefix + "_since", &a.Since, prefix + "_until", &a.Until, prefix + "_next", &a.Next, prefix + "_request", &a.Request, prefix + "_actor", &a.Actor,
	}
}

// quoteMetadata is the table of the metadata pairs by which lists are filtered.
var quoteMetadata = pg.MetadataTable{Name: "quote_metadata", Owner: "quote_id"}

// Quote reads one quote as it is stored, or returns domain.ErrQuoteNotFound. The quote may have expired in the meantime, so apply
// domain.Quote.At before you show or check it.
func Quote(ctx context.Context, q pg.Q, id domain.QuoteID) (domain.Quote, error) {
	return quotes.Get(ctx, q, id, "")
}

// QuoteForUpdate locks the row until the transaction ends.
func QuoteForUpdate(ctx context.Context, tx pg.Tx, id domain.QuoteID) (domain.Quote, error) {
	return quotes.Get(ctx, tx, id, "for update")
}

var insertQuote = quotes.InsertNow("") + quotes.Stamp

// InsertQuote writes a new quote and returns it with its times.
func InsertQuote(ctx context.Context, tx pg.Tx, q domain.Quote) (domain.Quote, error) {
	return writeQuote(ctx, tx, insertQuote, q)
}

// UpdateQuote writes what can change on a quote that the transaction has locked. It increments the version, and returns the quote
// with the new version and time.
func UpdateQuote(ctx context.Context, tx pg.Tx, q domain.Quote) (domain.Quote, error) {
	return writeQuote(ctx, tx, quotes.Update, q)
}

// writeQuote sends the statement and those of the quote's indexes in one round trip.
func writeQuote(ctx context.Context, tx pg.Tx, sql string, q domain.Quote) (domain.Quote, error) {
	b, args := &pgx.Batch{}, quotes.Args(q)
	b.Queue(sql, args).QueryRow(pg.Into(&q.Version, &q.CreatedAt, &q.UpdatedAt))
	if sql != insertQuote {
		quoteMetadata.QueueDelete(b, q.ID)
	}
	quoteMetadata.QueueInsert(b, q.ID, q.Metadata)
	if !q.LeadID.IsZero() {
		b.Queue(`update leads l set quoted_customer_id = @customer_id
			where l.tenant_id = @tenant and l.livemode = @live and l.id = @lead_id and l.quoted_customer_id is distinct from @customer_id`, args)
	}
	return pg.SendFor(ctx, tx, b, "write quote", &q)
}

// SaveAccepting writes the state of an accept, which readers do not see, together with the commit. The transaction has locked the
// quote.
func SaveAccepting(tx pg.Tx, q domain.Quote) {
	f := append(leaseFields("accept", &q.Accepting), "accept_attempt", &q.Accepting.Attempt)
	args := f.Args()
	args["id"] = q.ID
	tx.QueueAtCommit(`update quotes set `+f.Set()+` where tenant_id = @tenant and livemode = @live and id = @id`, args)
}

// LeadExists reports whether a lead exists.
func LeadExists(ctx context.Context, q pg.Q, id domain.LeadID) (bool, error) {
	found, err := pg.Many(ctx, q, pgx.RowTo[domain.LeadID], `
		select l.id from leads l where l.tenant_id = @tenant and l.livemode = @live and l.id = @id`, pg.Args{"id": id})
	return len(found) == 1, err
}

// DeleteQuote deletes a quote that the transaction has locked.
func DeleteQuote(ctx context.Context, tx pg.Tx, id domain.QuoteID) error {
	b := &pgx.Batch{}
	quoteMetadata.QueueDelete(b, id)
	b.Queue(`delete from quotes q where q.tenant_id = @tenant and q.livemode = @live and q.id = @id`, pg.Args{"id": id})
	return pg.Send(ctx, tx, b, "delete quote")
}
