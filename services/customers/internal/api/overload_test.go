package api_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestOverload(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/customers/" + w.create(ctx, "").ID
	w.Overloaded(ctx, w.serve, []apitest.Request{
		{Method: "POST", Path: "/customers", Body: ann},
		{Method: "GET", Path: "/customers"},
		{Method: "GET", Path: "/customers?q=a"},
		{Method: "GET", Path: "/customers?sort=updated_at"},
		{Method: "GET", Path: path},
		{Method: "PATCH", Path: path, Body: `{"phone":"1"}`},
		{Method: "DELETE", Path: path},
	})
}

// A single row that stays locked is answered alike.
func TestLockedCustomer(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	c := w.create(ctx, "")
	w.engine = w.serve(w.Impatient(50 * time.Millisecond))
	release := w.Hold(`select from customers for update`)
	for _, r := range []apitest.Request{{Method: "PATCH", Body: `{"phone":"1"}`}, {Method: "DELETE"}} {
		a := w.do(ctx, r.Method, "/customers/"+c.ID, r.Body, "Idempotency-Key: k").is(503, "unavailable")
		if a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: 503 without Retry-After", r.Method)
		}
	}
	release()
	w.do(ctx, "PATCH", "/customers/"+c.ID, `{"phone":"1"}`, "Idempotency-Key: k").is(200)
}
