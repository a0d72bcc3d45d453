package api_test

import (
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestErrorResponsesOfInvoices checks that every operation refuses an unknown caller, an invalid body, a malformed header and an
// unknown query parameter. If the database fails, the response has a fixed text.
func TestErrorResponsesOfInvoices(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.pay(ctx, w.open(ctx, 2), 1).is(200).invoice()
	note := w.credit(ctx, v, `{"amount":`+usd(1)+`}`).is(201).note()
	path, payment := "/invoices/"+v.ID, `{"amount":`+usd(1)+`,"method":"cash"}`
	requests := []apitest.Request{
		{Method: "GET", Path: "/invoices"},
		{Method: "GET", Path: path},
		{Method: "GET", Path: path + "/pdf"},
		{Method: "POST", Path: "/invoices", Body: `{"customer_id":` + str(v.CustomerID) + `,"line_items":[` + line(1) + `]}`},
		{Method: "PATCH", Path: path, Body: `{"notes":"x"}`},
		{Method: "POST", Path: path + "/record-payment", Body: payment},
		{Method: "POST", Path: path + "/open"},
		{Method: "POST", Path: path + "/void"},
		{Method: "POST", Path: path + "/mark-uncollectible"},
		{Method: "POST", Path: path + "/payments/" + v.Payments[0].ID + "/reverse"},
		{Method: "POST", Path: path + "/credit-notes", Body: `{"refund":"none"}`},
		{Method: "GET", Path: "/credit-notes"},
		{Method: "GET", Path: "/credit-notes/" + note.ID},
		{Method: "GET", Path: "/credit-notes/" + note.ID + "/pdf"},
	}
	before := w.Types()
	for _, r := range requests {
		w.do(ctx, r.Method, r.Path, r.Body, "X-Caller: ").is(401, "invalid_credential")
		w.do(ctx, r.Method, r.Path+"?x=1", r.Body).is(422, "invalid_request", "x")
		if r.Method == "GET" {
			continue
		}
		w.do(ctx, r.Method, r.Path, r.Body, header("Idempotency-Key: "+strings.Repeat("k", 256))).is(422, "invalid_request", "Idempotency-Key")
		w.do(ctx, r.Method, r.Path, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`).is(413, "request_too_large")
		if r.Path != "/invoices" {
			w.do(ctx, r.Method, r.Path, r.Body, "If-Match: x").is(422, "invalid_request", "If-Match")
		}
		if r.Body != "" {
			w.do(ctx, r.Method, r.Path, r.Body, "Content-Type: text/plain").is(400, "missing_content_type")
		}
		w.do(ctx, r.Method, r.Path, `{`).is(400, "malformed_json")
	}
	if w.Types() != before {
		t.Errorf("events of refused requests: %s", w.Types())
	}
	w.do(ctx, "DELETE", path, "", "X-Caller: ").is(401, "invalid_credential")
	w.do(ctx, "DELETE", path, "", "If-Match: x").is(422, "invalid_request", "If-Match")
	w.Exec(`drop table invoices, credit_notes cascade`)
	w.do(ctx, "DELETE", path, "").is(500, "internal_error")
	for _, r := range requests {
		a := w.do(ctx, r.Method, r.Path, r.Body).is(500, "internal_error")
		if strings.Contains(string(a.Body), "relation") {
			t.Errorf("the cause is shown: %s", a.Body)
		}
	}
}

// TestInvoiceKeyInUse checks that each write returns 409 if its key is held by a transaction that does not end.
func TestInvoiceKeyInUse(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	v := w.pay(ctx, w.open(ctx, 2), 1).is(200).invoice()
	w.engine = w.serve(w.Impatient(50e6))
	release := w.HoldKey(caller.FromContext(ctx), "a")
	for path, body := range map[string]string{
		"": `{"customer_id":` + str(v.CustomerID) + `,"line_items":[` + line(1) + `]}`, "/" + v.ID + "/open": "", "/" + v.ID + "/void": "",
		"/" + v.ID + "/mark-uncollectible": "", "/" + v.ID + "/record-payment": `{"amount":` + usd(1) + `,"method":"cash"}`,
		"/" + v.ID + "/payments/" + v.Payments[0].ID + "/reverse": "", "/" + v.ID + "/credit-notes": "",
	} {
		w.do(ctx, "POST", "/invoices"+path, body, "Idempotency-Key: a").is(409, "idempotency_in_progress")
	}
	w.do(ctx, "PATCH", "/invoices/"+v.ID, `{"notes":"x"}`, "Idempotency-Key: a").is(409, "idempotency_in_progress")
	release()
}
