package api_test

import (
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestErrorResponsesOfQuotes checks that each operation on quotes returns the same errors for faults that any request can have.
func TestErrorResponsesOfQuotes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.newQuote(ctx, "")
	path, body := "/quotes/"+q.ID, `{"customer_id":`+str(q.CustomerID)+`,`+lines+`}`
	writes := []struct{ method, path, body string }{
		{"POST", "/quotes", body},
		{"PATCH", path, `{"notes":"n"}`},
		{"POST", path + "/send", ""},
		{"POST", path + "/accept", ""},
		{"POST", path + "/decline", ""},
		{"POST", path + "/cancel", ""},
	}
	w.do(ctx, "DELETE", path, "", "X-Caller: ").is(401, "invalid_credential")
	w.do(ctx, "DELETE", path, "", "If-Match: x").is(422, "invalid_request", "If-Match")
	big := `{"notes":"` + strings.Repeat("x", 1<<20) + `"}`
	for i, r := range writes {
		w.do(ctx, r.method, r.path, r.body, "X-Caller: ").is(401, "invalid_credential")
		w.do(ctx, r.method, r.path, "{").is(400, "malformed_json")
		w.do(ctx, r.method, r.path, big).is(413, "request_too_large")
		if i > 0 {
			w.do(ctx, r.method, r.path, r.body, `If-Match: "7"`).is(412, "version_mismatch")
		}
	}
	w.engine = w.serve(w.Impatient(50 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "a")
	for _, r := range writes[:3] {
		w.do(ctx, r.method, r.path, r.body, "Idempotency-Key: a").is(409, "idempotency_in_progress")
	}
	release()
	w.engine = w.serve(w.DB.App)
	for _, read := range []string{"/quotes", path, path + "/pdf"} {
		w.do(ctx, "GET", read, "", "X-Caller: ").is(401, "invalid_credential")
		w.do(ctx, "GET", read+"?x=1", "").is(422, "invalid_request", "x")
	}
	w.Exec(`drop table quotes cascade`)
	for _, r := range writes {
		w.do(ctx, r.method, r.path, r.body).is(500, "internal_error")
	}
	w.do(ctx, "DELETE", path, "").is(500, "internal_error")
	w.do(ctx, "GET", "/quotes", "").is(500, "internal_error")
	w.do(ctx, "GET", path, "").is(500, "internal_error")
	w.do(ctx, "GET", path+"/pdf", "").is(500, "internal_error")
}
