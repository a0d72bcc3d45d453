package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

const owedRefunds = "/internal/v1/owed-refunds"

const nextDay = domain.OwedPause + time.Minute

// owedList returns the owed refunds as the console shows them.
func (w *world) owedList(ctx context.Context) internalapi.OwedRefunds {
	w.T.Helper()
	a := response{w.Send(managing(ctx, "payments:read"), w.engine, "console", http.MethodGet, owedRefunds, "")}.is(200)
	return apitest.Decode[internalapi.OwedRefunds](a.Response)
}

func (w *world) owedCall(ctx context.Context, id, verb, body string, headers ...apitest.Header) response {
	w.T.Helper()
	return response{w.Send(managing(ctx, "payments:write"), w.engine, "console", http.MethodPost, owedRefunds+"/"+id+"/"+verb, body, headers...)}
}

func ifMatch(version int64) apitest.Header {
	return apitest.Header(fmt.Sprintf(`If-Match: "%d"`, version))
}

func (w *world) owedState(state string) int {
	return w.Count(`select count(*) from automatic_refunds where state = '` + state + `'`)
}

// refuse makes the gateway refuse refunds, as during an open dispute, until the returned function is called.
func (w *world) refuse() (end func()) {
	var on atomic.Bool
	on.Store(true)
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "refund" && on.Load() {
			return &domain.RefusedError{Failure: domain.Failure{Code: "charge_disputed", Message: "The charge has a dispute."}}
		}
		return nil
	}
	return func() { on.Store(false) }
}

// returned returns the amount that the gateway has refunded of some intents, without failed refunds.
func (w *world) returned(intents ...intent) (minor int64) {
	for _, r := range w.gateway.Refunds() {
		for _, p := range intents {
			if string(r.Intent) == p.ID && r.Status.Holds() {
				minor += r.Minor
			}
		}
	}
	return minor
}

// TestRefusedOwedRefundIsTriedAgain checks that a refund that the gateway refuses once is shown, retried a day later, and created
// once.
func TestRefusedOwedRefundIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for _, late := range []bool{false, true} {
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		want := int64(600)
		if late {
			want = 1000
		}
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: late}))
		end := w.refuse()
		w.lose(ctx, b, "cancelled", 2)
		w.settle()
		w.settle()
		if late {
			w.Count(`update automatic_refunds set state = 'closed', due_at = null where cause = 'cancelled' returning 1`) // in cash
		}
		list := w.owedList(ctx)
		if list.Count != 1 || len(list.Data) != 1 || list.HasMore {
			t.Fatalf("%+v", list)
		}
		o := list.Data[0]
		if o.BookingID != b.ID.String() || o.Amount != want || o.RemainingAmount != want || o.Currency != "USD" || o.Status != "open" || o.Tries != 1 ||
			o.Failure == nil || o.Failure.Code != "charge_disputed" || o.NextTryAt == nil || o.NextTryAt.Sub(*o.FailedAt) != domain.OwedPause {
			t.Errorf("%+v", o)
		}
		w.ahead.Add(int64(nextDay))
		w.settle()
		w.settle()
		if list := w.owedList(ctx); list.Count != 1 || list.Data[0].Tries != 2 || w.returned(p) != 0 {
			t.Errorf("a day later: %+v", list)
		}
		end()
		w.ahead.Add(int64(nextDay))
		w.settle()
		w.settle()
		if list := w.owedList(ctx); list.Count != 0 || w.returned(p) != want || w.refunded(ctx, p.ID) != want || w.owedState("done") != 1 {
			t.Errorf("%+v, returned %d", list, w.returned(p))
		}
		w.Count(`delete from automatic_refunds returning 1`)
	}
}

// TestOwedRefundThatFailsLater checks that a refund that fails later, while it is pending or after it has succeeded, is owed again,
// and created again a day later.
func TestOwedRefundThatFailsLater(t *testing.T) {
	t.Parallel()
	for _, first := range []domain.RefundStatus{domain.RefundPending, domain.RefundSucceeded, domain.RefundRequiresAction} {
		t.Run(string(first), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := w.tenant()
			b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
			p := w.paidOf(ctx, b, 1000)
			w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 700, map[string]bool{p.ID: false}))
			w.gateway.RefundStatus = first
			w.lose(ctx, b, "cancelled", 2)
			w.settle()
			w.ahead.Add(int64(5 * nextDay))
			w.settle()
			if n := len(w.gateway.Refunds()); n != 1 || w.owedList(ctx).Count != 0 {
				t.Fatalf("%d refunds, while one is under way", n)
			}
			w.gateway.EndRefund(w.gateway.Refunds()[0].ID, domain.RefundFailed)
			w.readRefund(ctx, p.ID, w.gateway.Refunds()[0].ID)
			w.gateway.RefundStatus = domain.RefundSucceeded
			w.settle()
			if list := w.owedList(ctx); list.Count != 1 || list.Data[0].Failure.Code != "expired_or_canceled_card" || list.Data[0].RemainingAmount != 700 ||
				len(w.gateway.Refunds()) != 1 {
				t.Fatalf("%+v", list)
			}
			w.ahead.Add(int64(nextDay))
			w.settle()
			w.settle()
			if w.returned(p) != 700 || len(w.gateway.Refunds()) != 2 || w.owedState("done") != 1 {
				t.Errorf("returned %d by %d refunds", w.returned(p), len(w.gateway.Refunds()))
			}
		})
	}
}

// readRefund reads a refund as an event about it would.
func (w *world) readRefund(ctx context.Context, intent, refund string) {
	w.T.Helper()
	p, err := storeIntent(ctx, w, intent)
	if err != nil {
		w.T.Fatal(err)
	}
	account, err := w.accounts.Show(ctx)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := w.intents.Refresh(ctx, account, p); err != nil {
		w.T.Fatal(err)
	}
	if err := w.owed.Refunds.Refresh(ctx, account, p, refund); err != nil {
		w.T.Fatal(err)
	}
}

// TestOwedRefundOverManyPayments checks that the amount that a booking owes is returned through all of its payments, even if they
// exceed the limit of one refund and some of them refuse.
func TestOwedRefundOverManyPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	const many = 125 // more than the refunds of one step can cover
	b := w.bookings.Add(ctx, "confirmed", many*1000, many*1000, "USD")
	late, all := map[string]bool{}, []intent{}
	for range many {
		p := w.paidOf(ctx, b, 1000)
		all, late[p.ID] = append(all, p), false
	}
	refused := all[many-1].ID // the newest
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, many*1000, late))
	w.gateway.Disputed = map[string]bool{refused: true}
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	if got := w.returned(all...); got != (many-1)*1000 {
		t.Errorf("%d are returned, not all of the payments that refuse nothing", got)
	}
	list := w.owedList(ctx)
	if list.Count != 1 || list.Data[0].RemainingAmount != 1000 || list.Data[0].Amount != many*1000 {
		t.Errorf("%+v", list)
	}
	w.gateway.Disputed = nil
	w.ahead.Add(int64(nextDay))
	w.settle()
	if got := w.returned(all...); got != many*1000 || w.owedState("done") != 1 {
		t.Errorf("%d are returned", got)
	}
}

// TestOwedRefundGoesOverAnotherPayment checks that a payment that cannot be refunded does not stop another one from returning the
// owed amount. A payment that is known to be disputed is not tried before the others.
func TestOwedRefundGoesOverAnotherPayment(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		w := newWorld(t)
		ctx := w.tenant()
		b := w.bookings.Add(ctx, "confirmed", 2000, 2000, "USD")
		older, newer := w.paidOf(ctx, b, 1000), w.paidOf(ctx, b, 1000)
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 800, map[string]bool{older.ID: false, newer.ID: false}))
		w.gateway.Disputed = map[string]bool{newer.ID: true}
		if known {
			w.gateway.Change(newer.ID, func(s *domain.Snapshot) {
				s.DisputesRead, s.Disputes = true, []domain.Dispute{{ID: "dp_1", Status: domain.DisputeNeedsResponse, Amount: money.Amount{Minor: 1000, Currency: "USD"}}}
			})
			w.refresh(ctx, newer.ID)
		}
		w.lose(ctx, b, "cancelled", 2)
		w.settle()
		if w.returned(older) != 800 || w.returned(newer) != 0 || w.owedState("done") != 1 {
			t.Errorf("returned %d and %d", w.returned(older), w.returned(newer))
		}
		if n := w.Count(`select count(*) from refund_allocations where status = 'refused'`); (n == 0) != known {
			t.Errorf("the gateway has refused %d refunds", n)
		}
	}
}

// TestRefundsOfPersonsCount checks that a person's refunds after the cancellation count, here or in the gateway's dashboard.
// Earlier refunds do not.
func TestRefundsOfPersonsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.refund(ctx, refundOf(p, `,"amount_minor":100`)).is(201) // bookings counts it when it computes the amount due
	before := w.gateway.Refunds()[0].ID
	end := w.refuse()
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 800, map[string]bool{p.ID: false}))
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	end()
	w.refund(ctx, refundOf(p, `,"amount_minor":300`)).is(201)
	w.settle()
	if list := w.owedList(ctx); list.Count != 1 || list.Data[0].RemainingAmount != 500 {
		t.Errorf("%+v", list)
	}
	w.gateway.Dashboard(p.ID, 200)
	w.refresh(ctx, p.ID)
	w.ahead.Add(int64(nextDay))
	w.settle()
	if got := w.returned(p); got != 900 || w.owedState("done") != 1 {
		t.Errorf("%d are returned", got)
	}
	// The earlier refund fails. The owed amount is still returned, and nothing more.
	w.gateway.EndRefund(before, domain.RefundFailed)
	w.readRefund(ctx, p.ID, before)
	w.ahead.Add(int64(nextDay))
	w.settle()
	if got := w.returned(p); got != 800 || w.owedList(ctx).Count != 0 {
		t.Errorf("%d are returned", got)
	}
}

// TestOwedRefundRaces checks that workers of several processes and a person, acting at the same time, never return more than is
// owed, and in the end return all of it.
func TestOwedRefundRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for range 10 {
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
		end := w.refuse()
		w.lose(ctx, b, "cancelled", 2)
		w.settle()
		end()
		w.ahead.Add(int64(nextDay))
		atOnce(5, func(i int) {
			if i == 0 {
				w.refund(ctx, refundOf(p, `,"amount_minor":250`))
				return
			}
			if err := w.owed.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
		w.settle()
		// The person's refund counts if it was first. Otherwise it is a refund of the rest of the payment.
		if got := w.returned(p); got != 600 && got != 850 {
			t.Fatalf("%d are returned", got)
		}
		if own := w.Count(`select coalesce(sum(amount), 0) from refunds where owed_id is not null and status = 'succeeded' and booking_id = '` + uuidOf(b.ID) + `'`); own > 600 {
			t.Fatalf("%d by the policy", own)
		}
	}
	if n := w.owedState("done"); n != 10 {
		t.Errorf("%d are done", n)
	}
}

func uuidOf(id domain.BookingID) string {
	u := id.UUID()
	return fmt.Sprintf("%x", u[:])
}

// TestOwedRefundIsCreatedOnce checks that the refund is created once if the process crashes before or after the call, or if its
// response is lost.
func TestOwedRefundIsCreatedOnce(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		w := newWorld(t)
		ctx := w.tenant()
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
		w.lose(ctx, b, "cancelled", 2)
		crash := onCall("refund", 1, func() error { panic("the process crashes") })
		if after {
			w.gateway.After = crash
		} else {
			w.gateway.Before = crash
		}
		if err := w.settler.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.owed.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.engine = w.serve(w.DB.App) // the next process
		for range 3 {
			w.ahead.Add(int64(nextDay))
			w.settle()
		}
		if n := len(w.gateway.Refunds()); n != 1 || w.returned(p) != 600 || w.owedState("done") != 1 {
			t.Errorf("after the call %v: %d refunds of %d", after, n, w.returned(p))
		}
	}
}

// TestOwedRefundIsClosed checks that an owed refund that no card payment can return is shown until a person closes it with a note.
// Only a person with the scope can close it, and only in this state.
func TestOwedRefundIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, stranger := w.tenant(), w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 2000, 2000, "USD")
	p := w.paidOf(ctx, b, 500)
	w.receive(ctx, b.ID, ids.New[ids.PaymentPrefix](), 400, domain.AnyVersion).is(200)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 900, map[string]bool{p.ID: false}))
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	version := w.owedList(ctx).Data[0].Version
	for range 3 {
		w.ahead.Add(int64(nextDay))
		w.settle()
	}
	list := w.owedList(ctx)
	if list.Count != 1 || list.Data[0].Version != version || list.Data[0].Failure.Code != "nothing_to_refund" || list.Data[0].RemainingAmount != 400 || list.Data[0].Amount != 900 || list.Data[0].Tries != 1 {
		t.Fatalf("%+v", list)
	}
	o := list.Data[0]
	live := pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live)
	for _, other := range []context.Context{stranger, live} {
		if w.owedList(other).Count != 0 {
			t.Error("another tenant or mode sees it")
		}
		w.owedCall(other, o.ID, "close", `{"note":"x"}`).is(404, "refund_not_found")
		w.owedCall(other, o.ID, "retry", "").is(404, "refund_not_found")
	}
	response{w.Send(managing(ctx, "payments:read"), w.engine, "console", "POST", owedRefunds+"/"+o.ID+"/close", `{"note":"x"}`)}.is(403, "insufficient_scope")
	response{w.Send(managing(ctx, "payments:write"), w.engine, "gateway", "POST", owedRefunds+"/"+o.ID+"/close", `{"note":"x"}`)}.is(401)
	w.owedCall(ctx, "rfo_x", "close", `{"note":"x"}`).is(404, "refund_not_found")
	body := `{"note":" Returned in cash to Grace. "}`
	w.owedCall(ctx, o.ID, "close", body, ifMatch(o.Version-1)).is(412, "version_mismatch")
	w.owedCall(ctx, o.ID, "retry", "", ifMatch(o.Version-1)).is(412, "version_mismatch")
	w.owedCall(ctx, o.ID, "close", body, "If-Match: 3").is(422, "invalid_request", "If-Match")
	w.owedCall(ctx, o.ID, "close", `{"note":" "}`).is(422, "invalid_request", "note")
	w.owedCall(ctx, o.ID, "close", `{"note":"x","version":1}`, "Prefer: handling=strict").is(422, "invalid_request", "version")
	w.owedCall(ctx, o.ID, "close", fmt.Sprintf(`{"note":%q}`, strings.Repeat("é", 501))).is(422, "invalid_request", "note")
	before := len(w.emitted())
	for range 2 { // the first response may have been lost
		closed := apitest.Decode[internalapi.OwedRefund](w.owedCall(ctx, o.ID, "close", body, ifMatch(o.Version), "Idempotency-Key: close-1").is(200).Response)
		if closed.Status != "closed" || *closed.ClosedBy != "op_1" || closed.Note != nil || closed.NextTryAt != nil {
			t.Errorf("%+v", closed)
		}
	}
	w.owedCall(ctx, o.ID, "close", `{"note":"x"}`).is(200) // by another request, which changes nothing
	read := response{w.Send(managing(ctx, "payments:read"), w.engine, "console", "GET", owedRefunds+"/"+o.ID, "")}.is(200)
	if shown := apitest.Decode[internalapi.OwedRefund](read.Response); *shown.Note != "Returned in cash to Grace." {
		t.Errorf("%+v", shown)
	}
	events := w.emitted()[before:]
	if len(events) != 1 || events[0].GetType() != "owed_refund.closed" || !events[0].GetInternal() || events[0].GetActor() != "op_1" || strings.Contains(string(events[0].GetObject()), "Grace") {
		t.Errorf("%v", events)
	}
	w.owedCall(ctx, o.ID, "retry", "").is(422, "invalid_status_transition")
	w.ahead.Add(int64(nextDay))
	w.settle()
	if w.owedList(ctx).Count != 0 || w.owedState("closed") != 1 || w.returned(p) != 500 {
		t.Error("it is not closed")
	}
	gone := message(ctx, t, "customers", "customer.erased", b.CustomerID.String(), 9, `{}`)
	if err := w.topicHandlers.Handle(ctx, gone); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(`select count(*) from automatic_refunds a where a::text like '%Grace%'`) + w.Count(`select count(*) from idempotency_keys k where k::text like '%Grace%'`); n != 0 {
		t.Error("the note is not erased")
	}
}

// TestOwedRefundIsRetriedNow checks that a person can retry an owed refund immediately, without waiting for the next day.
func TestOwedRefundIsRetriedNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
	end := w.refuse()
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	end()
	o := w.owedList(ctx).Data[0]
	before := len(w.emitted())
	for range 2 { // the first response may have been lost
		w.owedCall(ctx, o.ID, "retry", "", ifMatch(o.Version), "Idempotency-Key: retry-1").is(200)
	}
	w.owedCall(ctx, o.ID, "close", `{"note":"x"}`, "Idempotency-Key: retry-1").is(422, "idempotency_mismatch")
	if events := w.emitted()[before:]; len(events) != 1 || events[0].GetType() != "owed_refund.retried" {
		t.Errorf("%v", events)
	}
	w.settle()
	if w.returned(p) != 600 || w.owedState("done") != 1 {
		t.Errorf("returned %d", w.returned(p))
	}
	w.owedCall(ctx, o.ID, "retry", "").is(422, "invalid_status_transition")
	read := response{w.Send(managing(ctx, "payments:read"), w.engine, "console", "GET", owedRefunds+"/"+o.ID, "")}.is(200)
	done := apitest.Decode[internalapi.OwedRefund](read.Response)
	w.owedCall(ctx, o.ID, "close", `{"note":"x"}`).is(422, "invalid_status_transition")
	if done.Status != "done" || done.RemainingAmount != 0 || done.Failure != nil || done.Version != o.Version+3 { // retried, refunded, done
		t.Errorf("%+v", done)
	}
}

// TestFailedOwedRefundWaitsBeforeRetry checks that a failed refund, which may count as returned until its payment is read again, is
// then retried a day later, not immediately.
func TestFailedOwedRefundWaitsBeforeRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
	w.gateway.RefundStatus = domain.RefundPending
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	w.refresh(ctx, p.ID) // the gateway counts the pending refund
	r := w.gateway.Refunds()[0].ID
	w.gateway.EndRefund(r, domain.RefundFailed)
	stored, err := storeIntent(ctx, w, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	account, err := w.accounts.Show(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.owed.Refunds.Refresh(ctx, account, stored, r); err != nil { // its event arrives before that of the payment
		t.Fatal(err)
	}
	for range 2 {
		if err := w.owed.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.refresh(ctx, p.ID)
	}
	w.settle()
	if list := w.owedList(ctx); list.Count != 1 || list.Data[0].Failure == nil || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%+v after %d refunds", list, len(w.gateway.Refunds()))
	}
	w.gateway.RefundStatus = domain.RefundSucceeded
	w.ahead.Add(int64(nextDay))
	w.settle()
	if w.returned(p) != 600 || w.owedState("done") != 1 {
		t.Errorf("returned %d", w.returned(p))
	}
}

// TestOwedRefundsAreMeasured checks that failed owed refunds are counted, with the time since the oldest one first failed,
// separately from those that only a person can return.
func TestOwedRefundsAreMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := newMeter(w), w.tenant()
	b, cash := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD"), w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p, q := w.paidOf(ctx, b, 1000), w.paidOf(ctx, cash, 100)
	w.refund(ctx, refundOf(q, "")).is(201)
	w.receive(ctx, cash.ID, ids.New[ids.PaymentPrefix](), 600, domain.AnyVersion).is(200)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
	w.bookings.SetSettlement(ctx, cash.ID, w.said(ctx, cash, 600, map[string]bool{q.ID: false}))
	w.refuse()
	w.lose(ctx, b, "cancelled", 2)
	w.lose(ctx, cash, "cancelled", 2)
	w.settle()
	w.ahead.Add(int64(nextDay))
	w.settle()
	w.settle()
	if err := m.unfinished.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			if strings.HasPrefix(f.GetName(), "payment_refunds_owed") {
				got[f.GetName()+" "+one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue()
			}
		}
	}
	for _, reason := range []string{"failed", "nothing_left"} {
		if got["payment_refunds_owed "+reason] != 1 || got["payment_refunds_owed_oldest_seconds "+reason] < 24*3600 {
			t.Errorf("%v", got)
		}
	}
}
