package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"
)

type amount struct {
	Amount   int64
	Currency string
}

// invoice is the response body as a client reads it.
type invoice struct {
	ID            string
	Number        *string
	Status, Kind  string
	Version       int64
	CustomerID    string  `json:"customer_id"`
	LeadID        *string `json:"lead_id"`
	QuoteID       *string `json:"quote_id"`
	BookingID     *string `json:"booking_id"`
	BookingStatus *string `json:"booking_status"`
	LineItems     []struct {
		Description string
		Quantity    int64
		UnitAmount  amount `json:"unit_amount"`
		TaxAmount   amount `json:"tax_amount"`
	} `json:"line_items"`
	Subtotal   amount `json:"subtotal_amount"`
	Discount   amount `json:"discount_amount"`
	Tax        amount `json:"tax_amount"`
	Total      amount `json:"total_amount"`
	AmountPaid amount `json:"amount_paid"`
	Credited   amount `json:"amount_credited"`
	Refunded   amount `json:"amount_refunded"`
	AmountDue  amount `json:"amount_due"`
	Payments   []struct {
		ID         string
		Amount     amount
		Method     string
		Source     string
		PaidAt     time.Time `json:"paid_at"`
		Reference  *string
		ReversedAt *time.Time `json:"reversed_at"`
	}
	DueAt          *time.Time `json:"due_at"`
	Overdue        bool
	BillingAddress *string `json:"billing_address"`
	Billing        *struct {
		Name                    string
		Company, Email, Address *string
	}
	Notes     *string
	Metadata  json.RawMessage
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	OpenedAt  *time.Time `json:"opened_at"`
	PaidAt    *time.Time `json:"paid_at"`
	VoidedAt  *time.Time `json:"voided_at"`
	Customer  *customer
}

func (a response) invoice() invoice { return decode[invoice](a) }

func usd(minor int64) string { return fmt.Sprintf(`{"amount":%d,"currency":"USD"}`, minor) }

func line(minor int64) string {
	return `{"description":"Boat","quantity":1,"unit_amount":` + usd(minor) + `}`
}

// draft creates an invoice of one line for a new customer, with additional fields.
func (w *world) draft(ctx context.Context, minor int64, fields ...string) invoice {
	w.T.Helper()
	c := w.create(ctx, "")
	all := append([]string{`"customer_id":` + str(c.ID), `"line_items":[` + line(minor) + `]`}, fields...)
	return w.do(ctx, "POST", "/invoices", "{"+strings.Join(all, ",")+"}").is(201).invoice()
}

// act sends an action, with a body if one is given.
func (w *world) act(ctx context.Context, v invoice, action string, body ...string) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/invoices/"+v.ID+"/"+action, strings.Join(body, ""))
}

func (w *world) pay(ctx context.Context, v invoice, minor int64) response {
	w.T.Helper()
	return w.act(ctx, v, "record-payment", `{"amount":`+usd(minor)+`,"method":"cash"}`)
}

// open creates an open invoice.
func (w *world) open(ctx context.Context, minor int64, fields ...string) invoice {
	w.T.Helper()
	return w.act(ctx, w.draft(ctx, minor, fields...), "open").is(200).invoice()
}

func (w *world) invoice(ctx context.Context, id string) invoice {
	w.T.Helper()
	return w.do(ctx, "GET", "/invoices/"+id, "").is(200).invoice()
}

// invoiceTypes returns the types of the events about an invoice, in order. Internal ones have a star. It checks that versions
// increase by one and that the last object equals the response of a read.
func (w *world) invoiceTypes(ctx context.Context, id string) string {
	w.T.Helper()
	var out []string
	var last string
	for _, e := range w.Events() {
		if e.ObjectId != id {
			continue
		}
		_, name, _ := strings.Cut(e.Type, ".")
		if e.Internal {
			name += "*"
		}
		out = append(out, name)
		if e.ResourceVersion != int64(len(out)) {
			w.T.Errorf("event %d of %s has version %d", len(out), id, e.ResourceVersion)
		}
		last = string(e.Object)
	}
	if got := w.do(ctx, "GET", "/invoices/"+id, "").is(200); string(got.Body) != last {
		w.T.Errorf("the last event is not what is read:\n%s\n%s", last, got.Body)
	}
	return strings.Join(out, " ")
}

// TestBillingOfAnInvoice checks that an invoice keeps the details of its customer as they were when it was opened, also after the
// customer was changed or erased. An address of its own replaces that of the customer.
func TestBillingOfAnInvoice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, `"tax_id":"DE 1","billing_address":{"line1":"Pier 4","city":"Berlin","postal_code":"10115","country":"DE"},"country":"AT","locale":"de-AT"`)
	open := func(fields string) string {
		t.Helper()
		v := w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+fields+`,"line_items":[`+line(1)+`]}`).is(201).invoice()
		w.act(ctx, v, "open").is(200)
		return v.ID
	}
	first, second := open(""), open(`,"billing_address":"1 Main St"`)
	w.do(ctx, "PATCH", "/customers/"+c.ID, `{"tax_id":"DE 2","billing_address":null,"country":null,"locale":null}`).is(200)
	third := open("")
	w.do(ctx, "DELETE", "/customers/"+c.ID, "").is(204)
	for id, want := range map[string]string{
		first:  `"address":"Pier 4\n10115 Berlin\nDeutschland","tax_id":"DE 1","country":"AT","locale":"de-AT"`,
		second: `"address":"1 Main St","tax_id":"DE 1","country":"AT","locale":"de-AT"`,
		third:  `"address":null,"tax_id":"DE 2","country":null,"locale":null`,
	} {
		if got := w.do(ctx, "GET", "/invoices/"+id, "").is(200); !strings.Contains(string(got.Body), want) {
			t.Errorf("%s lacks %s", got.Body, want)
		}
	}
}

func TestInvoiceLife(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, `"last_name":"Lee","company":"Acme"`)
	created := w.do(ctx, "POST", "/invoices", `{"customer_id":`+str(c.ID)+`,"billing_address":"1 Main St","line_items":[`+
		`{"description":"Boat","quantity":3,"unit_amount":`+usd(3333)+`,"discount_bps":1000,"tax_rate_bps":825},`+line(1)+`]}`).is(201)
	v := created.invoice()
	if v.Status != "draft" || v.Kind != "full" || v.Number != nil || v.Version != 1 || v.Billing != nil || v.OpenedAt != nil ||
		created.Header.Get("Location") != "/api/v1/invoices/"+v.ID || created.Header.Get("ETag") != `"1"` {
		t.Errorf("created: %s", created.Body)
	}
	// 9999 − 1000 + 8.25 % of 8999 = 742, and 1
	if v.Subtotal.Amount != 10000 || v.Discount.Amount != 1000 || v.Tax.Amount != 742 || v.Total.Amount != 9742 || v.AmountDue.Amount != 9742 {
		t.Errorf("amounts: %s", created.Body)
	}
	v = w.act(ctx, v, "open").is(200).invoice()
	if v.Status != "open" || deref(v.Number) != "INV-000001" || v.Version != 2 || v.OpenedAt == nil ||
		v.Billing == nil || v.Billing.Name != "Ann Lee" || deref(v.Billing.Company) != "Acme" || deref(v.Billing.Email) != "ann@example.com" ||
		deref(v.Billing.Address) != "1 Main St" {
		t.Errorf("opened: %+v", v)
	}
	if again := w.act(ctx, v, "open").is(200).invoice(); again.Version != 2 {
		t.Errorf("opened twice: %+v", again)
	}
	v = w.pay(ctx, v, 9000).is(200).invoice()
	if v.Status != "partially_paid" || v.AmountPaid.Amount != 9000 || v.AmountDue.Amount != 742 || len(v.Payments) != 1 || v.PaidAt != nil {
		t.Errorf("paid a part: %+v", v)
	}
	v = w.act(ctx, v, "record-payment", `{"amount":`+usd(742)+`,"method":"bank_transfer","reference":"R 1","paid_at":"2026-01-02"}`).is(200).invoice()
	if p := v.Payments[1]; v.Status != "paid" || v.AmountDue.Amount != 0 || v.PaidAt == nil || p.Method != "bank_transfer" || p.Source != "manual" ||
		deref(p.Reference) != "R 1" || !p.PaidAt.Equal(time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC)) || !strings.HasPrefix(p.ID, "pay_") {
		t.Errorf("paid: %+v", v)
	}
	v = w.act(ctx, v, "payments/"+v.Payments[0].ID+"/reverse").is(200).invoice()
	if v.Status != "partially_paid" || v.AmountPaid.Amount != 742 || v.PaidAt != nil || v.Payments[0].ReversedAt == nil || v.Payments[1].ReversedAt != nil {
		t.Errorf("reversed: %+v", v)
	}
	if again := w.act(ctx, v, "payments/"+v.Payments[0].ID+"/reverse").is(200).invoice(); again.Version != v.Version {
		t.Errorf("reversed twice: %+v", again)
	}
	v = w.act(ctx, v, "payments/"+v.Payments[1].ID+"/reverse").is(200).invoice()
	if v.Status != "open" || v.AmountPaid.Amount != 0 {
		t.Errorf("all reversed: %+v", v)
	}
	v = w.act(ctx, v, "mark-uncollectible").is(200).invoice()
	if v.Status != "uncollectible" || w.act(ctx, v, "mark-uncollectible").is(200).invoice().Version != v.Version {
		t.Errorf("uncollectible: %+v", v)
	}
	v = w.act(ctx, v, "void").is(200).invoice()
	if v.Status != "void" || v.AmountDue.Amount != 0 || v.VoidedAt == nil || deref(v.Number) != "INV-000001" || w.act(ctx, v, "void").is(200).invoice().Version != v.Version {
		t.Errorf("void: %+v", v)
	}
	if got := w.invoiceTypes(ctx, v.ID); got != "created updated* updated* paid updated* updated* updated* updated*" {
		t.Errorf("events: %s", got)
	}
}

func TestEachInvoiceFieldIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c, other := w.create(ctx, ""), w.create(ctx, "")
	booked := func() string {
		return w.bookings.AddBooking(ids.Customer{}, money.Amount{Minor: 5, Currency: "USD"}).ID.String()
	}
	body := func(c customer, booking, text string) string {
		return `{"customer_id":` + str(c.ID) + `,"booking_id":` + str(booking) + `,"kind":"deposit","due_at":"2030-01-02T03:04:05.123456Z",` +
			`"billing_address":` + str(text) + `,"notes":` + str("n"+text) + `,"metadata":{"b":"1","a":"2"},` +
			`"line_items":[{"description":"D","quantity":2,"unit_amount":` + usd(7) + `,"discount_bps":5000,"tax_rate_bps":10000}],"tax_behavior":"exclusive","discount_amount_total":` + usd(2) + `}`
	}
	first := body(c, booked(), "x")
	a := w.do(ctx, "POST", "/invoices", first).is(201)
	apitest.Written[publicapi.InvoiceCreate](t, first, a.Body, "line_items")
	second := strings.Replace(body(other, booked(), "y"), "deposit", "full", 1)
	changed := w.do(ctx, "PATCH", "/invoices/"+a.invoice().ID, second).is(200)
	apitest.Written[publicapi.InvoiceUpdate](t, second, changed.Body, "line_items")
	for _, got := range []invoice{a.invoice(), changed.invoice()} {
		if l := got.LineItems[0]; l.Description != "D" || l.Quantity != 2 || l.UnitAmount.Amount != 7 || l.TaxAmount.Amount != 5 || got.Total.Amount != 10 {
			t.Errorf("lines: %+v", got)
		}
	}
	cleared := w.do(ctx, "PATCH", "/invoices/"+a.invoice().ID, `{"booking_id":null,"due_at":null,"billing_address":null,"notes":null,"metadata":null}`).is(200)
	v := cleared.invoice()
	if v.BookingID != nil || v.BookingStatus != nil || v.DueAt != nil || v.BillingAddress != nil || v.Notes != nil || string(v.Metadata) != "{}" {
		t.Errorf("cleared: %s", cleared.Body)
	}
	if same := w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"kind":"full","notes":null}`).is(200).invoice(); same.Version != 3 {
		t.Errorf("a change that shows nothing: %+v", same)
	}
	if got := w.do(ctx, "GET", "/invoices/"+v.ID, "").is(200); string(got.Body) != string(cleared.Body) {
		t.Errorf("GET differs from PATCH:\n%s\n%s", got.Body, cleared.Body)
	}
	payment := `{"amount":` + usd(3) + `,"method":"other","paid_at":"2026-01-02T03:04:05Z","reference":"r"}`
	paid := w.act(ctx, w.open(ctx, 10), "record-payment", payment).is(200)
	var payments struct{ Payments []json.RawMessage }
	_ = json.Unmarshal(paid.Body, &payments)
	apitest.Written[publicapi.InvoicePaymentCreate](t, payment, payments.Payments[0])
	if got := w.invoiceTypes(ctx, v.ID); got != "created updated* updated*" {
		t.Errorf("events: %s", got)
	}
}
