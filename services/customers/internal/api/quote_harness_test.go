package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/app"
)

func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }

// serveQuotes creates the use cases and workers of quotes.
func (w *world) serveQuotes(db *pg.DB, customers *app.Customers, invoices app.InvoiceOpener) {
	w.quotes = &app.Quotes{
		DB: db, Bookings: w.bookings, Tenants: w.tenants, Catalogue: &app.Catalogue{DB: db, Bookings: w.bookings},
		Leads: w.leads, Invoices: invoices, Customers: customers, Numbers: &numbers.Numbers{DB: db, Table: "quote_counters", Format: "Q-%06d"},
		Wake: func() { w.wakes.Add(1) }, Now: w.clock.now, MaxWait: 5 * time.Second,
	}
	w.expiry = &app.QuoteExpiry{Quotes: w.quotes, Worker: w.DB.Worker, Log: slog.New(slog.DiscardHandler)}
}

// resumeAccepts runs the completer with a clock that is ahead by d.
func (w *world) resumeAccepts(d time.Duration) {
	w.T.Helper()
	w.clock.move(d)
	if err := w.completers.Quotes(w.quotes)(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

// quote is the response body as a client reads it.
type quote struct {
	ID, Object, Number, Status, Mode string
	Version                          int64
	CustomerID                       string   `json:"customer_id"`
	LeadID                           *string  `json:"lead_id"`
	EventDate                        *string  `json:"event_date"`
	LocalDate                        *string  `json:"event_local_date"`
	Start                            *string  `json:"event_start_time"`
	End                              *string  `json:"event_end_time"`
	Guests                           int      `json:"guest_count"`
	Subtotal                         price    `json:"subtotal_amount"`
	Discount                         price    `json:"discount_amount"`
	Tax                              price    `json:"tax_amount"`
	Total                            price    `json:"total_amount"`
	Deposit                          price    `json:"deposit_amount"`
	ExpiresAt                        *string  `json:"expires_at"`
	SentAt                           *string  `json:"sent_at"`
	AcceptedAt                       *string  `json:"accepted_at"`
	DeclinedAt                       *string  `json:"declined_at"`
	CancelledAt                      *string  `json:"cancelled_at"`
	BookingID                        *string  `json:"booking_id"`
	BookingStatus                    *string  `json:"booking_status"`
	InvoiceIDs                       []string `json:"invoice_ids"`
	Reason                           *string  `json:"decline_reason"`
	Notes, Terms                     *string
	Metadata                         json.RawMessage
	LineItems                        []json.RawMessage `json:"line_items"`
	Customer                         *customer
}

type price struct {
	Amount   int64
	Currency string
}

func (a response) quote() quote { return decode[quote](a) }

// lines contains the line items of a body: one line of 100.00.
const lines = `"line_items":[{"description":"Hall","quantity":1,"unit_amount":{"amount":10000,"currency":"USD"}}]`

// newQuote creates a quote with these fields, for a new customer.
func (w *world) newQuote(ctx context.Context, format string, args ...any) quote {
	w.T.Helper()
	fields := fmt.Sprintf(format, args...)
	if fields != "" {
		fields = "," + fields
	}
	body := fmt.Sprintf(`{"customer_id":%q,"event_date":"2031-05-01",%s%s}`, w.create(ctx, "").ID, lines, fields)
	return w.do(ctx, "POST", "/quotes", body).is(201).quote()
}

// sentQuote creates a sent quote.
func (w *world) sentQuote(ctx context.Context, fields string) quote {
	w.T.Helper()
	return w.onQuote(ctx, w.newQuote(ctx, "%s", fields).ID, "send").is(200).quote()
}

func (w *world) onQuote(ctx context.Context, id, action string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/quotes/"+id+"/"+action, "", headers...)
}

func (w *world) readQuote(ctx context.Context, id string) quote {
	w.T.Helper()
	return w.do(ctx, "GET", "/quotes/"+id, "").is(200).quote()
}
