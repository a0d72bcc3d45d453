package store

import (
	"context"
	"fmt"
	"strings"
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
	Metadata map[string]string // exact pairs
}

// Quotes reads one page.
func Quotes(ctx context.Context, q pg.Q, f QuoteFilter, r page.Request) (page.Rows[domain.Quote], error) {
	return page.Search(ctx, q, r, page.List[domain.Quote]{
		Alias:      "q",
		Scan:       scanQuote,
		Statement:  func(r page.Request, narrow func(*page.Where)) (string, []any) { return quotesSQL(f, r, narrow) },
		Conditions: page.MetadataConditions(quoteMetadata, "q", f.Metadata),
	})
}

// quotesSQL joins one arm per state asked for, each with its own order and limit, so that each arm reads its index from
// where the page starts and no further. narrow adds conditions to each.
func quotesSQL(f QuoteFilter, r page.Request, narrow func(*page.Where)) (string, []any) {
	w := &page.Where{}
	var all []string
	var args []any
	for _, state := range quoteStates(f) {
		var sql string
		sql, args = quoteArm(w.Fork(), f, r, state, narrow)
		all = append(all, sql)
	}
	if len(all) == 1 {
		return all[0], args
	}
	order := "created_at desc, id desc"
	if r.Updated {
		order = "updated_at, id"
	}
	return fmt.Sprintf(`select * from ((%s)) page order by %s limit %d`, strings.Join(all, ") union all ("), order, r.Limit+1), args
}

type quoteState struct {
	sql  string
	args []any
}

// quoteStates are the conditions by state. A sent quote that has lapsed counts as expired, unless it is being accepted.
func quoteStates(f QuoteFilter) []*quoteState {
	if len(f.Status) == 0 {
		return []*quoteState{nil}
	}
	var arms []*quoteState
	seen := map[domain.QuoteStatus]bool{}
	for _, s := range f.Status {
		if seen[s] {
			continue
		}
		seen[s] = true
		switch s {
		case domain.QuoteSent:
			arms = append(arms, &quoteState{`q.status = 'sent' and (q.accept_until is not null or q.expires_at > ?)`, []any{f.Now}})
		case domain.QuoteExpired:
			arms = append(arms, &quoteState{`q.status = 'expired'`, nil},
				&quoteState{`q.status = 'sent' and q.accept_until is null and q.expires_at <= ?`, []any{f.Now}})
		default:
			arms = append(arms, &quoteState{`q.status = ?`, []any{string(s)}})
		}
	}
	return arms
}

// quoteArm is the select of one state.
func quoteArm(w *page.Where, f QuoteFilter, r page.Request, state *quoteState, narrow func(*page.Where)) (string, []any) {
	w.Add(`q.tenant_id = @tenant and q.livemode = @live`)
	if state != nil {
		w.Add(state.sql, state.args...)
	}
	if f.Customer != nil {
		w.Add(`q.customer_id = ?`, *f.Customer)
	}
	if f.Lead != nil {
		w.Add(`q.lead_id = ?`, *f.Lead)
	}
	if f.Booking != nil {
		w.Add(`q.booking_id = ?`, *f.Booking)
	}
	narrow(w)
	tail, args := w.Page(r, "q")
	return `select ` + quoteColumns + ` from quotes q ` + tail, args
}

// What a quote shows of other rows, looked up with it: it changes without the quote, and raises no version.
const (
	// quoteBookingStatus is the state of the quote's booking as it was last reported.
	quoteBookingStatus = `(select b.status from bookings b where b.tenant_id = @tenant and b.livemode = @live and b.id = q.booking_id)`
	// quoteInvoiceIDs are the ids of the quote's invoices, the oldest first.
	quoteInvoiceIDs = `array(select v.id from invoices v where v.tenant_id = @tenant and v.livemode = @live and v.quote_id = q.id
		order by v.created_at, v.id limit 100)`
)
