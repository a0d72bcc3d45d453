package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

func TestReprice(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	reprice := func(id string, headers ...header) response {
		return w.do(ctx, "POST", "/bookings/"+id+"/reprice", "", headers...)
	}
	b := w.book(ctx, `"event_date":"2030-05-01","event_start_time":"10:00","package_id":"%s","unit_id":"%s"`, s.flat, s.ada)
	if got := reprice(b.ID).is(200).booking(); got.Version != 1 || w.Types() != "created" {
		t.Errorf("nothing has changed: %+v", got)
	}
	w.patch(ctx, b.ID, `{"event_date":"2030-07-04"}`).is(200) // the price stays unchanged
	reprice(b.ID, `If-Match: "1"`).is(412, "version_mismatch")
	a := reprice(b.ID, `If-Match: "2"`, "Idempotency-Key: k").is(200)
	got := a.booking()
	if got.TotalAmount.Amount != 22999 || got.DepositAmount.Amount != 5000 || got.PackageSnapshot.Holiday.Name != "July" || got.Version != 3 || a.Header.Get("ETag") != `"3"` {
		t.Errorf("the rules of the event's day: %s", a.Body)
	}
	if again := reprice(b.ID, `If-Match: "2"`, "Idempotency-Key: k").is(200); string(again.Body) != string(a.Body) {
		t.Errorf("replayed %s", again.Body)
	}
	e := w.Events()[2]
	if e.GetType() != "booking.updated" || string(e.GetObject()) != string(a.Body) ||
		!strings.Contains(string(e.GetPreviousAttributes()), `"total_amount":{"amount":19999,"currency":"USD"}`) ||
		!strings.Contains(string(e.GetPreviousAttributes()), `"package_snapshot":`) {
		t.Errorf("event %s %s", e.GetType(), e.GetPreviousAttributes())
	}
	// The current terms of the package apply, even if it is inactive. A price below the paid amount is allowed.
	w.Exec(`update packages set base_price = 1000, deposit_type = 'percentage', deposit_value = 5000, name = 'New', active = false where id = $1`, s.flat)
	w.Exec(`update bookings set paid = 5000`)
	got = reprice(b.ID).is(200).booking()
	if got.TotalAmount.Amount != 1150 || got.DepositAmount.Amount != 575 || got.PaymentStatus != "overpaid" || got.AmountDue.Amount != 0 || got.PackageSnapshot.Name != "New" {
		t.Errorf("got %+v", got)
	}
	w.Exec(`update packages set base_price = 99999999999 where id = $1`, s.flat)
	reprice(b.ID).is(422, "invalid_request", "package_id")
	w.Exec(`update packages set currency = 'JPY', base_price = 1 where id = $1`, s.flat)
	w.hold(ctx, b, domain.AccountState{Version: 1, Received: 5000})
	reprice(b.ID).is(422, "invalid_request", "package_id") // paid in another currency

	plain := w.book(ctx, `"event_date":"2030-07-04"`)
	events := w.Types()
	if got := reprice(plain.ID).is(200).booking(); got.Version != 1 || got.TotalAmount.Amount != 0 || w.Types() != events {
		t.Errorf("without a package: %+v", got)
	}
	w.do(ctx, "POST", "/bookings/"+plain.ID+"/cancel", "").is(200)
	reprice(plain.ID).is(422, "invalid_status_transition", "status")
	reprice(plain.ID, `If-Match: "1"`).is(412)
	reprice(plain.ID, `If-Match: 1`).is(422, "invalid_request", "If-Match")
	gone := w.book(ctx, `"event_date":"2030-07-04","package_id":"%s","hold_minutes":1`, s.share)
	w.clock.move(2 * time.Minute)
	reprice(gone.ID).is(422, "invalid_status_transition", "status")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/reprice", `[]`).is(400, "malformed_json")
	w.do(ctx, "POST", "/bookings/"+b.ID+"/reprice", `{"notes":"`+strings.Repeat("x", 1<<20)+`"}`).is(413)
}

// TestCurrencyFollowsTheAccount checks that a booking gets another currency only if payments has received nothing in the current one,
// whatever this service has applied, that it is 503 and changes nothing while payments is away, and that payments is called only then.
func TestCurrencyFollowsTheAccount(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	for name, change := range map[string]func(b booking) response{
		"package": func(b booking) response { return w.patch(ctx, b.ID, fmt.Sprintf(`{"package_id":"%s"}`, s.yen)) },
		"reprice": func(b booking) response {
			w.Exec(`update packages set currency = 'JPY' where id = $1`, s.flat)
			defer w.Exec(`update packages set currency = 'USD' where id = $1`, s.flat)
			return w.do(ctx, "POST", "/bookings/"+b.ID+"/reprice", "")
		},
	} {
		b := w.book(ctx, `"event_date":"2030-05-01","package_id":"%s"`, s.flat)
		unchanged := func() {
			t.Helper()
			if got := w.get(ctx, b.ID); got.Version != 1 || got.TotalAmount.Currency != "USD" {
				t.Errorf("%s: version %d, %+v", name, got.Version, got.TotalAmount)
			}
		}
		for _, held := range []domain.AccountState{{Version: 1, Received: 1000}, {Version: 2, Received: 1000, Returned: 1000}} {
			w.hold(ctx, b, held)
			change(b).is(422, "invalid_request", "package_id")
			unchanged()
		}
		w.payments.Fail(apperr.ErrUnavailable)
		change(b).is(503, "unavailable")
		unchanged()
		w.patch(ctx, b.ID, fmt.Sprintf(`{"package_id":"%s"}`, s.flat)).is(200)
		w.payments.Fail(nil)
		w.Exec(`update bookings set paid = 1000, account_version = 3 where number = $1`, b.Number)
		w.hold(ctx, b, domain.AccountState{Version: 4}) // the payment was reversed
		if got := change(b).is(200).booking(); got.TotalAmount.Currency != "JPY" || got.AmountPaid != (amount{0, "JPY"}) {
			t.Errorf("%s: %+v, paid %+v", name, got.TotalAmount, got.AmountPaid)
		}
		if n := w.Count(`select account_version from bookings where number = $1`, b.Number); n != 0 {
			t.Errorf("%s: version %d of the account in JPY", name, n)
		}
	}
}

// TestCancellationShowsThePolicyOfTheBooking checks that a booking retains the operator's policy from the moment it was created,
// regardless of later changes, and that its cancellation shows this policy.
func TestCancellationShowsThePolicyOfTheBooking(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Set(domain.Policy{HoldTTLMinutes: new(30), MinNoticeMinutes: new(0), ConfirmOnDeposit: true})
	b := w.book(ctx, `"event_date":"2090-05-01","status":"confirmed"`)
	w.tenants.Set(domain.Policy{AutoConfirm: true, MaxAdvanceDays: new(90000)})
	c := w.book(ctx, `"event_date":"2090-05-02"`)
	w.patch(ctx, b.ID, `{"event_date":"2090-05-03"}`).is(200)
	cancelled := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{"reason":"rain"}`).is(200)
	again := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{"reason":"snow"}`).is(200)
	if string(again.Body) != string(cancelled.Body) {
		t.Errorf("cancelled twice: %s", again.Body)
	}
	for _, got := range []booking{cancelled.booking(), w.get(ctx, b.ID), w.patch(ctx, b.ID, `{"notes":"x"}`).is(200).booking()} {
		p := got.Cancellation.Policy
		if p == nil || p.AutoConfirm || *p.HoldTTLMinutes != 30 || *p.MinNoticeMinutes != 0 || p.MaxAdvanceDays != nil || !p.ConfirmOnDeposit || *got.Cancellation.Reason != "rain" {
			t.Errorf("stored %+v", p)
		}
	}
	other := w.patch(ctx, c.ID, `{"status":"canceled"}`).is(200).booking()
	if p := other.Cancellation.Policy; p == nil || !p.AutoConfirm || *p.MaxAdvanceDays != 90000 || p.HoldTTLMinutes != nil || p.ConfirmOnDeposit || other.Cancellation.Reason != nil {
		t.Errorf("stored %+v", other.Cancellation)
	}
}

// TestCancellingWithIdentityAway checks that a cancellation does not call identity. It works while identity is unavailable, even
// for bookings whose policy was never stored.
func TestCancellingWithIdentityAway(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Set(domain.Policy{HoldTTLMinutes: new(30)})
	var ids []string
	for day := range 3 {
		ids = append(ids, w.book(ctx, fmt.Sprintf(`"event_date":"2090-05-0%d"`, day+1)).ID)
	}
	w.Exec(`update bookings set cancel_policy = null where id = (select id from bookings order by id desc limit 1)`)
	w.tenants.Fail(apperr.ErrUnavailable)
	w.do(ctx, "POST", "/bookings", `{"event_date":"2090-05-04"}`).is(503, "unavailable")
	cancelled := w.do(ctx, "POST", "/bookings/"+ids[0]+"/cancel", `{"reason":"rain"}`).is(200).booking()
	patched := w.patch(ctx, ids[1], `{"status":"cancelled"}`).is(200).booking()
	for _, b := range []booking{cancelled, patched} {
		if b.Cancellation == nil || b.Cancellation.Policy == nil || *b.Cancellation.Policy.HoldTTLMinutes != 30 {
			t.Errorf("%+v", b.Cancellation)
		}
	}
	if b := w.do(ctx, "POST", "/bookings/"+ids[2]+"/cancel", "").is(200).booking(); b.Cancellation == nil || b.Cancellation.Policy != nil {
		t.Errorf("a booking of before: %+v", b.Cancellation)
	}
}
