package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

var errTaken = apperr.New(apperr.Conflict, "slot_unavailable", "The unit is taken.")

// fail makes calls of bookings' create fail before they take effect, or afterwards. With nil, they succeed.
func (w *world) fail(before, after error) {
	only := func(err error) func(context.Context, string) error {
		return func(_ context.Context, call string) error {
			if call == "create" {
				return err
			}
			return nil
		}
	}
	w.bookings.Before, w.bookings.After = only(before), only(after)
}

// ended checks the result of an accept: the bookings, open invoices and events of one quote.
func (w *world) ended(q quote, bookings, invoices, events int) {
	w.T.Helper()
	if n := len(w.bookings.Created()); n != bookings {
		w.T.Errorf("%d bookings, want %d", n, bookings)
	}
	if n := w.Count(`select count(*) from invoices where status = 'open'`); n != invoices {
		w.T.Errorf("%d open invoices, want %d", n, invoices)
	}
	accepted, last := 0, int64(0)
	for _, e := range w.Events() {
		if e.GetObjectId() != q.ID {
			continue
		}
		if e.GetType() == "quote.accepted" {
			accepted++
		}
		if e.GetResourceVersion() != last+1 {
			w.T.Errorf("version %d comes after %d", e.GetResourceVersion(), last)
		}
		last = e.GetResourceVersion()
	}
	if accepted != events {
		w.T.Errorf("%d events quote.accepted, want %d", accepted, events)
	}
	if n := w.Count(`select count(*) from quotes where accept_until is not null`); n != 0 {
		w.T.Errorf("%d accepts are under way", n)
	}
}

// TestManyAccepts checks that many simultaneous accepts of one quote, with the same key, with different keys and without keys,
// create one booking, one invoice and one event.
func TestManyAccepts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{12, 50} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		q := w.sentQuote(ctx, "")
		var all sync.WaitGroup
		var bookings sync.Map
		for i := range n {
			all.Go(func() {
				var headers []header
				switch i % 3 {
				case 0:
					headers = []header{"Idempotency-Key: same"}
				case 1:
					headers = []header{header(fmt.Sprint("Idempotency-Key: own", i))}
				}
				a := w.onQuote(ctx, q.ID, "accept", headers...).is(200).quote()
				bookings.Store(*a.BookingID, true)
				if a.Status != "accepted" || len(a.InvoiceIDs) != 1 || a.Version != 3 {
					t.Errorf("responded %+v", a)
				}
			})
		}
		all.Wait()
		different := 0
		bookings.Range(func(any, any) bool { different++; return true })
		if different != 1 {
			t.Errorf("%d accepts returned %d bookings", n, different)
		}
		w.ended(q, 1, 1, 1)
	}
}

// TestAcceptIsResumed checks that, if the process crashes or bookings does not respond at any step, the quote reads as sent until
// the completer ends the accept, exactly once.
func TestAcceptIsResumed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after error }{
		"never reached":   {before: apperr.ErrUnavailable},
		"response lost":   {after: apperr.ErrTimeout},
		"still running":   {before: apperr.ErrInProgress},
		"broken response": {after: errors.New("no envelope")},
		"process crashed": {after: context.Canceled},
	} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		q := w.sentQuote(ctx, "")
		w.fail(tc.before, tc.after)
		if a := w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k"); a.Status < 409 {
			t.Errorf("%s: responded %d %s", name, a.Status, a.Body)
		}
		if got := w.readQuote(ctx, q.ID); got.Status != "sent" || got.Version != 2 || got.BookingID != nil {
			t.Errorf("%s: reads %+v", name, got)
		}
		w.fail(nil, nil)
		w.resumeAccepts(0) // the lease of the first process has not ended
		if got := w.readQuote(ctx, q.ID); got.Status != "sent" {
			t.Errorf("%s: resumed too early: %+v", name, got)
		}
		w.resumeAccepts(31 * time.Second)
		w.resumeAccepts(time.Hour)
		if got := w.readQuote(ctx, q.ID); got.Status != "accepted" || got.Version != 3 {
			t.Errorf("%s: completed %+v", name, got)
		}
		again := w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k").is(200).quote()
		if *again.BookingID != w.bookings.Created()[0].ID.String() {
			t.Errorf("%s: repeated %+v", name, again)
		}
		w.ended(q, 1, 1, 1)
	}
}

// TestLastTransactionFails checks that a transaction that fails after the booking was created leaves only the accept in progress,
// and no invoice number.
func TestLastTransactionFails(t *testing.T) {
	t.Parallel()
	for broken, check := range map[string]string{
		"invoices": "false", "outbox": "false", "idempotency_keys": "status is null", // the first transaction claims the key
	} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		q := w.sentQuote(ctx, "")
		w.Exec(`alter table ` + broken + ` add constraint broken check (` + check + `) not valid`)
		w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k").is(500, "internal_error")
		w.Exec(`alter table ` + broken + ` drop constraint broken`)
		if got := w.readQuote(ctx, q.ID); got.Status != "sent" || w.Count(`select count(*) from invoices`) != 0 || w.Count(`select count(*) from invoice_counters`) != 0 {
			t.Errorf("%s: left %+v", broken, got)
		}
		w.resumeAccepts(31 * time.Second)
		if got := w.readQuote(ctx, q.ID); got.Status != "accepted" {
			t.Errorf("%s: %+v", broken, got)
		}
		w.ended(q, 1, 1, 1)
	}
}

// TestRefusedAccept checks that a refusal of bookings is returned unchanged, and that the quote can then be accepted, changed and
// canceled.
func TestRefusedAccept(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	for _, tc := range []struct {
		err         error
		status      int
		code, field string
	}{
		{errTaken, 409, "slot_unavailable", ""},
		{apperr.Field("event_date", "Must be at least 60 minutes from now."), 422, "invalid_request", "event_date"},
		{apperr.New(apperr.Forbidden, "insufficient_scope", "No."), 403, "insufficient_scope", ""},
	} {
		w.fail(tc.err, nil)
		w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k").is(tc.status, tc.code, tc.field)
		if got := w.readQuote(ctx, q.ID); got.Status != "sent" || got.Version != 2 {
			t.Errorf("after %v: %+v", tc.err, got)
		}
		w.ended(q, 0, 0, 0)
	}
	w.fail(nil, nil)
	w.onQuote(ctx, q.ID, "accept", "Idempotency-Key: k").is(200) // a refusal is not stored
	w.ended(q, 1, 1, 1)
}

// TestCompleterIsRefusedAndBacksOff checks that a refusal that the completer receives ends the accept too. The pause after a failed
// attempt grows each time.
func TestCompleterIsRefusedAndBacksOff(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	w.fail(apperr.ErrUnavailable, nil)
	w.onQuote(ctx, q.ID, "accept").is(503)
	var tries atomic.Int32
	w.bookings.Before = func(context.Context, string) error { tries.Add(1); return apperr.ErrUnavailable }
	for range 300 {
		w.resumeAccepts(time.Second)
	}
	if n := tries.Load(); n < 3 || n > 8 {
		t.Errorf("%d tries in 300 seconds", n)
	}
	w.fail(errTaken, nil)
	w.resumeAccepts(10 * time.Minute)
	if got := w.readQuote(ctx, q.ID); got.Status != "sent" || got.Version != 2 {
		t.Errorf("refused: %+v", got)
	}
	w.ended(q, 0, 0, 0)
	w.onQuote(ctx, q.ID, "cancel").is(200)
	w.fail(nil, nil)
	w.resumeAccepts(time.Hour)
	w.ended(q, 0, 0, 0)
}

// TestOnlyTheLastAttemptEndsAnAccept checks that only the last attempt ends an accept. A delayed process that gets a late refusal
// leaves the accept to the next attempt.
func TestOnlyTheLastAttemptEndsAnAccept(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	var calls atomic.Int32
	firstIn, firstOut, secondIn, secondOut := make(chan bool), make(chan bool), make(chan bool), make(chan bool)
	w.bookings.Before = func(_ context.Context, call string) error {
		if call == "create" && calls.Add(1) == 1 {
			close(firstIn)
			<-firstOut
			return errTaken
		}
		return nil
	}
	w.bookings.After = func(_ context.Context, call string) error {
		if call == "create" {
			close(secondIn)
			<-secondOut
		}
		return nil
	}
	var both sync.WaitGroup
	both.Go(func() { w.onQuote(ctx, q.ID, "accept").is(200) })
	<-firstIn
	both.Go(func() { w.resumeAccepts(31 * time.Second) })
	<-secondIn
	close(firstOut) // its refusal arrives after the second attempt has created the booking
	time.AfterFunc(200*time.Millisecond, func() { close(secondOut) })
	both.Wait()
	if got := w.readQuote(ctx, q.ID); got.Status != "accepted" {
		t.Errorf("left %+v", got)
	}
	w.ended(q, 1, 1, 1)
}

// TestARefusalAfterTheNextAttempt checks that a refusal that arrives after the next attempt has accepted the quote is ignored: the
// client sees the accepted quote.
func TestARefusalAfterTheNextAttempt(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	var calls atomic.Int32
	first, refuse := make(chan bool), make(chan bool)
	w.bookings.Before = func(_ context.Context, call string) error {
		if call == "create" && calls.Add(1) == 1 {
			close(first)
			<-refuse
			return errTaken
		}
		return nil
	}
	done := make(chan response, 1)
	go func() { done <- w.onQuote(ctx, q.ID, "accept") }()
	<-first
	w.resumeAccepts(31 * time.Second)
	close(refuse)
	if got := (<-done).is(200).quote(); got.Status != "accepted" {
		t.Errorf("responded %+v", got)
	}
	w.ended(q, 1, 1, 1)
}

// TestAStuckAcceptAmongOthers checks that an accept that cannot be completed does not block others.
func TestAStuckAcceptAmongOthers(t *testing.T) {
	t.Parallel()
	w, stuck, ctx := newWorld(t), pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Test)
	one, other := w.sentQuote(stuck, ""), w.sentQuote(ctx, "")
	w.fail(apperr.ErrUnavailable, nil)
	w.onQuote(stuck, one.ID, "accept").is(503)
	w.onQuote(ctx, other.ID, "accept").is(503)
	w.bookings.Before = func(ctx context.Context, _ string) error {
		if caller.FromContext(ctx).Tenant == caller.FromContext(stuck).Tenant {
			return apperr.ErrUnavailable
		}
		return nil
	}
	w.resumeAccepts(31 * time.Second)
	if a, b := w.readQuote(stuck, one.ID), w.readQuote(ctx, other.ID); a.Status != "sent" || b.Status != "accepted" {
		t.Errorf("%s and %s", a.Status, b.Status)
	}
	if n := len(w.bookings.Created()); n != 1 {
		t.Errorf("%d bookings", n)
	}
}

// held makes the next accept wait inside bookings until release is called. begun signals that the accept has arrived there.
func (w *world) held() (begun chan bool, release func()) {
	begun, out := make(chan bool), make(chan bool)
	w.bookings.Before = func(_ context.Context, call string) error {
		if call == "create" {
			close(begun)
			<-out
		}
		return nil
	}
	return begun, func() { close(out) }
}

// TestWhileAQuoteIsAccepted checks that a quote that is being accepted does not expire. Its notes and metadata can change, and no
// other request can end it.
func TestWhileAQuoteIsAccepted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.quotes.MaxWait = 100 * time.Millisecond
	q := w.sentQuote(ctx, "")
	begun, release := w.held()
	var accept sync.WaitGroup
	accept.Go(func() {
		if a := w.onQuote(ctx, q.ID, "accept").is(200).quote(); *a.Notes != "n" || a.Version != 4 {
			t.Errorf("accepted %+v", a)
		}
	})
	<-begun
	for _, action := range []string{"decline", "cancel", "accept"} {
		w.onQuote(ctx, q.ID, action).is(409, "idempotency_in_progress")
	}
	w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"notes":"n"}`).is(200)
	w.do(ctx, "PATCH", "/quotes/"+q.ID, `{"terms":"t"}`).is(422, "invalid_request", "terms")
	late := in(ctx, func(c *caller.Caller) { c.Clock = new(time.Now().AddDate(1, 0, 0)) })
	if got := w.readQuote(late, q.ID); got.Status != "sent" {
		t.Errorf("expired amid its accept: %+v", got)
	}
	if ids := w.do(late, "GET", "/quotes?status=expired", "").is(200).list(); len(ids.Data) != 0 {
		t.Errorf("listed as expired: %+v", ids)
	}
	w.Exec(`insert into test_clocks select tenant_id, livemode, now() + interval '1 year', 99 from quotes on conflict (tenant_id, livemode) do update set frozen_at = excluded.frozen_at`)
	if err := w.expiry.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	release()
	accept.Wait()
	w.ended(q, 1, 1, 1)
}

// TestEndAfterAnAccept checks that a request that waits for an accept continues as soon as the accept has ended.
func TestEndAfterAnAccept(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]int{"cancel": 422, "decline": 422, "accept": 200} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		q := w.sentQuote(ctx, "")
		begun, release := w.held()
		var both sync.WaitGroup
		both.Go(func() { w.onQuote(ctx, q.ID, "accept").is(200) })
		<-begun
		both.Go(func() { w.onQuote(ctx, q.ID, action).is(want) })
		time.AfterFunc(150*time.Millisecond, release)
		both.Wait()
		w.ended(q, 1, 1, 1)
	}
}

// TestAcceptUnderAnotherRequestsKey checks that the stored response is checked first: a key of another request accepts nothing.
func TestAcceptUnderAnotherRequestsKey(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	first, second := w.sentQuote(ctx, ""), w.sentQuote(ctx, "")
	accepted := w.onQuote(ctx, first.ID, "accept", "Idempotency-Key: k").is(200)
	w.onQuote(ctx, second.ID, "accept", "Idempotency-Key: k").is(422, "idempotency_mismatch")
	if got := w.readQuote(ctx, second.ID); got.Status != "sent" {
		t.Errorf("accepted after all: %+v", got)
	}
	if again := w.onQuote(ctx, first.ID, "accept", "Idempotency-Key: k").is(200); string(again.Body) != string(accepted.Body) {
		t.Errorf("repeated:\n%s\n%s", again.Body, accepted.Body)
	}
	w.ended(first, 1, 1, 1)
}

// TestAcceptWithoutIdentity checks that nothing is accepted if identity, which accept calls first, does not respond with the
// details.
func TestAcceptWithoutIdentity(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	w.tenants.Fail = apperr.ErrUnavailable
	w.onQuote(ctx, q.ID, "accept").is(503)
	w.ended(q, 0, 0, 0)
	w.tenants.Fail = nil
	w.onQuote(ctx, q.ID, "accept").is(200)
	w.onQuote(ctx, w.sentQuote(ctx, "").ID, "accept", `If-Match: "1"`).is(412, "version_mismatch")
	w.ended(q, 1, 1, 1)
}

// TestRequestOfAStalledProcess checks that bookings no longer acts on a request some time before the lease of its process expires, however
// late the process sends it.
func TestRequestOfAStalledProcess(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	q := w.sentQuote(ctx, "")
	w.quotes.Now = func() time.Time { // each step takes 10 seconds
		w.clock.move(10 * time.Second)
		return w.clock.now()
	}
	var lease time.Time
	w.bookings.Before = func(context.Context, string) error {
		return w.Owner().QueryRow(ctx, `select accept_until from quotes where accept_until is not null`).Scan(&lease)
	}
	w.onQuote(ctx, q.ID, "accept").is(200)
	if left := lease.Sub(w.bookings.Requests()[0].ValidUntil); left < 20*time.Second-time.Millisecond {
		t.Errorf("the request is valid until %v before the end of the lease", left)
	}
}

// TestRequestForTheBooking checks that the booking has the data of the quote, and is created on behalf of its caller.
func TestRequestForTheBooking(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	service, unit, pkg := w.catalogue()
	lead := w.lead(ctx, "")
	q := w.sentQuote(ctx, fmt.Sprintf(`"event_start_time":"10:00","event_end_time":"12:00","service_id":%q,"unit_id":%q,"package_id":%q,"lead_id":%q,
		"deposit_amount":{"amount":2500,"currency":"USD"}`, service, unit, pkg, lead.ID))
	if got := w.do(ctx, "GET", "/leads/"+lead.ID, "").is(200).lead(); got.Status != "quoted" || strings.Join(got.QuoteIDs, " ") != q.ID {
		t.Errorf("the lead: %+v", got)
	}
	w.fail(apperr.ErrUnavailable, nil)
	w.onQuote(ctx, q.ID, "accept").is(503)
	var request string
	w.fail(nil, nil)
	w.bookings.After = func(ctx context.Context, _ string) error {
		request = caller.FromContext(ctx).RequestID
		return nil
	}
	w.resumeAccepts(31 * time.Second)
	if want := caller.FromContext(ctx).RequestID; request != want {
		t.Errorf("the completer acts for request %q, want %q", request, want)
	}
	got := w.bookings.Requests()[0]
	want := fmt.Sprintf(`{"event_date":"2031-05-01","event_start_time":"10:00","event_end_time":"12:00","service_id":%q,"unit_id":%q,"package_id":%q,"customer_id":%q,"guest_count":1}`,
		service, unit, pkg, q.CustomerID)
	if string(got.Body) != want || got.Key != "quote:"+q.ID || got.Quote.String() != q.ID || got.Lead.String() != lead.ID ||
		got.Total.Minor != 10000 || got.Deposit.Minor != 2500 {
		t.Errorf("got %s, %+v", got.Body, got)
	}
	// If the customer is erased after the booking was created, the accept still completes.
	other := w.sentQuote(ctx, "")
	w.fail(nil, apperr.ErrTimeout)
	w.onQuote(ctx, other.ID, "accept").is(504)
	w.fail(nil, nil)
	w.do(ctx, "DELETE", "/customers/"+other.CustomerID, "").is(204)
	w.resumeAccepts(time.Hour)
	if got := w.readQuote(ctx, other.ID); got.Status != "accepted" || got.Notes != nil {
		t.Errorf("erased amid its accept: %+v", got)
	}
}
