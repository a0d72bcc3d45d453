package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/app"
)

// run runs the worker once.
func (w *world) run() {
	w.T.Helper()
	if err := w.expiry.Run(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

func TestWorkerExpires(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	s := w.shop(ctx)
	slot := fmt.Sprintf(`"event_date":"2030-05-01","unit_id":"%s"`, s.ada)
	b := w.book(ctx, slot+`,"hold_minutes":10`)
	loose := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":10`)
	w.book(ctx, `"event_date":"2030-05-01","hold_minutes":12`)
	w.book(ctx, `"event_date":"2030-05-01"`)
	confirmed := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":10`)
	w.patch(ctx, confirmed.ID, `{"status":"confirmed"}`).is(200)
	before := w.Types()
	w.clock.moveTo(b.HoldExpiresAt.Add(-time.Second))
	if w.run(); w.Types() != before {
		t.Errorf("too early: %s", w.Types())
	}
	w.clock.moveTo(confirmed.CreatedAt.Add(11 * time.Minute))
	for range 2 {
		w.run()
	}
	if got := w.Types(); got != before+" updated updated" {
		t.Errorf("events %s", got)
	}
	e := w.Events()[len(strings.Fields(before))]
	if e.GetObjectId() != b.ID || e.GetResourceVersion() != 2 || string(e.GetPreviousAttributes()) != `{"status":"pending"}` || e.GetRequestId() != "" {
		t.Errorf("event %v", e)
	}
	for _, id := range []string{b.ID, loose.ID} {
		if got := w.do(ctx, "GET", "/bookings/"+id, "").is(200); got.booking().Status != "expired" || got.booking().Version != 2 {
			t.Errorf("got %s", got.Body)
		}
	}
	w.book(ctx, slot)
}

// TestWorkersSideBySide checks that each hold expires once with four workers, several tenants, and more than one page.
func TestWorkersSideBySide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const each = 60
	for range 3 {
		ctx := pgtest.Ctx(t, caller.Live)
		s := w.shop(ctx)
		for i := range each {
			w.book(ctx, `"event_date":"%s","unit_id":"%s","hold_minutes":1`, time.Date(2030, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), s.ada)
		}
	}
	w.clock.move(2 * time.Minute)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			own := &app.Expiry{Bookings: w.expiry.Bookings, Worker: w.DB.Worker, Log: w.expiry.Log}
			if err := own.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.run() // holds that one worker skipped because another had locked them are now done
	if n := w.Count(`select count(*) from bookings where status = 'expired' and version = 2`); n != 3*each {
		t.Errorf("%d expired, want %d", n, 3*each)
	}
	if n := strings.Count(w.Types(), "updated"); n != 3*each || w.Count(`select count(*) from unit_claims`) != 0 {
		t.Errorf("%d events", n)
	}
}

// TestConfirmAgainstExpiry checks that exactly one of the confirmation and the expiry of one hold takes effect, and that the claim
// matches it.
func TestConfirmAgainstExpiry(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	s := w.shop(ctx)
	ahead := *w.expiry.Bookings
	ahead.Now = func() time.Time { return w.clock.now().Add(2 * time.Minute) }
	won := map[string]int{}
	for round := range 20 {
		b := w.book(ctx, `"event_date":"2030-05-%02d","unit_id":"%s","hold_minutes":1`, round+1, s.ada)
		got := atOnce(3, func(i int) response {
			if i > 0 {
				expiry := &app.Expiry{Bookings: &ahead, Worker: w.DB.Worker, Log: w.expiry.Log}
				if err := expiry.Run(t.Context()); err != nil {
					t.Error(err)
				}
				return response{}
			}
			return w.patch(ctx, b.ID, `{"status":"confirmed"}`)
		})
		status := w.get(ctx, b.ID).Status
		won[status]++
		claims := w.Count(`select count(*) from unit_claims where starts_at = $1`, *b.StartsAt)
		if (status == "confirmed") != (got[200] == 1) || (status == "expired") != (got[422] == 1) || (status == "confirmed") != (claims == 1) {
			t.Errorf("%s with %d claims after %v", status, claims, got)
		}
	}
	if n := strings.Count(w.Types(), "updated"); n != 20 {
		t.Errorf("%d events of 20 bookings, won %v", n, won)
	}
}

// TestWorkerGoesRoundWhatFails checks that a booking that cannot be read does not delay other bookings.
func TestWorkerGoesRoundWhatFails(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Live)
	bad := w.book(ctx, `"event_date":"2030-05-01","hold_minutes":1`)
	w.book(ctx, `"event_date":"2030-05-01","hold_minutes":2`)
	w.Exec(`update bookings set timezone = 'Mars/Olympus' where number = $1`, bad.Number)
	w.clock.move(3 * time.Minute)
	w.run()
	if got := w.Types(); got != "created created updated" {
		t.Errorf("events %s", got)
	}
	w.Exec(`update bookings set timezone = 'UTC' where number = $1`, bad.Number)
	if w.run(); w.Types() != "created created updated updated" {
		t.Errorf("events %s", w.Types())
	}
}
