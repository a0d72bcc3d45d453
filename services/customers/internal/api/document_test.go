package api_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"image"
	"image/jpeg"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"
	publicapi "holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/api"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// pdf reads a document.
func (a response) pdf() string {
	a.T.Helper()
	a.is(http.StatusOK)
	if got := a.Header.Get("Content-Type"); got != "application/pdf" || !bytes.HasPrefix(a.Body, []byte("%PDF-1.")) || a.Header.Get("Cache-Control") != "no-store" {
		a.T.Errorf("%s: %.20q", got, a.Body)
	}
	return string(a.Body)
}

// TestInvoicePDF checks that an invoice can be printed in each of its states, and that the same state always results in the same
// bytes. Erasing the customer of an opened invoice changes nothing, because the invoice retains its recipient.
func TestInvoicePDF(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	customer := w.create(ctx, `"company":"Atelier"`)
	id := decode[resource](w.do(ctx, "POST", "/invoices", `{"customer_id":"`+customer.ID+`","notes":"Thank you.","billing_address":"Pier 4",`+
		`"line_items":[{"description":"Boat","quantity":2,"unit_amount":{"amount":1000,"currency":"USD"}}]}`).is(201)).ID
	draft := w.do(ctx, "GET", "/invoices/"+id+"/pdf", "").pdf()
	w.do(ctx, "POST", "/invoices/"+id+"/open", "").is(200)
	opened := w.do(ctx, "GET", "/invoices/"+id+"/pdf", "").pdf()
	if draft == opened {
		t.Error("an opened invoice is printed as its draft")
	}
	if again := w.do(ctx, "GET", "/invoices/"+id+"/pdf", "").pdf(); again != opened {
		t.Error("the same invoice gives other bytes")
	}
	w.do(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "GET", "/invoices/"+id+"/pdf", "").is(403, "mode_mismatch")
	w.do(pgtest.Ctx(t, caller.Test), "GET", "/invoices/"+id+"/pdf", "").is(404, "invoice_not_found")
	w.tenants.Fail = apperr.ErrUnavailable
	w.do(ctx, "GET", "/invoices/"+id+"/pdf", "").is(503, "unavailable")
}

// TestQuotePDF checks that a quote can be printed as a draft and after it is sent.
func TestQuotePDF(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	path := "/quotes/" + w.newQuote(ctx, `"terms":"Free of charge until a day before."`).ID
	draft := w.do(ctx, "GET", path+"/pdf", "").pdf()
	w.do(ctx, "POST", path+"/send", "").is(200)
	if sent := w.do(ctx, "GET", path+"/pdf", "").pdf(); draft == sent {
		t.Error("a sent quote is printed as its draft")
	}
	w.do(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "GET", path+"/pdf", "").is(403, "mode_mismatch")
	w.do(pgtest.Ctx(t, caller.Test), "GET", path+"/pdf", "").is(404, "quote_not_found")
}

// TestDocumentsInTheCustomersLanguage checks that quotes, invoices and credit notes are printed in the language of the customer, and that an
// opened invoice keeps it.
func TestDocumentsInTheCustomersLanguage(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	customer := w.create(ctx, `"locale":"de-AT"`)
	in := func(path, language string) {
		t.Helper()
		if got := w.do(ctx, "GET", path+"/pdf", "").pdf(); !strings.Contains(got, "/Lang ("+language+")") {
			t.Errorf("%s: %q", path, regexp.MustCompile(`/Lang [^\n]*`).FindString(got))
		}
	}
	const line = `"line_items":[{"description":"Boat","quantity":2,"unit_amount":{"amount":1000,"currency":"USD"}}]`
	quote := "/quotes/" + decode[resource](w.do(ctx, "POST", "/quotes", `{"customer_id":"`+customer.ID+`",`+line+`}`).is(201)).ID
	invoice := "/invoices/" + decode[resource](w.do(ctx, "POST", "/invoices", `{"customer_id":"`+customer.ID+`",`+line+`}`).is(201)).ID
	in(quote, "de")
	in(invoice, "de")
	w.do(ctx, "POST", invoice+"/open", "").is(200)
	note := "/credit-notes/" + decode[resource](w.do(ctx, "POST", invoice+"/credit-notes", `{"amount":{"amount":500,"currency":"USD"}}`).is(201)).ID
	w.do(ctx, "PATCH", "/customers/"+customer.ID, `{"locale":"fr"}`).is(200)
	in(quote, "fr")
	in(invoice, "de")
	in(note, "de")
	if got := decode[publicapi.CreditNote](w.do(ctx, "GET", note, "").is(200)).LineItems[0].Description; got != "Gutschrift zu Rechnung INV-000001" {
		t.Errorf("the credit note has the line %q", got)
	}
	booking := w.bookings.AddBooking(customerID(t, customer), usdOf(1000))
	w.open(ctx, 300, `"booking_id":"`+booking.ID.String()+`"`)
	balance := w.invoicing(ctx, `"booking_id":"`+booking.ID.String()+`"`, `"kind":"balance"`).is(201).invoice().LineItems
	if balance[0].Description != "Réservation "+booking.Number || !strings.HasPrefix(balance[1].Description, "Déduction de la facture INV-000002 du ") {
		t.Errorf("the balance has the lines %+v", balance)
	}
	accepted := "/quotes/" + w.do(ctx, "POST", "/quotes", `{"customer_id":"`+customer.ID+`","event_date":"2031-05-01",`+lines+
		`,"deposit_amount":{"amount":100,"currency":"USD"}}`).is(201).quote().ID
	w.do(ctx, "POST", accepted+"/send", "").is(200)
	deposit := w.invoice(ctx, w.do(ctx, "POST", accepted+"/accept", "").is(200).quote().InvoiceIDs[0])
	if got := deposit.LineItems[0].Description; !strings.HasPrefix(got, "Acompte pour le devis Q-") {
		t.Errorf("the deposit has the line %q", got)
	}
	w.tenants.Info.Country = "FR"
	w.do(ctx, "PATCH", "/customers/"+customer.ID, `{"locale":"it"}`).is(200)
	in(quote, "fr")
	w.tenants.Info.Country = "IT"
	in(quote, "en")
}

// TestLogoOnDocuments checks that quotes, invoices and credit notes have the tenant's logo, and only if it has one.
func TestLogoOnDocuments(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	var content bytes.Buffer
	if err := jpeg.Encode(&content, image.NewGray(image.Rect(0, 0, 40, 30)), nil); err != nil {
		t.Fatal(err)
	}
	w.tenants.Image = domain.Logo{MediaType: "image/jpeg", Content: content.Bytes()}
	invoice := "/invoices/" + w.open(ctx, 1000).ID
	note := "/credit-notes/" + decode[resource](w.do(ctx, "POST", invoice+"/credit-notes", `{"amount":{"amount":500,"currency":"USD"}}`).is(201)).ID
	for _, path := range []string{"/quotes/" + w.newQuote(ctx, "").ID, invoice, note} {
		for hash, shown := range map[string]bool{"": false, "h": true} {
			w.tenants.Info.LogoHash = hash
			if got := w.do(ctx, "GET", path+"/pdf", "").pdf(); strings.Contains(got, content.String()) != shown {
				t.Errorf("%s shows the logo: %t, want %t", path, !shown, shown)
			}
		}
	}
}

// printedText returns the Latin text of a document.
func printedText(t *testing.T, pdf string) string {
	t.Helper()
	var out bytes.Buffer
	for _, stream := range regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`).FindAllStringSubmatch(pdf, -1) {
		if r, err := zlib.NewReader(strings.NewReader(stream[1])); err == nil {
			if _, err := io.Copy(&out, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.ReplaceAll(out.String(), "\x00", "") // it is in UTF-16
}

// TestManualRefundsArePrinted checks that an invoice shows its payment, its credit note and the money that was handed back.
func TestManualRefundsArePrinted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Info.Country = "US"
	path := "/invoices/" + w.open(ctx, 1000).ID
	w.do(ctx, "POST", path+"/record-payment", `{"amount":{"amount":1000,"currency":"USD"},"method":"cash","paid_at":"2026-01-05T12:00:00Z"}`).is(200)
	w.do(ctx, "POST", path+"/credit-notes", `{"amount":{"amount":400,"currency":"USD"},"refund":"manual"}`).is(201)
	got := printedText(t, w.do(ctx, "GET", path+"/pdf", "").pdf())
	for _, want := range []string{"Paid on January 5, 2026 in cash", "$10.00", "Credited", "Refunded", "$4.00", "Amount due", "$0.00"} {
		if !strings.Contains(got, "("+want+")Tj") {
			t.Errorf("%q is not printed", want)
		}
	}
}

// resource contains the field that every resource has.
type resource struct{ ID string }

// TestDocumentsThatWaitReadNothing checks that one of a tenant's requests for documents reads and prints. Some wait and have read
// nothing yet, and the others get a 429.
func TestDocumentsThatWaitReadNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/invoices/" + w.open(ctx, 1).ID + "/pdf"
	var reading atomic.Int64
	open := make(chan struct{})
	w.tenants.Before = func() {
		reading.Add(1)
		<-open
	}
	limit := api.DocumentLimits.PerTenant + api.DocumentLimits.Waiting
	statuses := make(chan int)
	for range limit + 5 {
		go func() { statuses <- w.do(ctx, "GET", path, "").Status }()
	}
	got := map[int]int{}
	for range 5 { // while the others wait
		select {
		case status := <-statuses:
			got[status]++
		case <-time.After(2 * time.Second):
		}
	}
	if n := reading.Load(); n > int64(api.DocumentLimits.PerTenant) || got[429] != 5 {
		t.Errorf("%d documents were read at once; responses by status %v", n, got)
	}
	close(open)
	for range limit + 5 - got[429] {
		got[<-statuses]++
	}
	if got[200] != limit || got[429] != 5 {
		t.Errorf("responses by status %v, want %d × 200", got, limit)
	}
}

// TestServiceDateOfAnInvoice checks that an invoice of a booking has the days of its booking as they were when the invoice was opened,
// whatever the projection contains, and that a draft shows those of its booking now.
func TestServiceDateOfAnInvoice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	customer, err := ids.Parse[ids.CustomerPrefix](w.create(ctx, "").ID)
	if err != nil {
		t.Fatal(err)
	}
	days := func(first, last int) *domain.Days {
		return &domain.Days{First: civil.Date{Year: 2030, Month: 7, Day: first}, Last: civil.Date{Year: 2030, Month: 7, Day: last}}
	}
	b := w.bookings.AddBooking(customer, money.Amount{Minor: 5000, Currency: "USD"})
	b.Days = days(1, 1)
	b = w.bookings.ChangeBooking(b)
	draft := func(kind string) string {
		return decode[resource](w.do(ctx, "POST", "/invoices", `{"customer_id":"`+customer.String()+`","booking_id":"`+b.ID.String()+`"`+kind+`}`).is(201)).ID
	}
	read := func(id string) domain.Invoice {
		parsed, err := ids.Parse[ids.InvoicePrefix](id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Invoice(ctx, w.DB.App.Read(ctx), parsed)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, id := range []string{
		draft(`,"kind":"balance"`), draft(`,"line_items":[{"description":"Damage","quantity":1,"unit_amount":{"amount":100,"currency":"USD"}}]`),
	} {
		before := w.do(ctx, "GET", "/invoices/"+id+"/pdf", "").pdf()
		b.Days = days(8, 10)
		b = w.bookings.ChangeBooking(b) // moved; its event has not arrived
		if w.do(ctx, "GET", "/invoices/"+id+"/pdf", "").pdf() == before {
			t.Error("a draft shows the days before the move")
		}
		w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
		w.do(ctx, "POST", "/invoices/"+id+"/open", "").is(503, "unavailable")
		w.bookings.Before = nil
		w.do(ctx, "POST", "/invoices/"+id+"/open", "").is(200)
		b.Days = days(1, 1)
		b = w.bookings.ChangeBooking(b)
		if got := read(id).Served; got == nil || *got != *days(8, 10) {
			t.Errorf("served on %v", got)
		}
	}
	q := w.newQuote(ctx, `"deposit_amount":{"amount":100,"currency":"USD"}`)
	w.do(ctx, "POST", "/quotes/"+q.ID+"/send", "").is(200)
	accepted := w.do(ctx, "POST", "/quotes/"+q.ID+"/accept", "").is(200).quote()
	if got := read(accepted.InvoiceIDs[0]).Served; got == nil || q.LocalDate == nil || got.String() != *q.LocalDate {
		t.Errorf("the invoice of a quote is served on %v", got)
	}
}
