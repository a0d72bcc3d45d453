package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
)

// held creates an intent whose card is authorized but not captured.
func (w *world) held(ctx context.Context) intent {
	w.T.Helper()
	p := w.post(ctx, strings.TrimSuffix(w.booked(ctx, 1000), "}")+`,"capture_method":"manual"}`).is(201).intent()
	w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Capturable = domain.RequiresCapture, 1000 })
	w.refresh(ctx, p.ID)
	return p
}

// TestErrorResponses checks that each operation returns the same errors for faults that any request can have.
func TestErrorResponses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	path := "/payment-intents/" + w.held(ctx).ID
	refund := refundOf(w.paid(ctx, 1000), `,"amount_minor":10`)
	refundPath := "/refunds/" + w.refund(ctx, refund).is(201).refund().ID
	writes := []struct{ path, body string }{
		{"/payment-intents", w.booked(ctx, 100)},
		{path + "/capture", ""},
		{"/payment-intents/" + w.held(ctx).ID + "/cancel", ""},
		{"/refunds", refund},
	}
	big := `{"description":"` + strings.Repeat("x", 1<<20) + `"}`
	for i, r := range writes {
		w.do(ctx, "POST", r.path, r.body, "X-Caller: ").is(401, "invalid_credential")
		w.do(ctx, "POST", r.path, "{").is(400, "malformed_json")
		w.do(ctx, "POST", r.path, big).is(413, "request_too_large")
		if i == 1 || i == 2 {
			w.do(ctx, "POST", r.path, r.body, `If-Match: "7"`).is(412, "version_mismatch")
			w.gateway.Before = func(context.Context, string) error { return errLost }
			w.do(ctx, "POST", r.path, r.body).is(502, "payment_intent_failed")
			w.gateway.Before = nil
		}
	}
	w.engine = w.serve(w.Impatient(50 * time.Millisecond))
	release := w.HoldKey(caller.FromContext(ctx), "a")
	for _, r := range writes {
		w.do(ctx, "POST", r.path, r.body, key("a")).is(409, "idempotency_in_progress")
	}
	release()
	w.engine = w.serve(w.DB.App)
	for _, read := range []string{"/payment-intents", path, "/refunds", refundPath} {
		w.do(ctx, "GET", read, "", "X-Caller: ").is(401, "invalid_credential")
		w.do(ctx, "GET", read+"?x=1", "").is(422, "invalid_request", "x")
	}
	w.Exec(`drop table payment_intents, refunds cascade`)
	for _, r := range writes {
		a := w.do(ctx, "POST", r.path, r.body, key("b")).is(500, "internal_error")
		if strings.Contains(string(a.Body), "relation") {
			t.Errorf("the cause is shown: %s", a.Body)
		}
	}
	w.do(ctx, "GET", "/payment-intents", "").is(500, "internal_error")
	for _, read := range []string{path, "/refunds", refundPath} {
		w.do(ctx, "GET", read, "").is(500, "internal_error")
	}
}

func TestOverload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	path := "/payment-intents/" + w.held(ctx).ID
	w.Overloaded(ctx, w.serve, []apitest.Request{
		{Method: "POST", Path: "/payment-intents", Body: w.booked(ctx, 100)},
		{Method: "GET", Path: "/payment-intents"},
		{Method: "GET", Path: path},
		{Method: "POST", Path: path + "/cancel"},
		{Method: "POST", Path: path + "/capture"},
		{Method: "POST", Path: "/refunds", Body: refundOf(w.paid(ctx, 100), "")},
		{Method: "GET", Path: "/refunds"},
		{Method: "GET", Path: "/refunds/" + w.refund(ctx, refundOf(w.paid(ctx, 100), "")).is(201).refund().ID},
	})
}

// TestBookingsUnreachable checks that the service does not call the payment gateway while bookings or customers is unavailable.
// Afterwards the same request works.
func TestBookingsUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	body := w.booked(ctx, 100)
	down := errors.New("connection refused")
	w.bookings.Fail = func() error { return down }
	w.post(ctx, body, key("k")).is(500, "internal_error")
	if n := w.gateway.Created(); n != 0 {
		t.Errorf("%d created", n)
	}
	w.bookings.Fail = nil
	w.post(ctx, body, key("k")).is(201)
	b := w.bookings.Add(ctx, "pending", 100, 100, "USD")
	body = fmt.Sprintf(`{"booking_id":%q,"invoice_id":%q}`, b.ID, w.invoices.Add(ctx, b.ID, "open", 100, "USD").ID)
	w.invoices.Fail = func() error { return down }
	w.post(ctx, body, key("l")).is(500, "internal_error")
	if n := w.gateway.Created(); n != 1 {
		t.Errorf("%d created", n)
	}
	w.invoices.Fail = nil
	w.post(ctx, body, key("l")).is(201)
}
