package api_test

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/api"
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
