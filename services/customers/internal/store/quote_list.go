package store

import (
	"context"
	"slices"
	"time"

	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
)

// QuoteFilter selects quotes of a list. Nil and empty fields select all. Now decides which quotes have expired.
type QuoteFilter struct {
	Now      time.Time
	Status   []domain.QuoteStatus
	Customer *domain.CustomerID
	Lead     *domain.LeadID
	Booking  *domain.BookingID
	Number   *string           // as stored
	Metadata map[string]string // exact pairs
}

// Quotes reads one page.
func Quotes(ctx context.Context, q pg.Q, f QuoteFilter, r page.Request) (page.Rows[domain.Quote], error) {
	return page.Search(ctx, q, r, page.List[domain.Quote]{
		Alias: "q",
		Scan:  quotes.Scan,
		Statement: func(r page.Request, narrow func(*page.Where)) (string, []any) {
			return page.Union(r, quoteStates(f), func(w *page.Where) (string, []any) { return quotesOf(w, f, r, narrow) })
		},
		Conditions: page.MetadataConditions(quoteMetadata, "q", f.Metadata),
	})
}

// quoteStates returns the conditions by state. A sent quote that has lapsed counts as expired, unless it is being accepted.
func quoteStates(f QuoteFilter) (list []page.Alternative) {
	for _, s := range slices.Compact(slices.Sorted(slices.Values(f.Status))) {
		switch s {
		case domain.QuoteSent:
			list = append(list, page.When(`q.status = 'sent' and (q.accept_until is not null or q.expires_at > ?)`, f.Now))
		case domain.QuoteExpired:
			list = append(list, page.When(`q.status = 'expired'`),
				page.When(`q.status = 'sent' and q.accept_until is null and q.expires_at <= ?`, f.Now))
		default:
			list = append(list, page.When(`q.status = ?`, string(s)))
		}
	}
	return list
}

func quotesOf(w *page.Where, f QuoteFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w.Add(`q.tenant_id = @tenant and q.livemode = @live`)
	page.Equal(w, `q.customer_id = ?`, f.Customer)
	page.Equal(w, `q.lead_id = ?`, f.Lead)
	page.Equal(w, `q.booking_id = ?`, f.Booking)
	page.Equal(w, `q.number = ?`, f.Number)
	narrow(w)
	tail, args := w.Page(r, "q")
	return quotes.Select + tail, args
}

// The data of other rows that a quote shows, looked up with it. It changes independently of the quote and its version.
const (
	// quoteBookingStatus selects the last reported state of the quote's booking.
	quoteBookingStatus = `(select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = q.booking_id)`
	// quoteInvoiceIDs selects the ids of the quote's invoices, oldest first.
	quoteInvoiceIDs = `array(select v.id from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.quote_id = q.id
		order by v.created_at, v.id limit 100)`
)
