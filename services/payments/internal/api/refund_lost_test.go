package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

func (w *world) completeRefunds() {
	w.T.Helper()
	if err := w.refunder.Run(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

// onCall makes the n-th call of a kind fail with the error of fail.
func onCall(kind string, n int64, fail func() error) func(context.Context, string) error {
	var seen atomic.Int64
	return func(_ context.Context, call string) error {
		if call == kind && seen.Add(1) == n {
			return fail()
		}
		return nil
	}
}

// TestLostRefunds checks that, if a response of the gateway is lost or the process crashes, before or after the effect, at the
// first or the second part, the client's repetition or the completer finds the refund. No refund is created twice.
func TestLostRefunds(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after", "crash before", "crash after"} {
		for _, who := range []string{"client", "completer", "completer, a day later"} {
			for nth := int64(1); nth <= 2; nth++ {
				t.Run(fmt.Sprintf("%s, %s, %d", when, who, nth), func(t *testing.T) {
					t.Parallel()
					lostRefund(t, when, who, nth)
				})
			}
		}
	}
}

func lostRefund(t *testing.T, when, who string, nth int64) {
	t.Helper()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	older, newer := w.paidOf(ctx, b, 600), w.paidOf(ctx, b, 400)
	fail := func() error { return errLost }
	if strings.HasPrefix(when, "crash") {
		fail = func() error {
			w.Exec(`alter table refunds add constraint dead check (false) not valid`)
			return errLost
		} // nothing more can be written
	}
	if strings.HasSuffix(when, "before") {
		w.gateway.Before = onCall("refund", nth, fail)
	} else {
		w.gateway.After = onCall("refund", nth, fail)
	}
	body := refundOfBooking(b, "")
	a := w.refund(ctx, body, key("k"))
	if strings.HasPrefix(when, "crash") {
		w.Exec(`alter table refunds drop constraint dead`)
	} else {
		a.is(502, "payment_intent_failed")
	}
	if list := w.do(ctx, "GET", "/refunds", "").is(200); strings.Contains(string(list.Body), "rf_") != (nth == 2) {
		t.Errorf("%s", list.Body)
	}
	w.refund(ctx, body, key("other")).is(409, "nothing_to_refund") // the amount is reserved
	w.ahead.Add(int64(31 * time.Second))
	if who == "completer, a day later" {
		w.ahead.Add(int64(23 * time.Hour))
		w.gateway.Forget()
	}
	if who != "client" {
		w.completeRefunds()
	}
	if n := w.Count(`select count(*) from refunds where leased_until is null`); n != 1 && who != "client" {
		t.Errorf("%d are complete", n)
	}
	r := w.refund(ctx, body, key("k")).is(201).refund()
	if r.Status != "succeeded" || r.Amount != 1000 || len(r.Allocations) != 2 {
		t.Errorf("%+v", r)
	}
	list := w.gateway.Refunds()
	if len(list) != 2 || string(list[0].Intent) != newer.ID || list[0].Minor != 400 || string(list[1].Intent) != older.ID || list[1].Minor != 600 {
		t.Errorf("%+v", list)
	}
	if r.Version != 2 || strings.Count(w.Types(), "updated") < 4 {
		t.Errorf("version %d, %s", r.Version, w.Types())
	}
	if n := w.Count(`select count(*) from payment_intents where refund_reserved <> received`); n != 0 {
		t.Errorf("%d intents are not reserved", n)
	}
}

// TestBrokenRefunds checks that, if the gateway stores a response without information, another attempt is made only if the refund
// is not found there.
func TestBrokenRefunds(t *testing.T) {
	t.Parallel()
	for _, had := range []bool{false, true} {
		w := newWorld(t)
		ctx := w.tenant()
		p := w.paid(ctx, 1000)
		calls := 0
		breakCall := func(_ context.Context, call string) error {
			if call == "refund" && calls < 2 { // first attempt and its repetition
				calls++
				return &domain.BrokenError{Status: 500}
			}
			return nil
		}
		want := 2
		if had {
			w.gateway.After, want = breakCall, 1
		} else {
			w.gateway.Before = breakCall
		}
		w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("k")).is(502, "payment_intent_failed")
		w.ahead.Add(int64(2 * time.Second))
		w.completeRefunds()
		if n := len(w.gateway.Refunds()); n != 1 {
			t.Errorf("effect %t: %d created", had, n)
		}
		if n := w.Count(`select attempt from refund_allocations where status = 'succeeded'`); n != want {
			t.Errorf("effect %t: attempt %d", had, n)
		}
	}
}

// attempts records the attempts of refunds that reach the gateway.
type attempts struct {
	app.Gateway
	mu   sync.Mutex
	list []string
}

func (g *attempts) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, what)
}

func (g *attempts) CreateRefund(ctx context.Context, a domain.Account, r domain.Refund, part domain.Allocation) (domain.GatewayRefund, error) {
	g.note(fmt.Sprint(part.Attempt))
	return g.Gateway.CreateRefund(ctx, a, r, part)
}

func (g *attempts) FindRefund(ctx context.Context, a domain.Account, part domain.Allocation, since time.Time) (*domain.GatewayRefund, error) {
	g.note("find")
	return g.Gateway.FindRefund(ctx, a, part, since)
}

// TestBrokenRefundIsRepeatedFirst checks that, after a 500 of the gateway, the client and the completer repeat the same attempt
// with the same key. Another attempt begins only if that did not help and the refund is not found.
func TestBrokenRefundIsRepeatedFirst(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		broken int64 // number of calls that end in a 500
		client bool  // whether the client repeats before the completer
		want   string
	}{{1, false, "1 1"}, {1, true, "1 1"}, {2, false, "1 1 find 2"}, {2, true, "1 1 1"}, {3, true, "1 1 1 find 2"}} {
		w := newWorld(t)
		seen := &attempts{Gateway: w.gateway}
		w.around = func(app.Gateway) app.Gateway { return seen }
		w.engine = w.serve(w.DB.App)
		ctx := w.tenant()
		p := w.paid(ctx, 1000)
		var calls atomic.Int64
		w.gateway.Before = func(_ context.Context, call string) error {
			if call == "refund" && calls.Add(1) <= tc.broken {
				return &domain.BrokenError{Status: 500}
			}
			return nil
		}
		body := refundOf(p, `,"amount_minor":100`)
		w.refund(ctx, body, key("k")).is(502, "payment_intent_failed")
		w.ahead.Add(int64(31 * time.Second))
		if tc.client {
			w.refund(ctx, body, key("k"))
			w.ahead.Add(int64(31 * time.Second))
		}
		w.completeRefunds()
		w.refund(ctx, body, key("k")).is(201)
		if got := strings.Join(seen.list, " "); got != tc.want || len(w.gateway.Refunds()) != 1 {
			t.Errorf("%+v: %s, %d created", tc, got, len(w.gateway.Refunds()))
		}
	}
}

// refundEvents counts the events of refunds.
func (w *world) refundEvents() (n int) {
	w.T.Helper()
	for _, e := range w.Events() {
		if e.GetType() == "refund.updated" {
			n++
		}
	}
	return n
}

// TestRefusedRefunds checks that a definite refusal releases the reserved amount and the key. If only some parts are refused, the
// response shows which.
func TestRefusedRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	w.paidOf(ctx, b, 600)
	newer := w.paidOf(ctx, b, 400)
	disputed := func() error {
		return &domain.RefusedError{Failure: domain.Failure{Code: "charge_disputed", Message: "The charge has been charged back."}}
	}
	w.gateway.Before = onCall("refund", 1, disputed)
	w.refund(ctx, refundOf(newer, ""), key("k")).is(422, "payment_disputed", "payment_intent_id")
	if n := w.Count(`select count(*) from payment_intents where refund_reserved <> 0`); n != 0 || w.refundEvents() != 0 {
		t.Errorf("%d hold something, %d events", n, w.refundEvents())
	}
	if list := w.do(ctx, "GET", "/refunds", "").is(200); strings.Contains(string(list.Body), "rf_") {
		t.Errorf("it is listed: %s", list.Body)
	}
	var hidden [16]byte
	if err := w.Owner().QueryRow(ctx, `select id from refunds`).Scan(&hidden); err != nil {
		t.Fatal(err)
	}
	w.do(ctx, "GET", "/refunds/"+ids.FromUUID[domain.RefundPrefix](hidden).String(), "").is(404, "refund_not_found")
	for i, busy := range []error{&domain.BusyError{RetryAfter: 7 * time.Second}, &domain.RefusedError{Unread: true, Failure: domain.Failure{Code: "account_refused", Message: "The keys are refused."}}} {
		w.gateway.Before = func(_ context.Context, call string) error {
			if call == "refund" {
				return busy
			}
			return nil
		}
		a := w.refund(ctx, refundOfBooking(b, ""), key("k")).is(502, "payment_intent_failed")
		if i == 0 && a.Header.Get("Retry-After") != "7" {
			t.Errorf("%v", a.Header)
		}
		if n := w.Count(`select count(*) from payment_intents where refund_reserved <> 0`); n != 0 {
			t.Errorf("%d hold something", n)
		}
	}
	w.gateway.Before = onCall("refund", 1, disputed)
	r := w.refund(ctx, refundOfBooking(b, ""), key("k")).is(201).refund()
	if r.Status != "failed" || r.Allocations[0].Status != "failed" || r.Allocations[0].Failure == nil || r.Allocations[0].Failure.Code != "charge_disputed" ||
		r.Allocations[0].Gateway != nil || r.Allocations[1].Status != "succeeded" {
		t.Errorf("%+v", r)
	}
	if n := w.Count(`select sum(refund_reserved) from payment_intents`); n != 600 {
		t.Errorf("%d reserved", n)
	}
	if again := w.refund(ctx, refundOfBooking(b, ""), key("k2")).is(201).refund(); again.Amount != 400 {
		t.Errorf("%+v", again)
	}
}

// TestBusyAfterALostResponse checks that a gateway that accepts no requests, or refuses the keys, does not show the result of an
// earlier call of the same attempt.
func TestBusyAfterALostResponse(t *testing.T) {
	t.Parallel()
	for _, later := range []error{&domain.BusyError{RetryAfter: time.Second}, &domain.RefusedError{Unread: true, Failure: domain.Failure{Code: "account_refused", Message: "The keys are refused."}}} {
		w := newWorld(t)
		ctx := w.tenant()
		p := w.paid(ctx, 1000)
		w.gateway.After = onCall("refund", 1, func() error { return errLost })
		w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("k")).is(502, "payment_intent_failed")
		w.gateway.Before = func(_ context.Context, call string) error {
			if call == "refund" {
				return later
			}
			return nil
		}
		w.ahead.Add(int64(2 * time.Second))
		w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("k")).is(502, "payment_intent_failed")
		w.ahead.Add(int64(2 * time.Second))
		w.completeRefunds()
		w.gateway.Before = nil
		w.ahead.Add(int64(20 * time.Second)) // less than the lease; an unknown outcome is retried soon
		w.completeRefunds()
		w.refund(ctx, refundOf(p, `,"amount_minor":100`), key("k")).is(201)
		if n := len(w.gateway.Refunds()); n != 1 {
			t.Errorf("%d created", n)
		}
	}
}

// TestRefundEvents checks that events cause a read of the intent and its refunds: a refund that ends, one that fails after its end,
// one whose response was lost, and one that was created in the gateway's dashboard.
func TestRefundEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	p := w.paid(ctx, 1000)
	sent := 0
	event := func(kind, object string) {
		sent++
		w.event(account, "whsec_1", time.Now(), eventBody(fmt.Sprintf("evt_%d", sent), kind, object)).is(200)
		w.work()
	}
	ofRefund := func(kind, id string) {
		event(kind, fmt.Sprintf(`{"id":%q,"object":"refund","status":"canceled","payment_intent":%q}`, id, p.ID))
	}
	w.gateway.RefundStatus = domain.RefundPending
	r := w.refund(ctx, refundOf(p, `,"amount_minor":300`)).is(201).refund()
	if r.Status != "pending" {
		t.Errorf("%+v", r)
	}
	gateway := *r.Allocations[0].Gateway
	ofRefund("charge.refund.updated", gateway)
	if got := w.getRefund(ctx, r.ID); got.Status != "pending" || got.Version != 1 || w.refundEvents() != 1 {
		t.Errorf("the event was believed, or there is another one: %+v, %d events", got, w.refundEvents())
	}
	w.gateway.EndRefund(gateway, domain.RefundSucceeded)
	event("charge.refunded", fmt.Sprintf(`{"id":"ch_1","object":"charge","payment_intent":%q}`, p.ID))
	if got := w.getRefund(ctx, r.ID); got.Status != "succeeded" || got.Version != 2 || w.refunded(ctx, p.ID) != 300 {
		t.Errorf("%+v", got)
	}
	w.gateway.EndRefund(gateway, domain.RefundFailed)
	ofRefund("refund.failed", gateway)
	got := w.getRefund(ctx, r.ID)
	if got.Status != "failed" || got.Version != 3 || got.Allocations[0].Failure == nil || w.refunded(ctx, p.ID) != 0 {
		t.Errorf("%+v, %d refunded", got, w.refunded(ctx, p.ID))
	}
	w.gateway.RefundStatus = ""
	w.gateway.After = onCall("refund", 1, func() error { return errLost })
	w.refund(ctx, refundOf(p, `,"amount_minor":500`), key("k")).is(502, "payment_intent_failed")
	refunds := w.gateway.Refunds()
	ofRefund("refund.created", refunds[len(refunds)-1].ID)
	if found := w.refund(ctx, refundOf(p, `,"amount_minor":500`), key("k")).is(201).refund(); found.Status != "succeeded" {
		t.Errorf("%+v", found)
	}
	ofRefund("refund.created", w.gateway.Dashboard(p.ID, 200))
	if n := w.refunded(ctx, p.ID); n != 700 {
		t.Errorf("%d refunded", n)
	}
	w.gateway.RefundStatus = domain.RefundPending
	w.refund(ctx, refundOf(p, `,"amount_minor":301`)).is(422, "invalid_request", "amount_minor")
	w.refund(ctx, refundOf(p, `,"amount_minor":250`)).is(201)
	a := w.refund(ctx, refundOf(p, `,"amount_minor":51`)).is(422, "invalid_request", "amount_minor") // before the intent is read again
	if !strings.Contains(string(a.Body), "refund, 50.") {
		t.Errorf("%s", a.Body)
	}
	w.work()
	if n := w.Count(`select count(*) from gateway_events where due_at is not null`); n != 0 {
		t.Errorf("%d events are left", n)
	}
	if n := w.Count(`select count(*) from refunds where shown`); n != 3 {
		t.Errorf("%d refunds are shown", n)
	}
}
