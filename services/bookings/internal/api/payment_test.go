package api_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/bookings/internal/domain"
)

// TestListOfPayments checks that the payments of a booking are paged newest first, with cursors that are valid only for this
// booking.
func TestListOfPayments(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	b, other := w.book(ctx, `"event_date":"2030-05-01"`), w.book(ctx, `"event_date":"2030-05-01"`)
	path := "/bookings/" + b.ID + "/payments"
	if got := w.list(ctx, path); len(got.Data) != 0 {
		t.Errorf("%d payments of an unpaid booking", len(got.Data))
	}
	w.Exec(`insert into booking_payments (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency, source, refunded, disputed, paid_at, created_at)
		select b.tenant_id, b.livemode, 'pi_' || n, b.id, case when n = 1 then '' else 'inv_1' end, n, 'USD', 'gateway', n - 1, n = 2, '2029-01-01',
			timestamptz '2029-01-01' + n * interval '1 minute'
		from bookings b, generate_series(1, 7) n where b.number = $1`, b.Number)
	w.Exec(`insert into booking_payments (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency)
		select b.tenant_id, b.livemode, 'pay_other', b.id, 'inv_1', 5, 'USD' from bookings b where b.number = $1`, other.Number)
	ids, sizes := w.Walk(func(query string) apitest.Response { return w.do(ctx, "GET", path+"?"+query, "").Response }, 3)
	if got := strings.Join(ids, " "); got != "pi_7 pi_6 pi_5 pi_4 pi_3 pi_2 pi_1" || len(sizes) != 3 {
		t.Errorf("%d pages: %s", len(sizes), got)
	}
	body := string(w.do(ctx, "GET", path, "").is(200).Body)
	for _, want := range []string{
		`{"id":"pi_2","object":"booking_payment","source":"gateway","amount":{"amount":2,"currency":"USD"},"amount_refunded":{"amount":1,"currency":"USD"},` +
			`"disputed":true,"invoice_id":"inv_1","paid_at":"2029-01-01T00:00:00Z","reversed_at":null,"created_at":"2029-01-01T00:02:00Z"}`,
		`"disputed":false,"invoice_id":null`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
	cursor := url.QueryEscape(*w.list(ctx, path+"?limit=1").NextCursor)
	for _, wrong := range []string{"/bookings/" + other.ID + "/payments?cursor=" + cursor, path + "?cursor=x", "/bookings?cursor=" + cursor} {
		w.do(ctx, "GET", wrong, "").is(400, "invalid_cursor")
	}
	w.do(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "GET", path+"?cursor=x", "").is(403, "mode_mismatch")
	for _, query := range []string{"limit=0", "sort=updated_at", "created_after=2030-01-01"} {
		w.do(ctx, "GET", path+"?"+query, "").is(422, "invalid_request")
	}
}

// TestRefusalsOfTheListOfPayments checks that the list of payments refuses an unknown caller, and that a database fault is an
// internal error.
func TestRefusalsOfTheListOfPayments(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	path := "/bookings/" + w.book(ctx, `"event_date":"2030-05-01"`).ID + "/payments"
	w.do(ctx, "GET", path, "", caller.Header+": forged").is(401, "invalid_credential")
	w.Exec(`drop table booking_payments cascade`)
	w.do(ctx, "GET", path, "").is(500, "internal_error")
}

// TestRefundAmountDue checks that a cancellation determines the amount to refund. It follows the rules in force when the booking
// was created, and is based on what payments has received and not returned at the cancellation.
func TestRefundAmountDue(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	rules := []domain.RefundRule{{HoursBefore: 48, Percent: 100}, {HoursBefore: 24, Percent: 33}}
	w.tenants.Set(domain.Policy{RefundRules: rules, AutoRefund: true, RefundLatePayments: true})
	start := w.clock.now().Add(72 * time.Hour).UTC().Truncate(time.Hour)
	at := `"starts_at":` + str(start.Format(time.RFC3339)) + `,"ends_at":` + str(start.Add(time.Hour).Format(time.RFC3339))
	early, late, gone, begun, none := w.book(ctx, at), w.book(ctx, at), w.book(ctx, at), w.book(ctx, at), w.book(ctx, at)
	for _, b := range []booking{early, late, gone, begun, none} {
		w.hold(ctx, b, domain.AccountState{Version: 3, Received: 1000, Returned: 1})
	}
	w.Exec(`update bookings set cancel_policy = '{"confirm_on_deposit":true}' where number = $1`, none.Number) // created before there were rules
	w.tenants.Set(domain.Policy{})
	unsaid := w.book(ctx, at)
	w.hold(ctx, unsaid, domain.AccountState{Version: 3, Received: 1000})
	check := func(b booking, want int64) {
		t.Helper()
		cancelled := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200).booking()
		for _, got := range []booking{cancelled, w.get(ctx, b.ID)} {
			due := got.Cancellation.RefundAmountDue
			if want < 0 && due != nil || want >= 0 && (due == nil || *due != amount{want, "USD"}) {
				t.Errorf("due %v, want %d", due, want)
			}
		}
	}
	check(early, 999)
	w.clock.move(start.Add(-25 * time.Hour).Sub(w.clock.now()))
	check(late, 329) // 329.67
	w.patch(ctx, early.ID, `{"notes":"x"}`).is(200)
	w.hold(ctx, early, domain.AccountState{Version: 4, Received: 5000})
	check(early, 999) // the amount does not change later
	w.clock.move(2 * time.Hour)
	check(gone, 0)
	check(none, -1)
	check(unsaid, -1)
	w.clock.move(30 * time.Hour)
	check(begun, 0)
	p := w.get(ctx, early.ID).Cancellation.Policy
	if len(p.RefundRules) != 2 || p.RefundRules[0].HoursBefore != 48 || p.RefundRules[1].Percent != 33 || !p.AutoRefund || !p.RefundLatePayments {
		t.Errorf("policy %+v", p)
	}
	if p := w.get(ctx, none.ID).Cancellation.Policy; p.RefundRules != nil || p.AutoRefund || p.RefundLatePayments {
		t.Errorf("an older policy: %+v", p)
	}
}

// TestRefundAmountDueOfAWholeDay checks that a whole day begins at its first instant in the operator's time zone.
func TestRefundAmountDueOfAWholeDay(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Set(domain.Policy{RefundRules: []domain.RefundRule{{HoursBefore: 0, Percent: 100}}})
	for _, tc := range []struct {
		before time.Duration
		due    int64
	}{{time.Minute, 1000}, {-time.Minute, 0}} {
		b := w.book(ctx, `"event_date":"2090-05-01"`)
		w.hold(ctx, b, domain.AccountState{Version: 1, Received: 1000})
		w.clock.move(b.EventDate.Add(-tc.before).Sub(w.clock.now()))
		got := w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200).booking().Cancellation.RefundAmountDue
		if got == nil || *got != (amount{tc.due, "USD"}) {
			t.Errorf("%s before: %v, want %d", tc.before, got, tc.due)
		}
	}
}

// TestSettlement checks that only payments can request the data that determines refunds, and that the data belongs to the caller's
// tenant and mode.
func TestSettlement(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.tenants.Set(domain.Policy{RefundRules: []domain.RefundRule{{HoursBefore: 0, Percent: 50}}, AutoRefund: true, RefundLatePayments: true})
	b := w.book(ctx, `"event_date":"2090-05-01","hold_minutes":5`)
	path := "/bookings/" + b.ID + "/settlement"
	get := func() string { return string(w.from(ctx, "payments", "GET", path, "").is(200).Body) }
	const policy = `"currency":"USD","auto_refund":true,"refund_late_payments":true`
	if got := get(); got != `{"status":"pending",`+policy+`}` {
		t.Errorf("got %s", got)
	}
	w.hold(ctx, b, domain.AccountState{Version: 7, Received: 1000, Returned: 200})
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200)
	if got := get(); got != `{"status":"cancelled",`+policy+`,"refund_due":400,"account_version":7,"account_returned":200}` {
		t.Errorf("got %s", got)
	}
	w.from(ctx, "customers", "GET", path, "").is(401, "invalid_credential")
	w.from(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), "payments", "GET", path, "").is(404, "booking_not_found")
	w.from(pgtest.Ctx(t, caller.Test), "payments", "GET", path, "").is(404, "booking_not_found")
	held := w.book(ctx, `"event_date":"2090-05-01","hold_minutes":5`)
	w.clock.move(6 * time.Minute)
	ended := func(status string, at *time.Time) string {
		return fmt.Sprintf(`{"status":%q,%s,"ended_at":%q}`, status, policy, at.UTC().Format(time.RFC3339Nano))
	}
	path = "/bookings/" + held.ID + "/settlement"
	for range 2 {
		if got, want := get(), ended("expired", held.HoldExpiresAt); got != want {
			t.Errorf("an expired hold: %s, want %s", got, want)
		}
		if err := w.expiry.Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	held = w.book(ctx, `"event_date":"2090-05-01","hold_minutes":5`)
	before := w.clock.now()
	w.freeze(ctx, held.HoldExpiresAt.Add(time.Hour))
	path = "/bookings/" + held.ID + "/settlement"
	got := apitest.Decode[internalapi.BookingSettlement](w.from(ctx, "payments", "GET", path, "").is(200).Response)
	if got.EndedAt == nil || got.EndedAt.Before(before.Truncate(time.Microsecond)) || got.EndedAt.After(w.clock.now()) {
		t.Errorf("a hold that the test clock ended after %v: %+v", before, got)
	}
}

// hold sets the account of a booking at payments.
func (w *world) hold(ctx context.Context, b booking, s domain.AccountState) {
	w.T.Helper()
	id, err := ids.Parse[domain.BookingPrefix](b.ID)
	if err != nil {
		w.T.Fatal(err)
	}
	w.payments.Set(caller.FromContext(ctx), id, "USD", s)
}

// TestCancelReadsTheAccount checks that each way to cancel a booking decides on what payments has received, that it is 503 and changes
// nothing while payments is away, and that payments is called only if the money decides.
func TestCancelReadsTheAccount(t *testing.T) {
	t.Parallel()
	half := []domain.RefundRule{{HoursBefore: 24, Percent: 50}}
	for name, tc := range map[string]struct {
		policy domain.Policy
		at     string
		calls  int
		due    string
	}{
		"half":                   {domain.Policy{RefundRules: half}, "2090-05-01", 1, `{"amount":400,"currency":"USD"}`},
		"too late for a refund":  {domain.Policy{RefundRules: half}, "2020-05-01", 0, `{"amount":0,"currency":"USD"}`},
		"nothing is refunded":    {domain.Policy{RefundRules: []domain.RefundRule{}}, "2090-05-01", 0, `{"amount":0,"currency":"USD"}`},
		"no rules":               {domain.Policy{AutoRefund: true}, "2090-05-01", 0, `null`},
		"late payments go back":  {domain.Policy{RefundLatePayments: true}, "2090-05-01", 1, `null`},
		"a hold without a price": {domain.Policy{RefundRules: half, HoldTTLMinutes: new(60)}, "2090-05-01", 1, `{"amount":400,"currency":"USD"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
			w.tenants.Set(tc.policy)
			for _, cancel := range []func(b booking) response{
				func(b booking) response { return w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{"reason":"rain"}`) },
				func(b booking) response { return w.patch(ctx, b.ID, `{"status":"cancelled"}`) },
				func(b booking) response { return w.patch(ctx, b.ID, `{"status":"canceled","notes":"x"}`) },
			} {
				b := w.book(ctx, `"event_date":"`+tc.at+`"`)
				w.hold(ctx, b, domain.AccountState{Version: 2, Received: 1000, Returned: 200})
				before := w.payments.Calls()
				if tc.calls > 0 {
					w.payments.Fail(apperr.ErrUnavailable)
					cancel(b).is(503, "unavailable")
					if got := w.get(ctx, b.ID); got.Status != "pending" || got.Version != 1 {
						t.Errorf("%s, version %d after a 503", got.Status, got.Version)
					}
					w.payments.Fail(nil)
					before++
				}
				if got := string(cancel(b).is(200).Body); !strings.Contains(got, `"refund_amount_due":`+tc.due) {
					t.Errorf("%s", got)
				}
				if got := w.payments.Calls() - before; got != tc.calls {
					t.Errorf("%d calls, want %d", got, tc.calls)
				}
				w.payments.Fail(apperr.ErrUnavailable)
				cancel(b).is(200) // it is canceled already
				w.patch(ctx, b.ID, `{"notes":"y"}`).is(200)
				w.payments.Fail(nil)
			}
		})
	}
}
