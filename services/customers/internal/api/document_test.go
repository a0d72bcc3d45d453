package api_test

import (
	"bytes"
	"net/http"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// pdf reads a document.
func (a answer) pdf() string {
	a.T.Helper()
	a.is(http.StatusOK)
	if got := a.Header.Get("Content-Type"); got != "application/pdf" || !bytes.HasPrefix(a.Body, []byte("%PDF-1.")) || a.Header.Get("Cache-Control") != "no-store" {
		a.T.Errorf("%s: %.20q", got, a.Body)
	}
	return string(a.Body)
}

// An invoice is printed in each of its states. The same state gives the same bytes, and erasing the customer of an opened one
// changes nothing, because it keeps whom it was made out to.
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

// A quote is printed as a draft and when it is sent.
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

// resource is what every resource has.
type resource struct{ ID string }
