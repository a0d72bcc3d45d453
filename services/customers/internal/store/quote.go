package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

const quoteColumns = `q.id, q.number, q.status, q.customer_id, q.lead_id, q.service_id, q.unit_id, q.package_id,
	q.event_day, q.event_at, q.event_start, q.event_end, q.guest_count, q.timezone, q.line_items, q.pricing, q.currency, q.subtotal, q.discount, q.tax, q.total,
	q.deposit, q.expires_at, q.sent_at, q.accepted_at, q.declined_at, q.cancelled_at, q.booking_id, q.decline_reason, q.notes, q.terms,
	q.metadata, q.accept_attempt, q.accept_since, q.accept_until, q.accept_next, q.accept_request, q.accept_actor, q.version, q.created_at, q.updated_at,
	` + quoteBookingStatus + ` booking_status, ` + quoteInvoiceIDs + ` invoice_ids`

func scanQuote(row pgx.CollectableRow) (domain.Quote, error) {
	var q domain.Quote
	var zone, currency string
	var lines, pricing []byte
	err := row.Scan(&q.ID, &q.Number, &q.Status, &q.CustomerID, &q.LeadID, &q.ServiceID, &q.UnitID, &q.PackageID,
		&q.Day, &q.EventAt, &q.Start, &q.End, &q.Guests, &zone, &lines, &pricing, &currency, &q.Subtotal.Minor, &q.Discount.Minor, &q.Tax.Minor, &q.Total.Minor,
		&q.Deposit.Minor, &q.ExpiresAt, &q.SentAt, &q.AcceptedAt, &q.DeclinedAt, &q.CancelledAt, &q.BookingID, &q.DeclineReason, &q.Notes, &q.Terms,
		&q.Metadata, &q.Accepting.Attempt, &q.Accepting.Since, &q.Accepting.Until, &q.Accepting.Next, &q.Accepting.Request, &q.Accepting.Actor, &q.Version, &q.CreatedAt, &q.UpdatedAt,
		&q.BookingStatus, &q.InvoiceIDs)
	if err != nil {
		return domain.Quote{}, fmt.Errorf("scan quote: %w", err)
	}
	q.Subtotal.Currency, q.Discount.Currency, q.Tax.Currency, q.Total.Currency, q.Deposit.Currency = currency, currency, currency, currency, currency
	if q.Loc, err = civil.Location(zone); err != nil {
		return domain.Quote{}, fmt.Errorf("quote %s: %w", q.ID, err)
	}
	if q.Lines, err = decodePrice(lines, pricing, &q.Totals); err != nil {
		return domain.Quote{}, fmt.Errorf("quote %s: %w", q.ID, err)
	}
	return q, nil
}

const oneQuote = `select ` + quoteColumns + ` from quotes q where q.tenant_id = @tenant and q.livemode = @live and q.id = @id`

// quoteMetadata is the table of the metadata pairs by which lists are filtered.
var quoteMetadata = pg.MetadataTable{Name: "quote_metadata", Owner: "quote_id"}

// Quote reads one quote as it is stored, or returns domain.ErrQuoteNotFound. The quote may have expired in the meantime, so apply
// domain.Quote.At before you show or check it.
func Quote(ctx context.Context, q pg.Q, id domain.QuoteID) (domain.Quote, error) {
	return pg.One(ctx, q, scanQuote, domain.ErrQuoteNotFound, oneQuote, pg.Args{"id": id})
}

// QuoteForUpdate locks the row until the transaction ends.
func QuoteForUpdate(ctx context.Context, tx pg.Tx, id domain.QuoteID) (domain.Quote, error) {
	return pg.One(ctx, tx, scanQuote, domain.ErrQuoteNotFound, oneQuote+` for update`, pg.Args{"id": id})
}

// quoteArgs returns the columns that are written, by name.
func quoteArgs(q domain.Quote) (pg.Args, error) {
	lines, pricing, err := encodePrice(q.Lines, q.Totals)
	if err != nil {
		return nil, err
	}
	args := pg.Args{
		"id": q.ID, "number": q.Number, "status": q.Status, "customer_id": q.CustomerID, "lead_id": q.LeadID, "service_id": q.ServiceID,
		"unit_id": q.UnitID, "package_id": q.PackageID, "event_day": nil, "event_at": q.EventAt, "event_start": q.Start, "event_end": q.End, "guest_count": q.Guests,
		"timezone": q.Loc.String(), "line_items": pg.JSONText(lines), "pricing": pg.JSONText(pricing), "currency": q.Total.Currency, "subtotal": q.Subtotal.Minor,
		"discount": q.Discount.Minor, "tax": q.Tax.Minor, "total": q.Total.Minor, "deposit": q.Deposit.Minor, "expires_at": q.ExpiresAt,
		"sent_at": q.SentAt, "accepted_at": q.AcceptedAt, "declined_at": q.DeclinedAt, "cancelled_at": q.CancelledAt, "booking_id": q.BookingID,
		"decline_reason": q.DeclineReason, "notes": q.Notes, "terms": q.Terms, "metadata": pg.JSONText(q.Metadata),
		"accept_since": q.Accepting.Since, "accept_until": q.Accepting.Until, "accept_next": q.Accepting.Next, "accept_request": q.Accepting.Request,
		"accept_actor": q.Accepting.Actor,
	}
	if q.Day != nil {
		args["event_day"] = q.Day.UTC()
	}
	return args, nil
}

// InsertQuote writes a new quote and returns it with its times.
func InsertQuote(ctx context.Context, tx pg.Tx, q domain.Quote) (domain.Quote, error) {
	args, err := quoteArgs(q)
	if err != nil {
		return domain.Quote{}, err
	}
	b := &pgx.Batch{}
	b.Queue(`
		with stamp as materialized (select clock_timestamp() as at)
		insert into quotes as q (tenant_id, livemode, id, number, status, customer_id, lead_id, service_id, unit_id, package_id,
			event_day, event_at, event_start, event_end, guest_count, timezone, line_items, pricing, currency, subtotal, discount, tax, total, deposit,
			expires_at, notes, terms, metadata, created_at, updated_at)
		select @tenant, @live, @id, @number, @status, @customer_id::uuid, @lead_id::uuid, @service_id::uuid, @unit_id::uuid, @package_id::uuid,
			@event_day::date, @event_at::timestamptz, @event_start, @event_end, @guest_count::integer, @timezone, @line_items, @pricing, @currency, @subtotal, @discount, @tax,
			@total, @deposit, @expires_at::timestamptz, @notes, @terms, @metadata, at, at from stamp
		returning q.version, q.created_at, q.updated_at`, args)
	quoteMetadata.QueueInsert(b, q.ID, q.Metadata)
	if !q.LeadID.IsZero() {
		b.Queue(`update leads l set quoted_customer_id = @customer_id
			where l.tenant_id = @tenant and l.livemode = @live and l.id = @lead_id and l.quoted_customer_id is distinct from @customer_id`, args)
	}
	return stampedQuote(ctx, tx, b, q)
}

// UpdateQuote writes what can change on a quote that the transaction has locked. It increments the version, and returns the quote
// with the new version and time.
func UpdateQuote(ctx context.Context, tx pg.Tx, q domain.Quote) (domain.Quote, error) {
	args, err := quoteArgs(q)
	if err != nil {
		return domain.Quote{}, err
	}
	b := &pgx.Batch{}
	b.Queue(`
		update quotes q set status = @status, customer_id = @customer_id, lead_id = @lead_id, service_id = @service_id, unit_id = @unit_id,
			package_id = @package_id, event_day = @event_day, event_at = @event_at, event_start = @event_start, event_end = @event_end,
			guest_count = @guest_count,
			line_items = @line_items, pricing = @pricing, subtotal = @subtotal, discount = @discount, tax = @tax, total = @total, deposit = @deposit,
			expires_at = @expires_at, sent_at = @sent_at, accepted_at = @accepted_at, declined_at = @declined_at,
			cancelled_at = @cancelled_at, booking_id = @booking_id, decline_reason = @decline_reason, notes = @notes, terms = @terms,
			metadata = @metadata, accept_until = @accept_until, accept_next = @accept_next, accept_request = @accept_request,
			accept_actor = @accept_actor,
			accept_since = @accept_since,
			version = q.version + 1, updated_at = clock_timestamp()
		where q.tenant_id = @tenant and q.livemode = @live and q.id = @id
		returning q.version, q.created_at, q.updated_at`, args)
	quoteMetadata.QueueDelete(b, q.ID)
	quoteMetadata.QueueInsert(b, q.ID, q.Metadata)
	if !q.LeadID.IsZero() {
		b.Queue(`update leads l set quoted_customer_id = @customer_id
			where l.tenant_id = @tenant and l.livemode = @live and l.id = @lead_id and l.quoted_customer_id is distinct from @customer_id`, args)
	}
	return stampedQuote(ctx, tx, b, q)
}

// SaveAccepting writes the state of an accept, which readers do not see, together with the commit. The transaction has locked the
// quote.
func SaveAccepting(tx pg.Tx, q domain.Quote) {
	tx.QueueAtCommit(`
		update quotes set accept_attempt = @attempt, accept_until = @until, accept_next = @next, accept_request = @request, accept_actor = @actor,
			accept_since = @since
		where tenant_id = @tenant and livemode = @live and id = @id`, pg.Args{
		"id": q.ID, "attempt": q.Accepting.Attempt, "until": q.Accepting.Until, "next": q.Accepting.Next, "request": q.Accepting.Request,
		"actor": q.Accepting.Actor, "since": q.Accepting.Since,
	})
}

// stampedQuote sends a batch in one round trip. Its first statement returns version and times.
func stampedQuote(ctx context.Context, tx pg.Tx, b *pgx.Batch, q domain.Quote) (domain.Quote, error) {
	res := tx.SendBatch(ctx, b)
	err := res.QueryRow().Scan(&q.Version, &q.CreatedAt, &q.UpdatedAt)
	if err = errors.Join(err, res.Close()); err != nil {
		return domain.Quote{}, fmt.Errorf("write quote: %w", err)
	}
	return q, nil
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
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("delete quote: %w", err)
	}
	return nil
}
