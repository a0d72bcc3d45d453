package api_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/bookings/internal/domain"
)

type testClock struct {
	Object string
	Now    time.Time
	Frozen bool
}

// shift moves the years of the clock settings along with the calendar, because a test clock cannot be behind real time: 2030 was
// four years ahead when these tests were written.
var shift = time.Now().Year() - 2026

var shifted = regexp.MustCompile(`203\d`)

// ahead returns the text with its years of the 2030s shifted.
func ahead(text string) string {
	return shifted.ReplaceAllStringFunc(text, func(year string) string {
		n, _ := strconv.Atoi(year)
		return strconv.Itoa(n + shift)
	})
}

// freeze sets the test clock and returns ctx as the gateway signs it for the tenant's next request.
func (w *world) freeze(ctx context.Context, at time.Time) context.Context {
	w.T.Helper()
	got := decode[testClock](w.setClock(ctx, at.Format(time.RFC3339Nano)).is(200))
	if got.Object != "test_clock" || !got.Now.Equal(at) || !got.Frozen {
		w.T.Fatalf("frozen at %s: %+v", at, got)
	}
	return w.ticking(ctx)
}

func (w *world) setClock(ctx context.Context, now string, headers ...header) response {
	w.T.Helper()
	return w.do(ctx, "POST", "/test-clock", `{"now":`+str(now)+`}`, headers...)
}

// ticking returns ctx with the tenant's clock as identity reports it.
func (w *world) ticking(ctx context.Context) context.Context {
	known := w.tenants.Clock(caller.FromContext(ctx).Tenant)
	return in(ctx, func(c *caller.Caller) { c.Clock, c.PolicyVersion = known.FrozenAt, known.Version })
}

func (w *world) shown(ctx context.Context) testClock {
	w.T.Helper()
	return decode[testClock](w.do(ctx, "GET", "/test-clock", "").is(200))
}

func TestClockForwardOnly(t *testing.T) {
	t.Parallel()
	w, real := newWorld(t), pgtest.Ctx(t, caller.Test)
	if got := w.shown(real); got.Frozen || time.Since(got.Now).Abs() > time.Minute {
		t.Errorf("no clock is set: %+v", got)
	}
	w.setClock(real, "2020-01-01T00:00:00Z").is(422, "invalid_request", "now")
	at := time.Date(2030+shift, 5, 1, 12, 0, 0, 123456000, time.UTC)
	ctx := w.freeze(real, at)
	if got := w.shown(ctx); !got.Frozen || !got.Now.Equal(at) {
		t.Errorf("got %+v", got)
	}
	ctx = w.freeze(ctx, at) // setting the same time again is allowed
	w.setClock(ctx, ahead("2030-05-01T12:00:00Z")).is(422, "invalid_request", "now")
	w.setClock(ctx, ahead("2030-05-01")).is(422, "invalid_request", "now") // midnight in New York, 8 hours ago
	if got := decode[testClock](w.setClock(ctx, ahead("2030-05-02")).is(200)); !got.Now.Equal(time.Date(2030+shift, 5, 2, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("a date is the first instant of the day at the operator's: %+v", got)
	}
	for _, bad := range []string{`{}`, `{"now":null}`, `{"now":1}`, `{"now":"2030-05-03T00:00:00"}`, `{"now":"2200-01-01"}`, `{"now":"x"}`} {
		w.do(ctx, "POST", "/test-clock", bad).is(422, "invalid_request", "now")
	}
	w.do(ctx, "POST", "/test-clock", `[]`).is(400, "malformed_json")
	w.do(ctx, "POST", "/test-clock", `{"now":"`+strings.Repeat("x", 1<<20)+`"}`).is(413)
	w.do(ctx, "POST", "/test-clock?x=1", `{"now":"2030-06-01"}`).is(422, "invalid_request", "x")
	w.do(ctx, "GET", "/test-clock?x=1", "").is(422, "invalid_request", "x")
	w.do(ctx, "DELETE", "/test-clock?x=1", "").is(422, "invalid_request", "x")
	for range 2 {
		w.do(ctx, "DELETE", "/test-clock", "").is(204)
		ctx = w.ticking(ctx)
	}
	if got := w.shown(ctx); got.Frozen || time.Since(got.Now).Abs() > time.Minute {
		t.Errorf("real time again: %+v", got)
	}
	w.freeze(ctx, time.Now().Add(time.Hour).Truncate(time.Second).UTC()) // before 2030, after now
}

// TestClockInLiveMode checks that live mode has no clock, even if the request has other errors. The response stored for the key
// takes precedence.
func TestClockInLiveMode(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	test, live := both(tenant, t)
	for _, r := range []struct{ method, query, body string }{
		{"GET", "", ""},
		{"GET", "?x=1", ""},
		{"POST", "", `{"now":"2030-05-01"}`},
		{"POST", "", `{"now":1}`},
		{"POST", "", `{}`},
		{"POST", "?x=1", `{}`},
		{"DELETE", "", ""},
		{"DELETE", "?x=1", ""},
	} {
		w.do(live, r.method, "/test-clock"+r.query, r.body).is(403, "mode_mismatch")
	}
	w.do(live, "POST", "/test-clock", `{`).is(400, "malformed_json")
	w.post(live, `{"event_date":"2030-05-01"}`, "Idempotency-Key: k").is(201)
	w.setClock(live, ahead("2030-05-01"), "Idempotency-Key: k").is(422, "idempotency_mismatch")
	w.do(live, "POST", "/test-clock", `{"now":1}`, "Idempotency-Key: k").is(422, "idempotency_mismatch")
	if c := w.tenants.Clock(tenant); c.Version != 1 || w.Count(`select count(*) from test_clocks`) != 0 {
		t.Errorf("a refused request has moved the clock: %+v", c)
	}
	w.freeze(test, time.Date(2030+shift, 5, 1, 0, 0, 0, 0, time.UTC))
	if b := w.book(live, `"event_date":"2030-05-01","status":"confirmed"`); time.Since(*b.ConfirmedAt).Abs() > time.Minute {
		t.Errorf("live mode goes by the test clock: %v", b.ConfirmedAt)
	}
}

// TestClockExpiresWhatIsDue checks that everything due by the new time is expired when the response arrives. Another tenant and
// live mode do not change.
func TestClockExpiresWhatIsDue(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	other := pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	const due = 120 // more than one page
	for range due {
		w.book(ctx, `"event_date":"2030-05-01","hold_minutes":60`)
	}
	slot := fmt.Sprintf(`"event_date":"2030-05-01","unit_id":"%s"`, s.ada)
	held := w.book(ctx, slot+`,"hold_minutes":60`)
	later := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":62`)
	ever := w.book(ctx, `"event_date":"2030-05-01"`)
	foreign := w.book(other, `"event_date":"2030-05-01","hold_minutes":60`)
	alive := w.book(live, `"event_date":"2030-05-01","hold_minutes":60`)
	ctx = w.freeze(ctx, time.Now().Add(61*time.Minute).Truncate(time.Microsecond).UTC())
	if n := w.Count(`select count(*) from bookings where status = 'expired' and version = 2`); n != due+1 {
		t.Errorf("%d are expired, want %d", n, due+1)
	}
	if n := strings.Count(w.Types(), "updated"); n != due+1 {
		t.Errorf("%d events", n)
	}
	for _, b := range []booking{later, ever, foreign, alive} {
		if w.Count(`select count(*) from bookings where status = 'pending' and number = $1 and created_at = $2`, b.Number, b.CreatedAt) != 1 {
			t.Errorf("%s was not due", b.ID)
		}
	}
	w.book(ctx, slot) // its unit becomes free immediately
	if got := w.get(ctx, held.ID); got.Status != "expired" {
		t.Errorf("%+v", got)
	}
}

// TestClockGoesRoundWhatFails checks that a booking that cannot be read does not delay other due bookings.
func TestClockGoesRoundWhatFails(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	bad := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":1`)
	w.book(ctx, `"event_date":"2030-05-01","hold_minutes":2`)
	w.Exec(`update bookings set timezone = 'Mars/Olympus' where number = $1`, bad.Number)
	w.setClock(ctx, ahead("2030-04-01"), "Idempotency-Key: k").is(500, "internal_error")
	if got := w.Types(); got != "created created updated" {
		t.Errorf("events %s", got)
	}
	w.Exec(`update bookings set timezone = 'UTC' where number = $1`, bad.Number)
	w.setClock(w.ticking(ctx), ahead("2030-04-01"), "Idempotency-Key: k").is(200)
	if w.Types() != "created created updated updated" {
		t.Errorf("events %s", w.Types())
	}
}

// TestClockRules checks that the test clock determines the hold, the notice, the advance, the 7 days, and the times of a change. It
// does not determine created_at.
func TestClockRules(t *testing.T) {
	t.Parallel()
	w, real := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(real)
	noon := time.Date(2031+shift, 5, 1, 16, 0, 0, 0, time.UTC)
	ctx := w.freeze(real, noon)
	w.tenants.Set(domain.Policy{MinNoticeMinutes: new(60), MaxAdvanceDays: new(10), HoldTTLMinutes: new(15)})
	w.post(ctx, fmt.Sprintf(ahead(`{"starts_at":"2031-05-01T16:59:59Z","service_id":"%s"}`), s.tour)).is(422, "invalid_request", "event_date")
	w.post(ctx, ahead(`{"event_date":"2031-05-12"}`)).is(422, "invalid_request", "event_date")
	b := w.book(ctx, ahead(`"starts_at":"2031-05-01T17:00:00Z","service_id":"%s","unit_id":"%s"`), s.tour, s.ada)
	if !b.HoldExpiresAt.Equal(noon.Add(15*time.Minute)) || time.Since(b.CreatedAt).Abs() > time.Minute {
		t.Errorf("held until %v, created %v", b.HoldExpiresAt, b.CreatedAt)
	}
	day := w.book(ctx, ahead(`"event_date":"2031-05-02","unit_id":"%s"`), s.bee)
	ctx = w.freeze(ctx, noon.Add(15*time.Minute-time.Microsecond))
	if got := w.patch(ctx, b.ID, `{"status":"confirmed"}`).is(200).booking(); !got.ConfirmedAt.Equal(noon.Add(15*time.Minute - time.Microsecond)) {
		t.Errorf("confirmed at %v", got.ConfirmedAt)
	}
	w.patch(ctx, day.ID, `{"status":"confirmed"}`).is(200)
	lapsing := w.book(ctx, ahead(`"event_date":"2031-05-05","unit_id":"%s"`), s.bee)
	ctx = w.freeze(ctx, *lapsing.HoldExpiresAt)
	w.patch(ctx, lapsing.ID, `{"status":"confirmed"}`).is(422, "invalid_status_transition", "status")
	w.do(ctx, "POST", "/bookings/"+lapsing.ID+"/cancel", "").is(422, "invalid_status_transition", "status")
	w.patch(ctx, lapsing.ID, `{"status":"expired"}`).is(200)                                    // the same status again
	w.patch(ctx, b.ID, `{"status":"completed"}`).is(422, "invalid_status_transition", "status") // before its start
	begins := time.Date(2031+shift, 5, 2, 4, 0, 0, 0, time.UTC)                                 // the whole day in New York
	ctx = w.freeze(ctx, begins.Add(-time.Microsecond))
	w.patch(ctx, day.ID, `{"status":"no_show"}`).is(422, "invalid_status_transition", "status")
	ctx = w.freeze(ctx, begins)
	for _, id := range []string{b.ID, day.ID} {
		if got := w.patch(ctx, id, `{"status":"completed"}`).is(200).booking(); !got.CompletedAt.Equal(begins) {
			t.Errorf("completed at %v", got.CompletedAt)
		}
	}
	const week = 7 * 24 * time.Hour
	flip := func(id, status string, want int) {
		t.Helper()
		w.patch(ctx, id, `{"status":"`+status+`"}`).is(want)
	}
	timed, whole := b.EndsAt.Add(week), time.Date(2031+shift, 5, 3, 4, 0, 0, 0, time.UTC).Add(week) // the end of the day in New York
	ctx = w.freeze(ctx, timed)
	flip(b.ID, "no_show", 200)
	flip(b.ID, "completed", 200)
	ctx = w.freeze(ctx, timed.Add(time.Microsecond))
	flip(b.ID, "no_show", 422)
	flip(b.ID, "completed", 200) // the same status again
	ctx = w.freeze(ctx, whole)
	flip(day.ID, "no_show", 200)
	ctx = w.freeze(ctx, whole.Add(time.Microsecond))
	flip(day.ID, "completed", 422)
	flip(day.ID, "no_show", 200)
}

func TestClockReplays(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	const key = "Idempotency-Key: k"
	first := w.setClock(ctx, ahead("2030-05-01"), key).is(200)
	ctx = w.freeze(w.ticking(ctx), time.Date(2031+shift, 1, 1, 0, 0, 0, 0, time.UTC))
	again := w.setClock(ctx, ahead("2030-05-01"), key).is(200) // although it would now be a step back
	if string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, first %s", again.Body, first.Body)
	}
	w.setClock(ctx, ahead("2032-05-01"), key).is(422, "idempotency_mismatch")
	w.setClock(ctx, ahead("2032-05-01"), "Idempotency-Key: ").is(422, "invalid_request", "Idempotency-Key")
	if c := w.tenants.Clock(caller.FromContext(ctx).Tenant); c.FrozenAt.Year() != 2031+shift {
		t.Errorf("a replay has moved the clock: %+v", c)
	}
	got := atOnce(10, func(int) response { return w.setClock(ctx, ahead("2033-01-01"), "Idempotency-Key: many") })
	if got[200] != 10 {
		t.Errorf("responses %v", got)
	}
	w.tenants.Fail(apperr.ErrUnavailable)
	w.setClock(ctx, ahead("2034-01-01")).is(503, "unavailable")
	w.do(ctx, "DELETE", "/test-clock", "").is(503, "unavailable")
}

// TestOneKeyOfTheClock checks that exactly one of several different parallel requests with one key sets the clock. The others are
// refused before they call identity.
func TestOneKeyOfTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 5 {
		ctx := pgtest.Ctx(t, caller.Test)
		var won atomic.Int64
		got := atOnce(6, func(i int) response {
			year := int64(2040 + shift + i)
			a := w.setClock(ctx, fmt.Sprintf("%d-01-01", year), "Idempotency-Key: k")
			if a.Status == 200 {
				won.Store(year)
			}
			return a
		})
		if got[200] != 1 || got[422] != 5 {
			t.Errorf("round %d: responses %v", round, got)
		}
		if c := w.tenants.Clock(caller.FromContext(ctx).Tenant); c.FrozenAt == nil || int64(c.FrozenAt.In(time.UTC).AddDate(0, 0, 1).Year()) != won.Load() {
			t.Errorf("round %d: the clock shows %v, the response was of %d", round, c.FrozenAt, won.Load())
		}
	}
}

// TestClockAfterACrash checks that, if a process crashes between the call to identity and the write to its own database, the same
// request sent again repairs the state.
func TestClockAfterACrash(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	b := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":60`)
	at := time.Date(2030+shift, 5, 1, 0, 0, 0, 0, time.UTC)
	if _, err := w.tenants.SetClock(ctx, &at); err != nil { // and nothing else happened
		t.Fatal(err)
	}
	ctx = w.ticking(ctx)
	if w.run(); w.Types() != "created" || w.get(ctx, b.ID).Status != "expired" {
		t.Errorf("readers know, the worker does not yet: %s", w.Types())
	}
	w.setClock(ctx, ahead("2030-05-01T00:00:00Z"), "Idempotency-Key: k").is(200)
	if w.Types() != "created updated" {
		t.Errorf("events %s", w.Types())
	}
}

// TestClockWaitsForWhatIsLocked checks that a locked unit delays the response until it is safe to give up. The repeated request
// completes the rest.
func TestClockWaitsForWhatIsLocked(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s","hold_minutes":60`, s.ada)
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	release := w.Hold(`select from units where id = $1 for no key update`, s.ada)
	w.setClock(ctx, ahead("2030-04-01"), "Idempotency-Key: k").is(503, "unavailable")
	release()
	w.setClock(w.ticking(ctx), ahead("2030-04-01"), "Idempotency-Key: k").is(200)
	if w.Types() != "created updated" {
		t.Errorf("events %s", w.Types())
	}
}

// TestClockFromABookingRequest checks that a hold created in real time is judged by real time, even though the event about the
// return to real time has not arrived yet. The projection gets the clock from the booking's own request, and an old event does
// not overwrite it.
func TestClockFromABookingRequest(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	ctx = w.freeze(ctx, time.Date(2031+shift, 1, 1, 0, 0, 0, 0, time.UTC))
	old := w.tenants.Clock(caller.FromContext(ctx).Tenant)
	if _, err := w.tenants.SetClock(ctx, nil); err != nil { // and nothing else happened
		t.Fatal(err)
	}
	ctx = w.ticking(ctx)
	w.book(ctx, `"event_date":"2031-05-01","hold_minutes":60`)
	w.run()
	if err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return testclock.Put(ctx, tx, old) }); err != nil {
		t.Fatal(err)
	}
	w.run()
	if w.Types() != "created" {
		t.Errorf("a clock of the past has expired it: %s", w.Types())
	}
}

// TestClockExpiresQuotes checks that the response arrives after customers has expired the quotes that are due by the new clock,
// in as many steps as necessary.
func TestClockExpiresQuotes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	at, left := time.Date(2030+shift, 5, 1, 0, 0, 0, 0, time.UTC), 3
	w.customers.OnExpiry(func(ctx context.Context) (bool, error) {
		c := caller.FromContext(ctx)
		if known := w.tenants.Clock(c.Tenant); c.Clock == nil || !c.Clock.Equal(at) || c.PolicyVersion != known.Version || c.Mode != caller.Test {
			t.Errorf("the caller has the clock %v of version %d", c.Clock, c.PolicyVersion)
		}
		left--
		return left > 0, nil
	})
	w.freeze(ctx, at)
	if left != 0 {
		t.Errorf("%d steps are left", left)
	}
}

// TestClockWithoutCustomers checks that the clock is set and the response arrives in time while customers is unavailable, slow,
// or failing.
func TestClockWithoutCustomers(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.maxWait = 200 * time.Millisecond
	w.engine = w.serve(w.DB.App)
	for days, expire := range []func(ctx context.Context) (bool, error){
		func(context.Context) (bool, error) { return false, apperr.ErrUnavailable },
		func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, apperr.ErrTimeout },
		func(ctx context.Context) (bool, error) { return true, ctx.Err() }, // without end
	} {
		w.book(ctx, `"event_date":"%d-06-01","unit_id":"%s","hold_minutes":60`, 2040+shift+days, s.ada)
		w.customers.OnExpiry(expire)
		ctx = w.freeze(ctx, time.Date(2030+shift, 5, 1+days, 0, 0, 0, 0, time.UTC))
		if n := w.Count(`select count(*)::int from bookings where status = 'expired'`); n != days+1 {
			t.Errorf("%d holds are expired after %d steps", n, days+1)
		}
	}
}
