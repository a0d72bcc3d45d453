package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// expireDue sends requests to expire due quotes, as bookings does, until none is left. It returns the number of calls.
func (w *world) expireDue(ctx context.Context, engine http.Handler) (calls int) {
	w.T.Helper()
	for more := true; more; calls++ {
		a := w.from(ctx, engine, "bookings", "POST", "/internal/v1/expiries", "").is(200)
		more = decode[struct{ More bool }](a).More
	}
	return calls
}

// copies creates n copies of a quote.
func (w *world) copies(id string, n int) {
	w.T.Helper()
	quote, err := ids.Parse[ids.QuotePrefix](id)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Exec(`insert into quotes select (jsonb_populate_record(q, jsonb_build_object('id', gen_random_uuid(), 'number', 'C-' || n))).*
		from quotes q, generate_series(1, $2::int) n where q.id = $1`, quote, n)
}

// TestQuotesExpireWhenTheTestClockMoves checks that, when the test clock has moved, the expiry of all due quotes of the tenant in
// test mode is stored with events before the response. Nothing else is stored.
func TestQuotesExpireWhenTheTestClockMoves(t *testing.T) {
	t.Parallel()
	const due = 500
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	at := time.Date(time.Now().Year()+4, 1, 1, 0, 0, 0, 0, time.UTC)
	frozen := func(ctx context.Context, days int) context.Context {
		return in(ctx, func(c *caller.Caller) {
			c.Clock, c.PolicyVersion = new(at.AddDate(0, 0, days)), 2+int64(days)
		})
	}
	other := frozen(pgtest.Ctx(t, caller.Test), 0)
	foreign := w.sentQuote(other, "")
	live := w.sentQuote(pg.OtherMode(ctx), "")
	w.copies(w.sentQuote(frozen(ctx, 0), "").ID, due-1)
	later := w.sentQuote(frozen(ctx, 1), "")
	accepting := w.sentQuote(frozen(ctx, 0), "")
	w.Exec(`update quotes set accept_until = now() + interval '1 hour', accept_next = now() + interval '1 hour' where number = $1 and livemode = false and customer_id = $2`,
		accepting.Number, must(t, ids.Parse[ids.CustomerPrefix], accepting.CustomerID))
	events := len(w.Events())

	if calls := w.expireDue(frozen(ctx, 15), w.engine); calls != due/100+1 {
		t.Errorf("%d calls", calls)
	}
	if n := w.Count(`select count(*)::int from quotes where status = 'expired'`); n != due {
		t.Errorf("%d quotes are stored as expired, want %d", n, due)
	}
	if n := w.Count(`select count(*)::int from quotes where status = 'sent'`); n != 4 {
		t.Errorf("%d quotes are still sent, want those of another tenant, of live mode, of the next day, and the one that is being accepted", n)
	}
	all := w.Events()
	for _, e := range all[events:] {
		if e.GetType() != "quote.updated" || !e.GetInternal() {
			t.Errorf("event %s", e.GetType())
		}
	}
	if len(all) != events+due {
		t.Errorf("%d events, want %d", len(all)-events, due)
	}
	if calls := w.expireDue(frozen(ctx, 15), w.engine); calls != 1 || len(w.Events()) != len(all) {
		t.Errorf("once more: %d calls, %d events", calls, len(w.Events()))
	}
	for id, reader := range map[string]context.Context{foreign.ID: other, live.ID: pg.OtherMode(ctx), later.ID: frozen(ctx, 15)} {
		if got := w.readQuote(reader, id); got.Status != "sent" {
			t.Errorf("%+v", got)
		}
	}
	if n := w.Count(`select count(*)::int from test_clocks where frozen_at = $1`, at.AddDate(0, 0, 15)); n != 1 {
		t.Error("the worker does not know the clock")
	}
}

// TestExpiryWaitsForALockedQuote checks that a caller waits for a quote that another transaction has locked. If the lock is not
// released in time, the caller gets an error and repeats the request.
func TestExpiryWaitsForALockedQuote(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.sentQuote(ctx, "")
	late := in(ctx, func(c *caller.Caller) { c.Clock, c.PolicyVersion = new(time.Now().AddDate(1, 0, 0)), 9 })
	impatient := w.serve(w.Impatient(50 * time.Millisecond))
	release := w.Hold(`select from quotes for update`)
	w.from(late, impatient, "bookings", "POST", "/internal/v1/expiries", "").is(503, "unavailable")
	release()
	w.expireDue(late, impatient)
	if n := w.Count(`select count(*)::int from quotes where status = 'expired'`); n != 1 {
		t.Errorf("%d quotes are expired", n)
	}
}

// TestExpiryGoesRoundWhatFails checks that a quote whose expiry cannot be stored does not block the others.
func TestExpiryGoesRoundWhatFails(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	first, second := w.sentQuote(ctx, ""), w.sentQuote(ctx, "")
	late := in(ctx, func(c *caller.Caller) { c.Clock, c.PolicyVersion = new(time.Now().AddDate(1, 0, 0)), 9 })
	for _, bad := range []string{first.Number, second.Number} {
		w.Exec(`alter table quotes add constraint bad check (status <> 'expired' or number <> '` + bad + `')`)
		w.from(late, w.engine, "bookings", "POST", "/internal/v1/expiries", "").is(500, "internal_error")
		if n := w.Count(`select count(*)::int from quotes where status = 'expired'`); n != 1 {
			t.Errorf("%d quotes are expired", n)
		}
		w.Exec(`alter table quotes drop constraint bad`)
		w.Exec(`update quotes set status = 'sent'`)
	}
}

func TestOnlyBookingsExpires(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.from(ctx, w.engine, "gateway", "POST", "/internal/v1/expiries", "").is(401, "invalid_credential")
	w.from(pg.OtherMode(ctx), w.engine, "bookings", "POST", "/internal/v1/expiries", "").is(403, "mode_mismatch")
}

func must[T any](t *testing.T, parse func(string) (T, error), text string) T {
	t.Helper()
	v, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTheWorkerExpiresAllThatIsDue checks that one run of the worker expires all due quotes, even if there are more than one query
// returns.
func TestTheWorkerExpiresAllThatIsDue(t *testing.T) {
	t.Parallel()
	const due = 250
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.copies(w.sentQuote(ctx, "").ID, due-1)
	w.clock.move(100 * 24 * time.Hour)
	if err := w.expiry.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(`select count(*)::int from quotes where status = 'expired'`); n != due {
		t.Errorf("%d quotes are stored as expired, want %d", n, due)
	}
}

// TestExpiryWithoutProgressEnds checks that a due quote that cannot be expired does not make the caller repeat its request forever.
func TestExpiryWithoutProgressEnds(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.copies(w.sentQuote(ctx, "").ID, 150)
	late := in(ctx, func(c *caller.Caller) { c.Clock, c.PolicyVersion = new(time.Now().AddDate(0, 0, 20)), 9 })
	w.Exec(`insert into test_clocks (tenant_id, livemode, frozen_at, version) select tenant_id, livemode, now(), 99 from quotes limit 1
		on conflict (tenant_id, livemode) do update set frozen_at = excluded.frozen_at, version = excluded.version`) // newer than that of the caller
	a := w.from(late, w.engine, "bookings", "POST", "/internal/v1/expiries", "").is(200)
	if decode[struct{ More bool }](a).More {
		t.Errorf("%s, and none has expired", a.Body)
	}
	if n := w.Count(`select count(*)::int from quotes where status = 'expired'`); n != 0 {
		t.Errorf("%d quotes have expired", n)
	}
}
