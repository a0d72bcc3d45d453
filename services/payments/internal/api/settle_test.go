package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/domain"
)

// said returns the data that bookings returns about a lost booking: the amount due, and the state of its account now, or before it received
// the payments that are late.
func (w *world) said(ctx context.Context, b domain.Booking, due int64, late map[string]bool) domain.Settlement {
	w.T.Helper()
	account := w.account(ctx, b.ID, "&since=0")
	s := domain.Settlement{
		Lost: true, AutoRefund: true, RefundLatePayments: true, Due: &money.Amount{Minor: due, Currency: "USD"}, Code: "USD",
		Ended: domain.AccountPoint{AccountVersion: account.Version, AccountReturned: account.Returned + account.Held},
	}
	for _, e := range account.Entries {
		if late[e.ID] {
			first := w.Count(fmt.Sprintf(`select min(version) from money_entries where object = '%s' and kind = 'received'`, e.ID))
			s.Ended.AccountVersion = min(s.Ended.AccountVersion, int64(first)-1)
			s.Ended.AccountReturned -= e.Returned
		}
	}
	return s
}

// lose notifies this service that a booking is canceled or has expired.
func (w *world) lose(ctx context.Context, b domain.Booking, status string, version int64) {
	w.T.Helper()
	m := message(ctx, w.T, "bookings", "booking.updated", b.ID.String(), version, fmt.Sprintf(`{"status":%q,"customer_id":null}`, status))
	if err := w.topicHandlers.Handle(ctx, m); err != nil {
		w.T.Fatal(err)
	}
}

// settle settles what is due, including what was postponed.
func (w *world) settle() {
	w.T.Helper()
	w.ahead.Add(int64(10 * time.Minute))
	if err := w.settler.Run(w.T.Context()); err != nil {
		w.T.Error(err)
	}
	for range 2 { // the second run processes what is left or became due during the first
		if err := w.owed.Run(w.T.Context()); err != nil {
			w.T.Error(err)
		}
	}
	if err := w.refunder.Run(w.T.Context()); err != nil {
		w.T.Error(err)
	}
	w.work()
}

// refundsOf returns the refunds of a booking that clients can see.
func (w *world) refundsOf(ctx context.Context, b domain.Booking) []refund {
	w.T.Helper()
	return apitest.Decode[struct{ Data []refund }](w.do(ctx, "GET", "/refunds?booking_id="+b.ID.String(), "").is(200).Response).Data
}

func (w *world) waiting() int { return w.Count(`select count(*) from booking_settlements`) }

// logged returns what the workers of lost bookings log from now on.
func (w *world) logged() *bytes.Buffer {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	w.settler.Log, w.owed.Log, w.canceler.Log, w.refunder.Log = log, log, log, log
	return &out
}

// once runs a function at the next call of the bookings service.
func (w *world) once(do func()) {
	var done atomic.Bool
	w.bookings.Fail = func() error {
		if done.CompareAndSwap(false, true) {
			do()
		}
		return nil
	}
}

// run runs a worker.
func (w *world) run(work func(context.Context) error) {
	w.T.Helper()
	if err := work(w.T.Context()); err != nil {
		w.T.Error(err)
	}
}

// lateCount returns the value of the metric of late payments.
func (w *world) lateCount() float64 {
	w.T.Helper()
	found, err := w.metrics.Gather()
	if err != nil {
		w.T.Fatal(err)
	}
	for _, f := range found {
		if f.GetName() == "payment_late_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	w.T.Fatal("there is no payment_late_total")
	return 0
}

// TestRefundOfACancelledBooking checks that a canceled booking is refunded once according to its policy, through the payments that
// were made before, regardless of repeated events.
func TestRefundOfACancelledBooking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	failures := w.logged()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	first, second := w.paidOf(ctx, b, 300), w.paidOf(ctx, b, 700)
	if w.waiting() != 0 {
		t.Error("a booking that is not lost is settled")
	}
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 800, map[string]bool{first.ID: false, second.ID: false}))
	for version := range int64(3) {
		w.lose(ctx, b, "cancelled", 2+version)
		w.settle()
		w.settle()
	}
	list := w.refundsOf(ctx, b)
	if len(list) != 1 || list[0].Amount != 800 || list[0].Status != "succeeded" || len(list[0].Allocations) != 2 || list[0].Allocations[0].Intent != second.ID {
		t.Errorf("%+v", list)
	}
	if one, two := w.refunded(ctx, first.ID), w.refunded(ctx, second.ID); one != 100 || two != 700 {
		t.Errorf("refunded %d and %d", one, two)
	}
	if w.waiting() != 0 || w.bookings.SettlementRequests() != 1 || w.lateCount() != 0 || failures.Len() != 0 {
		t.Errorf("%d wait, called %d times, %v late, log: %s", w.waiting(), w.bookings.SettlementRequests(), w.lateCount(), failures)
	}
	if body := string(w.do(ctx, "GET", "/refunds/"+list[0].ID, "").is(200).Body); !strings.Contains(body, `"reason":"requested_by_customer"`) {
		t.Errorf("%s", body)
	}
}

// TestDashboardRefundBeforeTheSettlement checks that a refund in the gateway's dashboard counts if it was created after the booking
// was lost, even before anything is settled. An earlier one does not count.
func TestDashboardRefundBeforeTheSettlement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p, other := w.paidOf(ctx, b, 700), w.paidOf(ctx, b, 300)
	w.gateway.Dashboard(p.ID, 100)
	w.refresh(ctx, p.ID)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false, other.ID: false}))
	w.lose(ctx, b, "cancelled", 2)
	for _, late := range []intent{p, other} {
		w.gateway.Dashboard(late.ID, 200)
		w.refresh(ctx, late.ID)
	}
	w.settle()
	if got := w.returned(p, other); got != 100+600 || w.owedState("done") != 1 {
		t.Errorf("%d are returned, want 700", got)
	}
}

// TestDashboardRefundWithoutAnEvent checks that a refund in the gateway's dashboard whose event does not arrive counts before the
// policy's refund is created, the first time and a day later.
func TestDashboardRefundWithoutAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for _, retried := range []bool{false, true} {
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
		if retried {
			end := w.refuse()
			w.lose(ctx, b, "cancelled", 2)
			w.settle()
			end()
			w.gateway.Dashboard(p.ID, 200)
			w.ahead.Add(int64(nextDay))
		} else {
			w.lose(ctx, b, "cancelled", 2)
			w.gateway.Dashboard(p.ID, 200)
		}
		w.settle()
		if got := w.returned(p); got != 600 || w.owedState("open") != 0 {
			t.Errorf("retried: %v: %d are returned, want 600", retried, got)
		}
	}
}

// TestPaymentsAreReadBeforeAnOwedRefund checks that nothing is refunded while the payment gateway does not report what was
// refunded. A payment that the gateway refuses to show is refunded like any other.
func TestPaymentsAreReadBeforeAnOwedRefund(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		read     error
		returned int64
	}{
		"no response": {errors.New("timeout"), 0},
		"refused":     {&domain.RefusedError{Failure: domain.Failure{Code: "resource_missing", Message: "No such payment_intent."}}, 600},
	} {
		w := newWorld(t)
		ctx := w.tenant()
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
		var fails atomic.Bool
		fails.Store(true)
		w.gateway.Before = func(_ context.Context, call string) error {
			if call == "read" && fails.Load() {
				return tc.read
			}
			return nil
		}
		w.lose(ctx, b, "cancelled", 2)
		if err := w.settler.Run(t.Context()); err != nil {
			t.Error(err)
		}
		_ = w.owed.Run(t.Context())
		if got := w.returned(p); got != tc.returned {
			t.Errorf("%s: %d are returned, want %d", name, got, tc.returned)
		}
		fails.Store(false)
		w.settle()
		if got := w.returned(p); got != 600 || w.owedState("done") != 1 {
			t.Errorf("%s: %d are returned in the end, want 600", name, got)
		}
	}
}

// TestLatePaymentIsRefunded checks that a payment is refunded if its booking was lost before the payment was received, whichever this
// service learns first.
func TestLatePaymentIsRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for round, lostFirst := range []bool{true, false} {
		b := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
		p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201).intent()
		status := []string{"expired", "cancelled"}[round]
		s := w.said(ctx, b, 0, nil)
		s.Due = nil
		w.bookings.SetSettlement(ctx, b.ID, s)
		pay := func() {
			w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 1000 })
			w.refresh(ctx, p.ID)
		}
		before := len(w.emitted())
		if lostFirst {
			w.lose(ctx, b, status, 2)
			pay()
			e := w.emitted()[before:]
			if len(e) != 1 || e[0].GetType() != "payment.succeeded" || !strings.Contains(string(e[0].GetObject()), fmt.Sprintf(`"booking_status":%q`, status)) {
				t.Errorf("%v", e)
			}
		} else {
			pay()
			w.lose(ctx, b, status, 2)
		}
		w.settle()
		w.lose(ctx, b, status, 3)
		w.settle()
		list := w.refundsOf(ctx, b)
		if len(list) != 1 || list[0].Amount != 1000 || list[0].IntentID == nil || *list[0].IntentID != p.ID || w.refunded(ctx, p.ID) != 1000 {
			t.Errorf("%s: %+v", status, list)
		}
		if n := w.lateCount(); w.waiting() != 0 || n != float64(round+1) {
			t.Errorf("%s: %d wait, %v late", status, w.waiting(), n)
		}
	}
}

// TestLateByTime checks that the payments of an expired booking are late if the gateway captured them after the hold expired, whatever the
// account had received when the booking expired, and whenever this service learns of them.
func TestLateByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	end := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	for _, lostFirst := range []bool{true, false} {
		for after, want := range map[time.Duration]int64{-time.Second: 0, 0: 0, time.Second: 200} {
			b := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
			p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":200}`, b.ID)).is(201).intent()
			w.Exec(`update payment_intents set created_at = $2 where gateway_id = $1`, p.ID, end.Add(-time.Minute))
			w.bookings.SetSettlement(ctx, b.ID, domain.Settlement{Lost: true, RefundLatePayments: true, Code: "USD", Ended: domain.Unknown, EndedAt: &end})
			if lostFirst {
				w.lose(ctx, b, "expired", 2)
			}
			w.gateway.Change(p.ID, func(s *domain.Snapshot) {
				s.Status, s.Received, s.Movements = domain.Succeeded, 200, []domain.Movement{{
					ID: "txn_" + p.ID, Kind: domain.MovedCharge, Object: "ch_" + p.ID, Amount: 200, Currency: "USD", Paid: 200, PaidCurrency: "USD", At: end.Add(after),
				}}
			})
			w.refresh(ctx, p.ID)
			w.lose(ctx, b, "expired", 3)
			w.settle()
			if got := w.returned(p); got != want || w.waiting() != 0 {
				t.Errorf("lost first %t, captured after %v: %d are returned, want %d", lostFirst, after, got, want)
			}
		}
	}
	if w.lateCount() != 2 {
		t.Errorf("%v late", w.lateCount())
	}
}

// TestMoneyStaysWithoutAPolicy checks that the money stays without the policies, or if they specify 0, and that a late payment is
// counted.
func TestMoneyStaysWithoutAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	inTime, late := w.paidOf(ctx, b, 300), w.paidOf(ctx, b, 400)
	s := w.said(ctx, b, 300, map[string]bool{inTime.ID: false, late.ID: true})
	s.AutoRefund, s.RefundLatePayments = false, false
	w.bookings.SetSettlement(ctx, b.ID, s)
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	nothing := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	w.bookings.SetSettlement(ctx, nothing.ID, w.said(ctx, nothing, 0, map[string]bool{w.paidOf(ctx, nothing, 100).ID: false}))
	w.lose(ctx, nothing, "cancelled", 2)
	w.settle()
	if len(w.refundsOf(ctx, b)) != 0 || w.waiting() != 0 || w.lateCount() != 1 || w.Count(`select count(*) from automatic_refunds`) != 0 {
		t.Errorf("%+v, %d wait, %v late", w.refundsOf(ctx, b), w.waiting(), w.lateCount())
	}
}

// TestAutomaticRefundsDoNotOverlap checks that the amount due by the policy never comes from a late payment, which is refunded
// automatically, and never exceeds what is left of the card payments.
func TestAutomaticRefundsDoNotOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 2000, 2000, "USD")
	inTime, late := w.paidOf(ctx, b, 500), w.paidOf(ctx, b, 1000)
	w.refund(ctx, refundOf(inTime, `,"amount_minor":100`)).is(201)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 900, map[string]bool{inTime.ID: false, late.ID: true})) // 500 of the booking were paid in cash
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	if one, two := w.refunded(ctx, inTime.ID), w.refunded(ctx, late.ID); one != 500 || two != 1000 || len(w.refundsOf(ctx, b)) != 3 {
		t.Errorf("refunded %d and %d by %+v", one, two, w.refundsOf(ctx, b))
	}
	cash := w.bookings.Add(ctx, "confirmed", 2000, 2000, "USD")
	p := w.paidOf(ctx, cash, 500)
	w.refund(ctx, refundOf(p, ``)).is(201)
	w.bookings.SetSettlement(ctx, cash.ID, w.said(ctx, cash, 900, map[string]bool{p.ID: false}))
	w.lose(ctx, cash, "cancelled", 2)
	w.settle()
	if len(w.refundsOf(ctx, cash)) != 1 || w.waiting() != 0 || w.Count(`select count(*) from automatic_refunds where refund_id is null`) != 1 {
		t.Errorf("%+v", w.refundsOf(ctx, cash))
	}
}

// TestAutomaticRefundUnderFaults checks that simultaneous workers, a gateway that is busy or does not respond, and unavailable
// bookings result in one refund in the end.
func TestAutomaticRefundUnderFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
	var down atomic.Bool
	down.Store(true)
	w.bookings.Fail = func() error {
		if down.Load() {
			return errors.New("away")
		}
		return nil
	}
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	if w.waiting() != 1 {
		t.Error("it is not tried again")
	}
	down.Store(false)
	var calls atomic.Int64
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "refund" && calls.Add(1) == 1 {
			return &domain.BusyError{}
		}
		return nil
	}
	w.gateway.After = func(_ context.Context, call string) error {
		if call == "refund" && calls.Load() == 2 {
			return errors.New("no response")
		}
		return nil
	}
	w.ahead.Add(int64(10 * time.Minute))
	for _, work := range []func(context.Context) error{w.settler.Run, w.owed.Run} {
		atOnce(4, func(int) {
			if err := work(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	w.settle()
	w.settle()
	if list := w.refundsOf(ctx, b); len(list) != 1 || list[0].Amount != 600 || list[0].Status != "succeeded" || w.refunded(ctx, p.ID) != 600 || w.waiting() != 0 {
		t.Errorf("%+v, %d wait", list, w.waiting())
	}
}

// TestSuccessRacesTheEndOfItsBooking checks that a payment that succeeds while its booking ends is settled, whichever comes first.
func TestSuccessRacesTheEndOfItsBooking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for range 20 {
		b := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
		p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, b.ID)).is(201).intent()
		w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, 1000 })
		w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 0, map[string]bool{p.ID: true}))
		atOnce(2, func(i int) {
			if i == 0 {
				w.refresh(ctx, p.ID)
			} else {
				w.lose(ctx, b, "expired", 2)
			}
		})
		w.settle()
		if list := w.refundsOf(ctx, b); len(list) != 1 || list[0].Amount != 1000 {
			t.Fatalf("%+v", list)
		}
	}
}

// TestAutomaticRefundOfThousandths checks that a share that the gateway does not accept exactly is refunded as far as the gateway
// accepts it.
func TestAutomaticRefundOfThousandths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "KWD")
	w.paidOf(ctx, b, 1000)
	s := w.said(ctx, b, 0, nil)
	s.Due, s.Code, s.Ended = &money.Amount{Minor: 333, Currency: "KWD"}, "KWD", domain.AccountPoint{AccountVersion: 1}
	w.bookings.SetSettlement(ctx, b.ID, s)
	w.lose(ctx, b, "cancelled", 2)
	w.settle()
	if list := w.refundsOf(ctx, b); len(list) != 1 || list[0].Amount != 330 {
		t.Errorf("%+v", list)
	}
}

// TestSettlementsAreOfATenant checks that the end of a booking settles nothing of another tenant or mode.
func TestSettlementsAreOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := w.tenant(), w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 600, map[string]bool{p.ID: false}))
	w.lose(other, b, "cancelled", 2)
	w.lose(pgtest.CtxOf(t, caller.FromContext(ctx).Tenant, caller.Live), b, "cancelled", 2)
	w.settle()
	if w.refunded(ctx, p.ID) != 0 || w.waiting() != 0 {
		t.Error("a booking of another tenant or mode was settled")
	}
}

// TestSettlementWaitsForBookings checks a booking whose end this service knows before bookings reports it. The service then decides
// nothing, logs no failure, and calls bookings again within seconds.
func TestSettlementWaitsForBookings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	failures := w.logged()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	s := w.said(ctx, b, 600, map[string]bool{p.ID: false})
	s.Lost = false
	w.bookings.SetSettlement(ctx, b.ID, s)
	w.lose(ctx, b, "cancelled", 2)
	w.run(w.settler.Run)
	if w.waiting() != 1 || w.bookings.SettlementRequests() != 1 || w.Count(`select count(*) from automatic_refunds`) != 0 {
		t.Errorf("%d wait, called %d times", w.waiting(), w.bookings.SettlementRequests())
	}
	s.Lost = true
	w.bookings.SetSettlement(ctx, b.ID, s)
	w.ahead.Add(int64(5 * time.Second))
	w.run(w.settler.Run)
	if w.waiting() != 0 {
		t.Error("it is not tried again within seconds")
	}
	w.settle()
	if w.returned(p) != 600 || failures.Len() != 0 {
		t.Errorf("%d are returned, log: %s", w.returned(p), failures)
	}
}

// TestLatePaymentIsCountedOnce checks that a slow process does not count a late payment again if another one settles the booking in
// the meantime.
func TestLatePaymentIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	w.bookings.SetSettlement(ctx, b.ID, w.said(ctx, b, 0, map[string]bool{p.ID: true}))
	w.lose(ctx, b, "cancelled", 2)
	w.once(func() {
		w.ahead.Add(int64(2 * time.Minute))
		w.run(w.settler.Run)
	})
	w.run(w.settler.Run)
	w.settle()
	if w.lateCount() != 1 || w.returned(p) != 1000 || len(w.refundsOf(ctx, b)) != 1 {
		t.Errorf("%v late, %d are returned", w.lateCount(), w.returned(p))
	}
}

// TestOwedRefundChangesDuringTheRead checks that a recorded owed refund is returned even if bookings no longer reports an amount, but not
// if a person closes it while a worker reads its payments.
func TestOwedRefundChangesDuringTheRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	for _, closed := range []bool{false, true} {
		b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
		p := w.paidOf(ctx, b, 1000)
		s := w.said(ctx, b, 600, map[string]bool{p.ID: false})
		w.bookings.SetSettlement(ctx, b.ID, s)
		end := w.refuse()
		w.lose(ctx, b, "cancelled", 2)
		w.settle()
		end()
		o := w.owedList(ctx).Data[0]
		s.Due = nil
		w.bookings.SetSettlement(ctx, b.ID, s)
		w.ahead.Add(int64(nextDay))
		want := int64(600)
		if closed {
			want = 0
			w.gateway.Before = func(_ context.Context, call string) error {
				if call == "read" {
					w.owedCall(ctx, o.ID, "close", `{"note":"in cash"}`).is(200)
				}
				return nil
			}
		}
		w.run(w.owed.Run)
		w.settle()
		if got := w.returned(p); got != want || w.owedList(ctx).Count != 0 {
			t.Errorf("closed %t: %d are returned, want %d", closed, got, want)
		}
	}
}

// TestManyOpenRefundsAreRead checks that an event about an intent causes a read of all its unfinished refunds, however many there
// are.
func TestManyOpenRefundsAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	w.gateway.RefundStatus = domain.RefundPending
	const many = 105
	for range many {
		w.refund(ctx, refundOf(p, `,"amount_minor":1`)).is(201)
	}
	w.work()
	for _, r := range w.gateway.Refunds() {
		w.gateway.EndRefund(r.ID, domain.RefundSucceeded)
	}
	w.readRefund(ctx, p.ID, "")
	if n := w.Count(`select count(*) from refunds where status = 'succeeded'`); n != many {
		t.Errorf("%d of %d refunds have succeeded", n, many)
	}
}
