package api_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// atOnce runs n calls in parallel and counts their statuses.
func atOnce(n int, call func(i int) response) map[int]int {
	responses := make([]response, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { responses[i] = call(i) })
	}
	all.Wait()
	out := map[int]int{}
	for _, a := range responses {
		out[a.Status]++
	}
	return out
}

func TestFiftyForOneSlot(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	got := atOnce(50, func(i int) response {
		return w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","event_start_time":"10:%02d","package_id":"%s","unit_id":"%s"}`, i, s.flat, s.ada),
			header(fmt.Sprintf("Idempotency-Key: %d", i)))
	})
	if got[201] != 1 || got[409] != 49 || w.Types() != "created" {
		t.Errorf("responses %v, events %q", got, w.Types())
	}
	if n := w.Count(`select count(*) from bookings`) + w.Count(`select count(*) from unit_claims`) + w.Count(`select count(*) from idempotency_keys`); n != 3 {
		t.Errorf("a refused create left rows: %d", n)
	}
}

// TestFiftyForALapsedHold checks that exactly one create expires a lapsed hold that blocks the slot, and takes the slot.
func TestFiftyForALapsedHold(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	slot := fmt.Sprintf(`"event_date":"2030-05-01","event_start_time":"10:00","package_id":"%s","unit_id":"%s"`, s.flat, s.ada)
	b := w.book(ctx, slot+`,"hold_minutes":1`)
	w.clock.move(2 * time.Minute)
	got := atOnce(50, func(i int) response {
		if i%5 == 0 {
			return w.patch(ctx, b.ID, fmt.Sprintf(`{"notes":"%d"}`, i))
		}
		if i%5 == 1 {
			return w.patch(ctx, b.ID, `{"status":"confirmed"}`)
		}
		return w.post(ctx, "{"+slot+"}")
	})
	if got[201] != 1 || got[409] != 29 || got[200] != 10 || got[422] != 10 {
		t.Errorf("responses %v", got)
	}
	if got := w.Types(); strings.Count(got, "created") != 2 || strings.Count(got, "updated") != 11 {
		t.Errorf("events %s", got)
	}
}

// TestClaimsWaitForUnits checks that a request that changes claims waits for the locks of its units, which prevents deadlocks
// between parallel claims. A request that does not change claims does not wait.
func TestClaimsWaitForUnits(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s"`, s.ada)
	c := w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s"`, s.bee)
	w.engine = w.serve(w.Impatient(100 * time.Millisecond))
	release := w.Hold(`select from units where id = $1 for no key update`, s.ada)
	body := fmt.Sprintf(`{"event_date":"2030-05-02","unit_id":"%s"}`, s.ada)
	w.post(ctx, body).is(503, "unavailable")
	w.patch(ctx, b.ID, `{"event_date":"2030-05-02"}`).is(503, "unavailable")          // its unit
	w.patch(ctx, b.ID, fmt.Sprintf(`{"unit_id":"%s"}`, s.bee)).is(503, "unavailable") // the old one
	w.patch(ctx, c.ID, fmt.Sprintf(`{"unit_id":"%s"}`, s.ada)).is(503, "unavailable") // the new one
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(503, "unavailable")
	w.patch(ctx, b.ID, `{"notes":"x"}`).is(200)
	w.patch(ctx, c.ID, `{"event_date":"2030-05-03"}`).is(200)
	release()
	w.post(ctx, body).is(201)
}

// TestMovedMeanwhile checks that a request follows a booking that moves to another unit between the read and the lock. It locks the
// new unit before it changes the claim.
func TestMovedMeanwhile(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s"`, s.ada)
	w.engine = w.serve(w.Impatient(time.Second))
	move, hold := w.Owner(), w.Owner()
	mover, err1 := move.Begin(t.Context())
	holder, err2 := hold.Begin(t.Context())
	_, err3 := mover.Exec(t.Context(), `update bookings set unit_id = $1`, s.bee)
	_, err4 := holder.Exec(t.Context(), `select from units where id = $1 for no key update`, s.bee)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	done := make(chan response)
	go func() { done <- w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "") }()
	for w.Count(`select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := mover.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-done).is(503, "unavailable")
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200)
}

// TestInvoicedMeanwhile checks that the event of a hold that a booking expires contains the invoice that it got while the booking waited for its
// lock.
func TestInvoicedMeanwhile(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	held := w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s","hold_minutes":1`, s.ada)
	w.clock.move(2 * time.Minute)
	invoice, err := w.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`update bookings set version = version`,
		`insert into booking_invoices (tenant_id, livemode, invoice_id, booking_id, version) select tenant_id, livemode, 'inv_1', id, 1 from bookings`,
	} {
		if _, err := invoice.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan response)
	go func() { done <- w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","unit_id":"%s"}`, s.ada)) }()
	for w.Count(`select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := invoice.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-done).is(201)
	if e := w.Events()[1]; e.GetObjectId() != held.ID || !strings.Contains(string(e.GetObject()), `"invoice_ids":["inv_1"]`) {
		t.Errorf("%s %s", e.GetType(), e.GetObject())
	}
}

func TestConfirmAgainstConfirm(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","unit_id":"%s"`, s.ada)
	got := atOnce(20, func(int) response { return w.patch(ctx, b.ID, `{"status":"confirmed"}`) })
	if got[200] != 20 || w.Types() != "created updated" || w.get(ctx, b.ID).Version != 2 {
		t.Errorf("responses %v, events %q", got, w.Types())
	}
}

func TestCancelAgainstCreate(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	for round := range 10 {
		body := fmt.Sprintf(`{"event_date":"2030-05-%02d","unit_id":"%s"}`, round+1, s.ada)
		b := w.post(ctx, body).is(201).booking()
		got := atOnce(12, func(i int) response {
			if i < 2 {
				return w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "")
			}
			return w.post(ctx, body)
		})
		if got[200] != 2 || got[201] > 1 || got[201]+got[409] != 10 {
			t.Errorf("responses %v", got)
		}
		if n := w.Count(`select count(*) from unit_claims where starts_at = $1`, *b.StartsAt); n != got[201] {
			t.Errorf("%d claims after %v", n, got)
		}
	}
}

// TestCrosswiseMoves checks that bookings can repeatedly swap their units without a deadlock, and that no two bookings share a
// unit.
func TestCrosswiseMoves(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	var list []booking
	for i := range 6 {
		list = append(list, w.book(ctx, `"starts_at":"2030-05-%02dT12:00:00Z","service_id":"%s","unit_id":"%s"`, i+1, s.tour, []fmt.Stringer{s.ada, s.bee}[i%2]))
	}
	got := atOnce(60, func(i int) response {
		unit := []fmt.Stringer{s.ada, s.bee}[(i/6+i)%2]
		return w.patch(ctx, list[i%6].ID, fmt.Sprintf(`{"unit_id":"%s"}`, unit))
	})
	if got[200] != 60 {
		t.Errorf("responses %v", got)
	}
	// If both units are occupied at the same time, neither booking can move.
	b := w.book(ctx, `"starts_at":"2030-06-01T12:00:00Z","service_id":"%s","unit_id":"%s"`, s.tour, s.ada)
	c := w.book(ctx, `"starts_at":"2030-06-01T12:00:00Z","service_id":"%s","unit_id":"%s"`, s.tour, s.bee)
	got = atOnce(20, func(i int) response {
		if i%2 == 0 {
			return w.patch(ctx, b.ID, fmt.Sprintf(`{"unit_id":"%s"}`, s.bee))
		}
		return w.patch(ctx, c.ID, fmt.Sprintf(`{"unit_id":"%s"}`, s.ada))
	})
	if got[409] != 20 {
		t.Errorf("responses %v", got)
	}
	if n := w.Count(`select count(*) from unit_claims c join bookings b on b.id = c.booking_id and b.unit_id = c.unit_id`); n != 8 {
		t.Errorf("%d claims stand where their bookings do", n)
	}
}

func TestSameKeyAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, customer := w.shop(ctx), w.customer(ctx)
	body := fmt.Sprintf(`{"event_date":"2030-05-01","customer_id":"%s","package_id":"%s","unit_id":"%s"}`, customer, s.flat, s.ada)
	responses := make([]response, 20)
	var all sync.WaitGroup
	for i := range responses {
		all.Go(func() { responses[i] = w.post(ctx, body, "Idempotency-Key: once") })
	}
	all.Wait()
	fresh := 0
	for _, a := range responses {
		if a.is(201); string(a.Body) != string(responses[0].Body) || a.Header.Get("Location") != responses[0].Header.Get("Location") {
			t.Errorf("responses differ:\n%s\n%s", a.Body, responses[0].Body)
		}
		if a.Header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	if n := w.Count(`select count(*) from bookings`); n != 1 || fresh != 1 || w.Types() != "created" {
		t.Errorf("%d rows, %d fresh responses, events %q", n, fresh, w.Types())
	}
}

func TestNumbersAreUnique(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	second := &world{Env: w.Env, clock: w.clock, customers: w.customers, tenants: w.tenants}
	second.engine = second.serve(w.DB.App)
	got := atOnce(60, func(i int) response {
		return []*world{w, second}[i%2].post(ctx, `{"event_date":"2030-05-01"}`)
	})
	if got[201] != 60 || w.Count(`select count(distinct number) from bookings`) != 60 {
		t.Errorf("responses %v", got)
	}
	if b := w.book(pgtest.Ctx(t, caller.Test), `"event_date":"2030-05-01"`); b.Number != "B-000001" {
		t.Errorf("each tenant counts for itself: %s", b.Number)
	}
}
