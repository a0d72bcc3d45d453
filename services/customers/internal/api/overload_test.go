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
	ctx = withScopes(ctx, "read:customers", "write:customers", "write:bookings")
	path, lead := "/customers/"+w.create(ctx, "").ID, "/leads/"+w.lead(ctx, `"email":"a@b.co"`).ID
	v := w.pay(ctx, w.open(ctx, 2), 1).is(200).invoice()
	offer := "/quotes/" + w.sentQuote(ctx, "").ID
	note := w.credit(ctx, v, `{"amount":`+usd(1)+`}`).is(201).note()
	bill, payment := "/invoices/"+v.ID, `{"amount":`+usd(1)+`,"method":"cash"}`
	w.Overloaded(ctx, w.serve, []apitest.Request{
		{Method: "POST", Path: "/customers", Body: ann},
		{Method: "GET", Path: "/customers"},
		{Method: "GET", Path: "/customers?q=a"},
		{Method: "GET", Path: "/customers?sort=updated_at"},
		{Method: "GET", Path: path},
		{Method: "GET", Path: path + "/export"},
		{Method: "PATCH", Path: path, Body: `{"phone":"1"}`},
		{Method: "DELETE", Path: path},
		{Method: "POST", Path: "/leads", Body: `{"first_name":"Ann"}`},
		{Method: "GET", Path: "/leads"},
		{Method: "GET", Path: "/leads?q=a"},
		{Method: "GET", Path: lead},
		{Method: "PATCH", Path: lead, Body: `{"phone":"1"}`},
		{Method: "POST", Path: lead + "/convert"},
		{Method: "POST", Path: lead + "/convert", Body: `{"booking":{"event_date":"2030-01-01"}}`},
		{Method: "POST", Path: "/invoices", Body: `{"customer_id":` + str(v.CustomerID) + `,"line_items":[` + line(1) + `]}`},
		{Method: "GET", Path: "/invoices"},
		{Method: "GET", Path: "/invoices?overdue=true"},
		{Method: "GET", Path: bill},
		{Method: "PATCH", Path: bill, Body: `{"notes":"x"}`},
		{Method: "DELETE", Path: bill},
		{Method: "POST", Path: bill + "/open"},
		{Method: "POST", Path: bill + "/void"},
		{Method: "POST", Path: bill + "/mark-uncollectible"},
		{Method: "POST", Path: bill + "/record-payment", Body: payment},
		{Method: "POST", Path: bill + "/payments/" + v.Payments[0].ID + "/reverse"},
		{Method: "GET", Path: bill + "/pdf"},
		{Method: "POST", Path: bill + "/credit-notes"},
		{Method: "GET", Path: "/credit-notes"},
		{Method: "GET", Path: "/credit-notes/" + note.ID},
		{Method: "GET", Path: "/credit-notes/" + note.ID + "/pdf"},
		{Method: "POST", Path: "/quotes", Body: `{"customer_id":` + str(v.CustomerID) + `,` + lines + `}`},
		{Method: "GET", Path: "/quotes"},
		{Method: "GET", Path: "/quotes?expand=customer"},
		{Method: "GET", Path: offer},
		{Method: "PATCH", Path: offer, Body: `{"notes":"x"}`},
		{Method: "DELETE", Path: offer},
		{Method: "POST", Path: offer + "/send"},
		{Method: "POST", Path: offer + "/accept"},
		{Method: "POST", Path: offer + "/decline"},
		{Method: "POST", Path: offer + "/cancel"},
		{Method: "GET", Path: offer + "/pdf"},
	})
}

// TestLockedCustomer checks that a single row that stays locked leads to the same response.
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
