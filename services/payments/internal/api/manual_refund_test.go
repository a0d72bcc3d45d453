package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

// TestManualRefund checks that a refund by another method records money that was handed back: without a call to the gateway, once for
// each key, for what is left on the account and no more, whatever it was paid by.
func TestManualRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	w.refund(ctx, refundOfBooking(b, `,"method":"cash"`)).is(409, "nothing_to_refund")
	p := w.paidOf(ctx, b, 600)
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 400, domain.AnyVersion).is(200)
	body := refundOfBooking(b, `,"method":"cash","reference":"Receipt 7","amount_minor":300,"metadata":{"why":"rain"}`)
	created := w.refund(ctx, body, key("k")).is(201)
	r := created.refund()
	if r.Status != "succeeded" || r.Amount != 300 || r.IntentID != nil || len(r.Allocations) != 0 || r.Version != 1 ||
		!strings.Contains(string(created.Body), `"method":"cash","reference":"Receipt 7"`) || !strings.Contains(string(created.Body), `"allocations":[]`) {
		t.Errorf("%s", created.Body)
	}
	if again := w.refund(ctx, body, key("k")).is(201); string(again.Body) != string(created.Body) {
		t.Errorf("%s", again.Body)
	}
	w.refund(ctx, refundOfBooking(b, `,"method":"cash"`), key("k")).is(422, "idempotency_mismatch")
	if got := w.do(ctx, "GET", "/refunds/"+r.ID, "").is(200); string(got.Body) != string(created.Body) {
		t.Errorf("%s", got.Body)
	}
	if list := w.do(ctx, "GET", "/refunds?status=succeeded&metadata[why]=rain&booking_id="+b.ID.String(), "").is(200); !strings.Contains(string(list.Body), r.ID) {
		t.Errorf("%s", list.Body)
	}
	if list := (response{w.Send(ctx, w.engine, "customers", "GET", "/internal/v1/refunds?customer_id="+b.CustomerID.String(), "")}).is(200); !strings.Contains(string(list.Body), r.ID) {
		t.Errorf("the export lacks the refund: %s", list.Body)
	}
	w.refund(ctx, refundOf(p, `,"method":"cash"`)).is(422, "invalid_request", "booking_id")
	w.refund(ctx, refundOfBooking(b, `,"method":"card"`)).is(422, "invalid_request", "method")
	w.refund(ctx, refundOfBooking(w.bookings.Add(w.tenant(), "confirmed", 1, 1, "USD"), `,"method":"cash"`)).is(404, "booking_not_found")
	if got := w.refund(ctx, refundOfBooking(b, `,"method":"other","amount_minor":701`)).is(422, "invalid_request", "amount_minor"); !strings.Contains(string(got.Body), "700") {
		t.Errorf("%s", got.Body)
	}
	if n := len(w.gateway.Refunds()); n != 0 {
		t.Errorf("%d refunds at the gateway", n)
	}
	w.refund(ctx, refundOfBooking(b, `,"method":"bank_transfer"`)).is(201)
	w.refund(ctx, refundOf(p, "")).is(409, "nothing_to_refund") // the card payment was returned another way
	if a := w.account(ctx, b.ID, ""); a.Returned != 1000 || a.Held != 0 {
		t.Errorf("%+v", a)
	}
	w.balanced()
	erased := message(ctx, t, "customers", "customer.erased", b.CustomerID.String(), 2, `{}`)
	if err := w.topicHandlers.Handle(ctx, erased); err != nil {
		t.Fatal(err)
	}
	for _, got := range []response{w.do(ctx, "GET", "/refunds/"+r.ID, ""), w.refund(ctx, body, key("k"))} {
		if text := string(got.Body); strings.Contains(text, "Receipt 7") || strings.Contains(text, "rain") {
			t.Errorf("not erased: %s", text)
		}
	}
}

// TestRefundsAreBoundedByTheAccount checks that a refund to the card is at most what the account has left, whatever its payments say, and
// that the response says how much that is.
func TestRefundsAreBoundedByTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 2000, 2000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.giveBack(ctx, b.ID, ids.New[ids.CreditNotePrefix](), 400, domain.AnyVersion).is(200)
	if got := w.refund(ctx, refundOf(p, `,"amount_minor":601`)).is(422, "invalid_request", "amount_minor"); !strings.Contains(string(got.Body), "600") {
		t.Errorf("%s", got.Body)
	}
	w.noteRefund(ctx, ids.New[ids.CreditNotePrefix](), b, part{p, 601}).is(422, "invalid_request", "parts")
	w.gateway.RefundStatus = domain.RefundPending
	w.refund(ctx, refundOf(p, `,"amount_minor":250`)).is(201) // in progress
	w.refund(ctx, refundOf(p, `,"amount_minor":351`)).is(422, "invalid_request", "amount_minor")
	w.gateway.Dashboard(p.ID, 100)
	w.refresh(ctx, p.ID)
	w.refund(ctx, refundOf(p, `,"amount_minor":251`)).is(422, "invalid_request", "amount_minor")
	if r := w.refund(ctx, refundOf(p, "")).is(201).refund(); r.Amount != 250 {
		t.Errorf("%+v", r)
	}
	w.refund(ctx, refundOf(p, "")).is(409, "nothing_to_refund")
	w.balanced()
}

// TestRefundRaceOfAllMethods checks that refunds by all methods at the same time never return more than was received.
func TestRefundRaceOfAllMethods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 600)
	cash := ids.New[ids.PaymentPrefix]()
	w.receive(ctx, b.ID, cash, 400, domain.AnyVersion).is(200)
	ways := []func() response{
		func() response { return w.refund(ctx, refundOf(p, `,"amount_minor":130`)) },
		func() response { return w.refund(ctx, refundOfBooking(b, `,"amount_minor":130`)) },
		func() response { return w.refund(ctx, refundOfBooking(b, `,"amount_minor":130,"method":"cash"`)) },
		func() response { return w.noteRefund(ctx, ids.New[ids.CreditNotePrefix](), b, part{p, 130}) },
		func() response { return w.giveBack(ctx, b.ID, ids.New[ids.CreditNotePrefix](), 130, domain.AnyVersion) },
		func() response { return w.reverse(ctx, b.ID, cash) },
	}
	atOnce(6*len(ways), func(i int) {
		if a := ways[i%len(ways)](); a.Status >= 500 {
			t.Errorf("%d: %d %s", i%len(ways), a.Status, a.Body)
		}
	})
	w.refresh(ctx, p.ID)
	a := w.account(ctx, b.ID, "")
	if a.Returned+a.Held > a.Received || a.Received-a.Returned-a.Held >= 130 {
		t.Errorf("%+v", a)
	}
	w.balanced()
}

// TestADisputedPaymentIsNotRefunded checks that a payment with a dispute is not refunded, without a call to the gateway. A refund of the
// booking uses the other payments.
func TestADisputedPaymentIsNotRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 600)
	w.gateway.Change(p.ID, func(s *domain.Snapshot) {
		s.DisputesRead, s.Disputes = true, []domain.Dispute{{ID: "dp_1", Status: domain.DisputeNeedsResponse}}
	})
	w.refresh(ctx, p.ID)
	w.refund(ctx, refundOf(p, "")).is(422, "payment_disputed", "payment_intent_id")
	w.refund(ctx, refundOfBooking(b, "")).is(422, "payment_disputed", "payment_intent_id")
	w.noteRefund(ctx, ids.New[ids.CreditNotePrefix](), b, part{p, 1}).is(422, "payment_disputed")
	other := w.paidOf(ctx, b, 400)
	if r := w.refund(ctx, refundOfBooking(b, "")).is(201).refund(); r.Amount != 400 || r.Allocations[0].Intent != other.ID {
		t.Errorf("%+v", r)
	}
	if n := len(w.gateway.Refunds()); n != 1 {
		t.Errorf("%d refunds at the gateway", n)
	}
}

// TestManualReturnsCountTowardsOwedRefunds checks that what was handed back after a cancellation is no longer refunded to the card.
func TestManualReturnsCountTowardsOwedRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.refund(ctx, refundOfBooking(b, `,"method":"cash","amount_minor":100`)).is(201) // before: it does not count
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, nil))
	w.lose(ctx, b, "cancelled", 2)
	w.refund(ctx, refundOfBooking(b, `,"method":"cash","amount_minor":150`)).is(201)
	w.giveBack(ctx, b.ID, ids.New[ids.CreditNotePrefix](), 50, domain.AnyVersion).is(200)
	w.settle()
	if n := w.returned(p); n != 400 {
		t.Errorf("%d were refunded to the card, want 400", n)
	}
	w.balanced()
}

// TestReceiptsCountAtOnce checks that an intent is at most what is due after the payments on the account, although bookings has not read
// them yet.
func TestReceiptsCountAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	create := fmt.Sprintf(`{"booking_id":%q}`, b.ID)
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 300, 0).is(200)
	if p := w.post(ctx, create).is(201).intent(); p.Amount != 700 {
		t.Errorf("%+v", p)
	}
	w.payFor(ctx, b, domain.InvoiceID{}, 200)
	if p := w.post(ctx, create).is(201).intent(); p.Amount != 500 {
		t.Errorf("%+v", p)
	}
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 500, 2).is(200)
	w.post(ctx, create).is(422, "booking_already_paid")
}

// TestManualRefundIsRecordedOnce checks that parallel requests with one key record one refund, and that a refused one frees its key.
func TestManualRefundIsRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	body := refundOfBooking(b, `,"method":"cash","amount_minor":100`)
	w.refund(ctx, body, key("k")).is(409, "nothing_to_refund")
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 400, 0).is(200)
	atOnce(10, func(int) { w.refund(ctx, body, key("k")).is(201) })
	if a := w.account(ctx, b.ID, ""); a.Returned != 100 {
		t.Errorf("%+v", a)
	}
	broken := w.engine
	w.engine = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) { // the client disconnects: nothing or all is written
		ctx, cancel := context.WithCancel(req.Context())
		cancel()
		broken.ServeHTTP(rw, req.WithContext(ctx))
	})
	_ = w.refund(ctx, body, key("other"))
	w.engine = broken
	w.refund(ctx, body, key("other")).is(201)
	if a := w.account(ctx, b.ID, ""); a.Returned != 200 {
		t.Errorf("%+v", a)
	}
}
