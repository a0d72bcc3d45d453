package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"

	"holdfast.dev/services/payments/internal/domain"
)

// refund is the response body as a client reads it.
type refund struct {
	ID          string       `json:"id"`
	Status      string       `json:"status"`
	Amount      int64        `json:"amount"`
	BookingID   string       `json:"booking_id"`
	IntentID    *string      `json:"payment_intent_id"`
	Allocations []allocation `json:"allocations"`
	Version     int64        `json:"version"`
}

type allocation struct {
	Intent  string  `json:"payment_intent_id"`
	Amount  int64   `json:"amount"`
	Gateway *string `json:"gateway_refund_id"`
	Status  string  `json:"status"`
	Failure *struct {
		Code string `json:"code"`
	} `json:"failure"`
}

func (a response) refund() refund { return apitest.Decode[refund](a.Response) }

func (w *world) refund(ctx context.Context, body string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/refunds", body, headers...)
}

// refundOf returns the body of a refund of an intent.
func refundOf(p intent, more string) string {
	return fmt.Sprintf(`{"payment_intent_id":%q,"reason":"requested_by_customer"%s}`, p.ID, more)
}

// refundOfBooking returns the body of a refund of a booking.
func refundOfBooking(b domain.Booking, more string) string {
	return fmt.Sprintf(`{"booking_id":%q,"reason":"requested_by_customer"%s}`, b.ID, more)
}

// paid creates a successful intent of a new booking.
func (w *world) paid(ctx context.Context, amount int64) intent {
	w.T.Helper()
	return w.paidOf(ctx, w.bookings.Add(ctx, "confirmed", amount, amount, "USD"), amount)
}

// paidOf creates a successful intent of a booking.
func (w *world) paidOf(ctx context.Context, b domain.Booking, amount int64) intent {
	w.T.Helper()
	p := w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":%d}`, b.ID, amount)).is(201).intent()
	w.gateway.Change(p.ID, func(s *domain.Snapshot) { s.Status, s.Received = domain.Succeeded, amount })
	w.refresh(ctx, p.ID)
	return p
}

func (w *world) refunded(ctx context.Context, id string) int64 {
	w.T.Helper()
	p, err := storeIntent(ctx, w, id)
	if err != nil {
		w.T.Fatal(err)
	}
	return p.Refunded
}

func (w *world) getRefund(ctx context.Context, id string) refund {
	w.T.Helper()
	return w.do(ctx, "GET", "/refunds/"+id, "").is(200).refund()
}

func TestRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	before := len(w.emitted())
	body := refundOf(p, `,"amount_minor":400,"metadata":{"why":"rain"}`)
	created := w.refund(ctx, body, key("k")).is(201)
	r := created.refund()
	if r.Status != "succeeded" || r.Amount != 400 || r.Version != 1 || r.IntentID == nil || *r.IntentID != p.ID || len(r.Allocations) != 1 ||
		r.Allocations[0].Intent != p.ID || r.Allocations[0].Gateway == nil || r.Allocations[0].Status != "succeeded" {
		t.Errorf("%s", created.Body)
	}
	if created.Header.Get("Location") != "/api/v1/refunds/"+r.ID || !strings.HasPrefix(r.ID, "rf_") {
		t.Errorf("%v", created.Header)
	}
	if !strings.Contains(string(created.Body), `"metadata":{"why":"rain"}`) || !strings.Contains(string(created.Body), `"reason":"requested_by_customer"`) {
		t.Errorf("%s", created.Body)
	}
	if again := w.refund(ctx, body, key("k")).is(201); string(again.Body) != string(created.Body) {
		t.Errorf("%s", again.Body)
	}
	w.refund(ctx, refundOf(p, `,"amount_minor":401`), key("k")).is(422, "idempotency_mismatch", "Idempotency-Key")
	if got := w.do(ctx, "GET", "/refunds/"+r.ID, "").is(200); string(got.Body) != string(created.Body) {
		t.Errorf("%s", got.Body)
	}
	if w.woken.Load() != 1 {
		t.Errorf("woken %d times", w.woken.Load())
	}
	events := w.emitted()[before:]
	if len(events) != 1 || events[0].GetType() != "refund.updated" || !events[0].GetInternal() || events[0].GetObjectId() != r.ID || string(events[0].GetPreviousAttributes()) != "{}" ||
		string(events[0].GetObject()) != strings.TrimSpace(string(created.Body)) {
		t.Errorf("%v", events)
	}
	w.work()
	if n := w.refunded(ctx, p.ID); n != 400 {
		t.Errorf("%d refunded", n)
	}
	if types := w.types(); !strings.HasSuffix(types, "succeeded updated updated") {
		t.Errorf("%s", types)
	}
	if rest := w.refund(ctx, refundOf(p, "")).is(201).refund(); rest.Amount != 600 {
		t.Errorf("%+v", rest)
	}
	w.refund(ctx, refundOf(p, "")).is(409, "nothing_to_refund")
	if list := w.gateway.Refunds(); len(list) != 2 || list[0].Minor != 400 || list[0].Reason != "requested_by_customer" {
		t.Errorf("%+v", list)
	}
}

// TestRefundRefusals checks that each rule has its error, in the order of the checks.
func TestRefundRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := w.tenant(), w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "KWD")
	p := w.paidOf(ctx, b, 1000)
	unpaid := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
	open := w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, unpaid.ID)).is(201).intent()
	untouched := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
	otherIntent := w.paid(other, 1000)
	for name, c := range map[string]struct {
		body   string
		status int
		code   []string
	}{
		"nothing":               {`{}`, 422, []string{"invalid_request", "reason"}},
		"no reason":             {fmt.Sprintf(`{"payment_intent_id":%q}`, p.ID), 422, []string{"invalid_request", "reason"}},
		"unknown reason":        {fmt.Sprintf(`{"payment_intent_id":%q,"reason":"x"}`, p.ID), 422, []string{"invalid_request", "reason"}},
		"neither":               {`{"reason":"duplicate"}`, 422, []string{"invalid_request", "payment_intent_id"}},
		"nulls":                 {`{"reason":"duplicate","booking_id":null,"payment_intent_id":null}`, 422, []string{"invalid_request", "payment_intent_id"}},
		"both":                  {refundOf(p, fmt.Sprintf(`,"booking_id":%q`, b.ID)), 422, []string{"invalid_request", "payment_intent_id"}},
		"both, unknown":         {`{"reason":"duplicate","booking_id":"x","payment_intent_id":"y"}`, 422, []string{"invalid_request", "payment_intent_id"}},
		"0":                     {refundOf(p, `,"amount_minor":0`), 422, []string{"invalid_request", "amount_minor"}},
		"over the bound":        {refundOf(p, `,"amount_minor":100000000000`), 422, []string{"invalid_request", "amount_minor"}},
		"bad metadata":          {refundOf(p, `,"metadata":{"a":1}`), 422, []string{"invalid_request", "metadata.a"}},
		"unknown intent":        {refundOf(intent{ID: "pi_1"}, ""), 404, []string{"payment_intent_not_found"}},
		"unknown intent, much":  {refundOf(intent{ID: "pi_1"}, `,"amount_minor":99999999999`), 404, []string{"payment_intent_not_found"}},
		"malformed intent":      {refundOf(intent{ID: "x"}, ""), 404, []string{"payment_intent_not_found"}},
		"another's intent":      {refundOf(otherIntent, ""), 404, []string{"payment_intent_not_found"}},
		"unknown booking":       {`{"booking_id":"bk_00000000000000000000000000","reason":"duplicate"}`, 404, []string{"booking_not_found"}},
		"malformed booking":     {`{"booking_id":"x","reason":"duplicate"}`, 404, []string{"booking_not_found"}},
		"another's booking":     {refundOfBooking(w.bookings.Add(other, "confirmed", 1, 1, "USD"), ""), 404, []string{"booking_not_found"}},
		"not paid":              {refundOf(open, ""), 409, []string{"nothing_to_refund"}},
		"not paid, much":        {refundOf(open, `,"amount_minor":5`), 409, []string{"nothing_to_refund"}},
		"booking not paid":      {refundOfBooking(unpaid, ""), 409, []string{"nothing_to_refund"}},
		"booking never touched": {refundOfBooking(untouched, ""), 409, []string{"nothing_to_refund"}},
		"too much":              {refundOf(p, `,"amount_minor":1010`), 422, []string{"invalid_request", "amount_minor"}},
		"too much of a booking": {refundOfBooking(b, `,"amount_minor":1010`), 422, []string{"invalid_request", "amount_minor"}},
		"thousandths":           {refundOf(p, `,"amount_minor":995`), 422, []string{"invalid_request", "amount_minor"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.refund(ctx, c.body, key(name)).is(c.status, c.code...)
			if strings.HasPrefix(name, "too much") && !strings.Contains(string(a.Body), "left to refund, 1000") {
				t.Errorf("%s", a.Body)
			}
		})
	}
	if n := w.Count(`select count(*) from refunds`); n != 0 || len(w.gateway.Refunds()) != 0 {
		t.Errorf("%d rows, %v", n, w.gateway.Refunds())
	}
	w.refund(ctx, refundOf(p, `,"amount_minor":1000,"booking_id":null,"metadata":null`), key("too much")).is(201) // the key is free after an error
}

// TestRefundsAtOnce sends twenty simultaneous refunds of one intent. It checks that as many as possible are created, and that the
// errors of the other requests contain the remaining amount.
func TestRefundsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway.Before = func(context.Context, string) error { time.Sleep(5 * time.Millisecond); return nil }
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 1000)
	var created, refused atomic.Int64
	atOnce(20, func(i int) {
		body := refundOf(p, `,"amount_minor":150`)
		if i%2 == 0 {
			body = refundOfBooking(b, `,"amount_minor":150`)
		}
		switch a := w.refund(ctx, body, key(fmt.Sprint(i))); a.Status {
		case 201:
			created.Add(1)
		case 422:
			a.is(422, "invalid_request", "amount_minor")
			refused.Add(1)
		default:
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	if created.Load() != 6 || refused.Load() != 14 || len(w.gateway.Refunds()) != 6 {
		t.Errorf("%d created, %d refused, %d at the gateway", created.Load(), refused.Load(), len(w.gateway.Refunds()))
	}
	if a := w.refund(ctx, refundOf(p, `,"amount_minor":150`)).is(422, "invalid_request", "amount_minor"); !strings.Contains(string(a.Body), "refund, 100.") {
		t.Errorf("%s", a.Body)
	}
}

// TestRefundAtOnceOfOneKey checks that twenty requests with one key create one refund, and that each request gets it.
func TestRefundAtOnceOfOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway.Before = func(context.Context, string) error { time.Sleep(20 * time.Millisecond); return nil }
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	bodies := make([]string, 20)
	atOnce(20, func(i int) { bodies[i] = string(w.refund(ctx, refundOf(p, ""), key("k")).is(201).Body) })
	if slices.Sort(bodies); len(slices.Compact(bodies)) != 1 || len(w.gateway.Refunds()) != 1 {
		t.Errorf("%v, %v", bodies, w.gateway.Refunds())
	}
}

// TestRefundOfOneKeyBehindALock checks two requests with one key that both find nothing and wait for the intent. The second one
// gets the refund of the first, although nothing is left to refund.
func TestRefundOfOneKeyBehindALock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	p := w.paid(ctx, 1000)
	release := w.Hold(`select from payment_intents where gateway_id = $1 for update`, p.ID)
	done := make(chan struct{})
	go func() {
		defer close(done)
		atOnce(2, func(int) { w.refund(ctx, refundOf(p, ""), key("k")).is(201) })
	}()
	w.untilWaiting(2)
	release()
	<-done
	if n := len(w.gateway.Refunds()); n != 1 {
		t.Errorf("%d created", n)
	}
}

// untilWaiting waits until n statements wait for locks.
func (w *world) untilWaiting(n int) {
	w.T.Helper()
	const waiting = `select count(*) from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()`
	for until := time.Now().Add(20 * time.Second); w.Count(waiting) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			w.T.Error("no statement waits")
			return
		}
	}
}

// TestRefundOfBooking checks that a refund of a booking uses its payments, newest first, and skips those with nothing left.
func TestRefundOfBooking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 10_000, 10_000, "USD")
	first, second := w.paidOf(ctx, b, 1000), w.paidOf(ctx, b, 500)
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":900}`, b.ID)).is(201) // an intent that is not paid
	third := w.paidOf(ctx, b, 300)
	w.paid(ctx, 5000)
	w.refund(ctx, refundOf(second, `,"amount_minor":500`)).is(201)
	a := w.refund(ctx, refundOfBooking(b, `,"amount_minor":700`)).is(201)
	r := a.refund()
	if len(r.Allocations) != 2 || r.Allocations[0].Intent != third.ID || r.Allocations[0].Amount != 300 || r.Allocations[1].Intent != first.ID ||
		r.Allocations[1].Amount != 400 || r.Status != "succeeded" || r.IntentID != nil || r.BookingID != b.ID.String() || r.Version != 2 {
		t.Errorf("%s", a.Body)
	}
	w.bookings.Fail = func() error { return errLost } // this service knows the booking
	if rest := w.refund(ctx, refundOfBooking(b, "")).is(201).refund(); rest.Amount != 600 || len(rest.Allocations) != 1 {
		t.Errorf("%+v", rest)
	}
	w.refund(ctx, refundOfBooking(b, "")).is(409, "nothing_to_refund")
	w.work()
	for _, p := range []intent{first, second, third} {
		if n := w.refunded(ctx, p.ID); n != p.Amount {
			t.Errorf("%d of %d refunded", n, p.Amount)
		}
	}
}

// TestRefundOfManyPayments checks that a refund covers at most 20 payments, the newest ones first.
func TestRefundOfManyPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 10_000, 10_000, "USD")
	for range domain.MaxAllocations + 1 {
		w.paidOf(ctx, b, 100)
	}
	w.refund(ctx, refundOfBooking(b, "")).is(422, "invalid_request", "amount_minor")
	w.refund(ctx, refundOfBooking(b, `,"amount_minor":2001`)).is(422, "invalid_request", "amount_minor")
	if r := w.refund(ctx, refundOfBooking(b, `,"amount_minor":2000`)).is(201).refund(); len(r.Allocations) != domain.MaxAllocations {
		t.Errorf("%+v", r)
	}
	if r := w.refund(ctx, refundOfBooking(b, "")).is(201).refund(); r.Amount != 100 {
		t.Errorf("%+v", r)
	}
}

// TestRefundIsolation checks that one tenant's refunds are unknown to another tenant and to the other mode.
func TestRefundIsolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, other := w.tenant(), w.tenant()
	live := caller.With(ctx, func() caller.Caller { c := caller.FromContext(ctx); c.Mode = caller.Live; return c }())
	w.connect(live)
	p := w.paid(ctx, 1000)
	r := w.refund(ctx, refundOf(p, `,"amount_minor":100`)).is(201).refund()
	w.do(other, "GET", "/refunds/"+r.ID, "").is(404, "refund_not_found")
	w.do(live, "GET", "/refunds/"+r.ID, "").is(403, "mode_mismatch")
	w.do(ctx, "GET", "/refunds/x", "").is(404, "refund_not_found")
	for _, c := range []context.Context{other, live} {
		w.refund(c, refundOf(p, "")).is(404, "payment_intent_not_found")
		w.refund(c, fmt.Sprintf(`{"booking_id":%q,"reason":"duplicate"}`, r.BookingID)).is(404, "booking_not_found")
		for _, query := range []string{"", "?payment_intent_id=" + p.ID, "?booking_id=" + r.BookingID} {
			if list := w.do(c, "GET", "/refunds"+query, "").is(200); strings.Contains(string(list.Body), r.ID) {
				t.Errorf("%s", list.Body)
			}
		}
		mine := w.refund(c, refundOf(w.paid(c, 500), "")).is(201).refund()
		w.do(ctx, "GET", "/refunds/"+mine.ID, "").is(map[bool]int{true: 403, false: 404}[c == live])
	}
}

func TestRefundList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "confirmed", 10_000, 10_000, "USD")
	p, q := w.paidOf(ctx, b, 1000), w.paidOf(ctx, b, 1000)
	var all []string
	for i := range 7 {
		all = append(all, w.refund(ctx, refundOf(p, fmt.Sprintf(`,"amount_minor":%d`, 10+i))).is(201).refund().ID)
	}
	middle := w.do(ctx, "GET", "/refunds/"+all[3], "").is(200)
	created := apitest.Decode[struct {
		At string `json:"created_at"`
	}](middle.Response).At
	w.gateway.RefundStatus = domain.RefundPending
	w.refund(ctx, refundOfBooking(b, `,"amount_minor":1001`)).is(201) // of both payments
	w.gateway.RefundStatus = ""
	w.refund(ctx, refundOf(w.paid(ctx, 100), "")).is(201)
	get := func(query string) apitest.Response {
		return w.do(ctx, "GET", "/refunds?status=succeeded&payment_intent_id="+p.ID+"&"+query, "").Response
	}
	ids, _ := w.Walk(get, 3)
	slices.Reverse(all)
	if !slices.Equal(ids, all) {
		t.Errorf("%v, want %v", ids, all)
	}
	for query, want := range map[string]int{
		"status=pending": 1, "status=pending,succeeded": 9, "status=failed": 0, "booking_id=bk_x": 0, "booking_id=" + b.ID.String(): 8, "": 9,
		"payment_intent_id=" + p.ID: 8, "payment_intent_id=" + q.ID: 1, "payment_intent_id=x": 0, "payment_intent_id=pi_1": 0,
		"payment_intent_id=" + p.ID + "&booking_id=bk_x": 0, "created_before=" + created: 3, "created_after=" + created: 6, "updated_after=" + created: 6,
		"sort=updated_at": 9, "sort=updated_at&booking_id=" + b.ID.String() + "&status=pending": 1,
	} {
		list := apitest.Decode[struct{ Data []refund }](w.do(ctx, "GET", "/refunds?"+query, "").is(200).Response)
		if len(list.Data) != want {
			t.Errorf("%q: %d rows", query, len(list.Data))
		}
	}
	w.do(ctx, "GET", "/refunds?status=creating", "").is(422, "invalid_request", "status")
	w.byMetadata(ctx, "/refunds", func(metadata string) string {
		return w.refund(ctx, refundOf(p, `,"amount_minor":1,"metadata":`+metadata)).is(201).refund().ID
	})
	w.do(ctx, "GET", "/refunds?cursor=x", "").is(400, "invalid_cursor")
}
