package api_test

import (
	"context"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
)

// TestInvoiceOfAQuote checks that an accepted quote opens one invoice in the transaction that accepts it: for the deposit, or else
// for the total.
func TestInvoiceOfAQuote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	use := &app.Invoices{Bookings: w.bookings, Tenants: w.tenants, Wake: func() {}, Now: time.Now}
	c := w.create(ctx, `"company":"Acme"`)
	info := domain.Invoicing{Prefix: "R-", Year: true}
	openForQuote := func(deposit int64, lines ...domain.Line) (invoice, domain.InvoiceSource, domain.Booking) {
		t.Helper()
		lines, totals, err := domain.Price(lines, domain.NoTerms("USD"))
		if err != nil {
			t.Fatal(err)
		}
		q := domain.InvoiceSource{
			Quote: ids.New[ids.QuotePrefix](), Lead: ids.New[ids.LeadPrefix](), Number: "Q-000007", Customer: customerID(t, c),
			Lines: lines, Totals: totals, Deposit: deposit,
		}
		b := w.bookings.AddBooking(q.Customer, usdOf(1100))
		var id domain.InvoiceID
		err = w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
			id, err = use.OpenForQuote(ctx, tx, q, b, info)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return w.invoice(ctx, id.String()), q, b
	}
	boat := domain.Line{Description: "Boat", Quantity: 1, UnitAmount: 1000, Taxes: domain.ShortTaxes(1000)}
	year := time.Now().In(time.FixedZone("", -5*3600)).Format("2006-")

	v, q, b := openForQuote(300, boat)
	if l := v.LineItems; v.Kind != "deposit" || v.Status != "open" || v.Total.Amount != 300 || v.Tax.Amount != 27 || l[0].TaxAmount.Amount != 27 || len(l) != 1 ||
		l[0].Description != "Deposit for quote Q-000007" || deref(v.Number) != "R-"+year+"000001" || v.Version != 1 || v.OpenedAt == nil ||
		v.CustomerID != c.ID || deref(v.QuoteID) != q.Quote.String() || deref(v.LeadID) != q.Lead.String() || deref(v.BookingID) != b.ID.String() ||
		deref(v.BookingStatus) != "pending" || v.Billing == nil || v.Billing.Name != "Ann" || deref(v.Billing.Company) != "Acme" {
		t.Errorf("of the deposit: %+v", v)
	}
	if got := w.invoiceTypes(ctx, v.ID); got != "created" {
		t.Errorf("events: %s", got)
	}
	// The balance covers the rest after the deposit.
	if left := w.invoicing(ctx, `"kind":"balance"`, `"booking_id":`+str(b.ID.String())).is(201).invoice(); left.Total.Amount != 800 {
		t.Errorf("balance: %+v", left)
	}
	full, _, _ := openForQuote(0, boat, boat)
	if full.Kind != "full" || full.Status != "open" || full.Total.Amount != 2200 || full.Tax.Amount != 200 || deref(full.Number) != "R-"+year+"000002" {
		t.Errorf("of all: %+v", full)
	}
	free, _, _ := openForQuote(0, domain.Line{Description: "Gift", Quantity: 1})
	if free.Status != "paid" || free.PaidAt == nil || free.Version != 2 || deref(free.Number) != "R-"+year+"000003" {
		t.Errorf("of nothing: %+v", free)
	}
	if got := w.invoiceTypes(ctx, free.ID); got != "created paid" {
		t.Errorf("events: %s", got)
	}
	w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
	late, q, b := openForQuote(0, boat) // the customer was erased while the quote was being accepted
	if late.Status != "open" || late.Billing == nil || late.Billing.Name != "" || late.Billing.Email != nil || late.CustomerID != c.ID {
		t.Errorf("of an erased customer: %+v", late)
	}
	// A transaction that fails later releases its number.
	_ = w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := use.OpenForQuote(ctx, tx, q, b, info); err != nil {
			t.Error(err)
		}
		return context.Canceled
	})
	if got := w.open(ctx, 1); deref(got.Number) != "INV-000005" {
		t.Errorf("after a failure: %s", deref(got.Number))
	}
	if n := w.Count(`select count(*) from invoices where seq is not null`); n != 5 {
		t.Errorf("%d opened", n)
	}
}

// TestInvoiceFailureLeavesNothing checks that a failure at any step leaves no row, number, event or stored key.
func TestInvoiceFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	draft, open := w.draft(ctx, 10), w.open(ctx, 10)
	paid := w.pay(ctx, w.open(ctx, 10), 3).is(200).invoice()
	before := w.Types()
	requests := []struct{ path, body string }{
		{"/invoices", `{"customer_id":` + str(open.CustomerID) + `,"line_items":[` + line(1) + `]}`},
		{"/invoices/" + draft.ID + "/open", ""},
		{"/invoices/" + open.ID + "/void", ""},
	}
	for _, broken := range []string{"outbox", "idempotency_keys"} {
		w.Exec(`alter table ` + broken + ` add column broken int not null default 1 / (current_setting('app.tenant_id', true) is null)::int`)
		for _, r := range requests {
			w.do(ctx, "POST", r.path, r.body, header("Idempotency-Key: "+r.path)).is(500, "internal_error")
		}
		w.Exec(`alter table ` + broken + ` drop column broken`)
	}
	for _, v := range []invoice{draft, open, paid} {
		if got := w.invoice(ctx, v.ID); got.Version != v.Version || got.Status != v.Status || len(got.Payments) != len(v.Payments) || got.AmountPaid != v.AmountPaid {
			t.Errorf("changed: %+v", got)
		}
	}
	if n := w.Count(`select count(*) from invoices`); n != 3 || w.Types() != before || w.Count(`select next from invoice_counters`) != 3 {
		t.Errorf("%d invoices, events %s", n, w.Types())
	}
	for _, r := range requests {
		if a := w.do(ctx, "POST", r.path, r.body, header("Idempotency-Key: "+r.path)); a.Status >= 300 {
			t.Errorf("%s: %d %s", r.path, a.Status, a.Body)
		}
	}
}
