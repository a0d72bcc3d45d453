package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

// complete runs the completer once, with a clock that is ahead by the given time.
func (w *world) complete(ahead time.Duration) {
	w.T.Helper()
	w.ahead.Store(int64(ahead))
	defer w.ahead.Store(0)
	if err := w.completers.Leads(w.leads)(w.T.Context()); err != nil {
		w.T.Error(err)
	}
}

// TestConversionsThatWereLeft checks that the completer completes a conversion once if the process crashes, or bookings does not
// respond, between any two steps.
func TestConversionsThatWereLeft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after error
		refused       bool // on the retry
	}{
		"before the booking":              {before: apperr.ErrUnavailable},
		"too slow":                        {before: apperr.ErrTimeout},
		"after the booking":               {after: apperr.ErrUnavailable},
		"slow, then a taken slot":         {before: apperr.ErrTimeout, refused: true},
		"the same request still running":  {before: apperr.ErrInProgress},
		"the same key, another body":      {after: apperr.ErrMismatch},
		"an internal error after booking": {after: apperr.ErrInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t), converter(t)
			l := w.lead(ctx, withEmail)
			path := "/leads/" + l.ID
			w.bookings.Before = func(context.Context, string) error { return tc.before }
			w.bookings.After = func(context.Context, string) error { return tc.after }
			w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k").is(503, "unavailable")
			if got := w.do(ctx, "GET", path, "").is(200).lead(); got.Status != "new" || got.Version != 1 {
				t.Errorf("shown: %+v", got)
			}
			w.complete(0)                // the lease has not ended
			w.complete(31 * time.Second) // fails again
			w.complete(40 * time.Second) // the next lease has not ended
			if n := w.Count(`select converting_attempt from leads`); n != 2 {
				t.Errorf("%d attempts", n)
			}
			w.bookings.Before, w.bookings.After = nil, nil
			if tc.refused {
				w.bookings.Before = func(context.Context, string) error { return apperr.New(apperr.Conflict, "slot_unavailable", "Taken.") }
			}
			w.complete(3 * time.Minute)
			w.complete(3 * time.Minute)
			w.settledLeads()
			got := w.do(ctx, "GET", path, "").is(200).lead()
			if tc.refused {
				if got.Status != "new" || got.Version != 1 || w.Count(`select count(*) from customers`) != 0 || w.kinds() != "customer.erased lead.created" {
					t.Errorf("got %+v, events %s", got, w.kinds())
				}
				return
			}
			if got.Status != "converted" || got.Version != 2 || len(w.bookings.Created()) != 1 || *got.BookingID != w.bookings.Created()[0].ID.String() {
				t.Errorf("got %+v", got)
			}
			if n := w.Count(`select count(*) from customers`); n != 1 || w.kinds() != "customer.created lead.created lead.updated" {
				t.Errorf("%d customers, events %s", n, w.kinds())
			}
			again := w.do(ctx, "POST", path+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k").is(200).lead()
			if again.Version != 2 || *again.BookingID != *got.BookingID {
				t.Errorf("called again: %+v", again)
			}
		})
	}
}

// TestALateResponseOfBookings checks that a request whose conversion was taken over by the completer writes nothing itself.
func TestALateResponseOfBookings(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]error{"made": nil, "refused": apperr.New(apperr.Conflict, "slot_unavailable", "Taken.")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWorld(t), converter(t)
			l := w.lead(ctx, withEmail)
			var taken atomic.Bool
			w.bookings.After = func(context.Context, string) error {
				if taken.Swap(true) {
					return nil
				}
				w.complete(31 * time.Second) // another process finishes before this response arrives
				return late
			}
			got := w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, "Idempotency-Key: k").is(200).lead()
			if got.Status != "converted" || got.Version != 2 || w.kinds() != "customer.created lead.created lead.updated" {
				t.Errorf("got %+v, events %s", got, w.kinds())
			}
			w.settledLeads()
		})
	}
}

// TestALateRefusalOfAnEarlierAttempt checks that a late refusal does not end a conversion that another process is still trying.
func TestALateRefusalOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	l := w.lead(ctx, withEmail)
	var taken atomic.Bool
	w.bookings.Before = func(context.Context, string) error {
		if taken.Swap(true) {
			return apperr.ErrTimeout // of the second attempt, whose outcome is unknown
		}
		w.complete(31 * time.Second)
		return apperr.New(apperr.Conflict, "slot_unavailable", "Taken.")
	}
	w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(409, "idempotency_in_progress")
	if n := w.Count(`select count(*) from leads where converting_until is not null and converting_attempt = 2`); n != 1 {
		t.Error("the second attempt is gone")
	}
	w.bookings.Before = nil
	w.complete(3 * time.Minute)
	if got := w.do(ctx, "GET", "/leads/"+l.ID, "").is(200).lead(); got.Status != "converted" {
		t.Errorf("got %+v", got)
	}
	w.settledLeads()
}

// TestConversionsUnderRandomFailures checks that, despite random failures and any number of repeated requests, each lead has one
// customer, one booking and one event in the end.
func TestConversionsUnderRandomFailures(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	var failing atomic.Bool
	failing.Store(true)
	sometimes := func(err error) func(context.Context, string) error {
		return func(context.Context, string) error {
			if failing.Load() && rand.N(3) == 0 {
				return err
			}
			return nil
		}
	}
	w.bookings.Before, w.bookings.After = sometimes(apperr.ErrTimeout), sometimes(apperr.ErrUnavailable)
	const count = 40
	leads := make([]lead, count)
	for i := range leads {
		leads[i] = w.lead(ctx, fmt.Sprintf(`"email":"a%d@example.com"`, i))
	}
	stop := make(chan struct{})
	var completers sync.WaitGroup
	for range 2 {
		completers.Go(func() {
			complete := w.completers.Leads(w.leads)
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.ahead.Add(int64(5 * time.Second)) // leases end early, while requests are still running
				if err := complete(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	atOnce(8, func(worker int) {
		for i, l := range leads {
			if (i+worker)%3 == 0 {
				continue
			}
			w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`, header(fmt.Sprintf("Idempotency-Key: %d", i)))
		}
	})
	failing.Store(false)
	for deadline := time.Now().Add(20 * time.Second); w.Count(`select count(*) from leads where status <> 'converted'`) > 0 && time.Now().Before(deadline); {
		w.ahead.Add(int64(time.Minute))
	}
	close(stop)
	completers.Wait()
	w.settledLeads()
	for name, sql := range map[string]string{
		"leads":     `select count(*) from leads where status = 'converted' and version = 2`,
		"bookings":  `select count(distinct converted_booking_id) from leads`,
		"customers": `select count(*) from customers c where exists (select from leads l where l.customer_id = c.id)`,
		"all":       `select count(*) from customers`,
	} {
		if n := w.Count(sql); n != count {
			t.Errorf("%s: %d of %d", name, n, count)
		}
	}
	want := strings.TrimSpace(strings.Repeat("customer.created ", count) + strings.Repeat("lead.created ", count) + strings.Repeat("lead.updated ", count))
	if created := len(w.bookings.Created()); created != count || w.kinds() != want {
		t.Errorf("%d bookings, events %s", created, w.kinds())
	}
}

// TestTheCompleterServesAllTenants checks that conversions of two tenants in two modes are completed, each in its own tenant and
// mode.
func TestTheCompleterServesAllTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	scopes := []string{"write:customers", "write:bookings"}
	var spaces []context.Context
	for range 2 {
		tenant := ids.New[ids.TenantPrefix]()
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			spaces = append(spaces, withScopes(pgtest.CtxOf(t, tenant, mode), scopes...))
		}
	}
	leads := make([]string, len(spaces))
	for i, ctx := range spaces {
		leads[i] = w.lead(ctx, withEmail).ID
		w.do(ctx, "POST", "/leads/"+leads[i]+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
	}
	w.bookings.Before = nil
	w.complete(31 * time.Second)
	for i, ctx := range spaces {
		l := w.do(ctx, "GET", "/leads/"+leads[i], "").is(200).lead()
		if l.Status != "converted" || len(w.do(ctx, "GET", "/customers", "").is(200).list().Data) != 1 {
			t.Errorf("got %+v", l)
		}
		w.do(ctx, "GET", "/customers/"+*l.CustomerID, "").is(200)
	}
	w.settledLeads()
}

// TestAStuckConversionAmongOthers checks that a conversion that cannot be completed does not block others. It is retried less and
// less often, but never given up.
func TestAStuckConversionAmongOthers(t *testing.T) {
	t.Parallel()
	w, stuck, ctx := newWorld(t), converter(t), converter(t)
	one, other := w.lead(stuck, withEmail), w.lead(ctx, withEmail)
	w.bookings.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.do(stuck, "POST", "/leads/"+one.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
	w.do(ctx, "POST", "/leads/"+other.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
	var tries int
	w.bookings.Before = func(ctx context.Context, _ string) error {
		if caller.FromContext(ctx).Tenant == caller.FromContext(stuck).Tenant {
			tries++
			return apperr.ErrUnavailable
		}
		return nil
	}
	const longest = 10 * time.Minute
	for n := range 40 {
		at := time.Duration(n+1) * (longest + time.Second)
		w.complete(at)
		w.complete(at + min(time.Minute<<min(n, 10), longest) - 20*time.Second) // the lease, which doubles each time, has not ended
		if tries != n+1 {
			t.Fatalf("%d tries in %s, want %d", tries, at, n+1)
		}
	}
	a, b := w.do(stuck, "GET", "/leads/"+one.ID, "").is(200).lead(), w.do(ctx, "GET", "/leads/"+other.ID, "").is(200).lead()
	if a.Status != "new" || b.Status != "converted" {
		t.Errorf("%s and %s", a.Status, b.Status)
	}
}

// TestCompletersAtOnce checks that simultaneous completers make only one attempt.
func TestCompletersAtOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), converter(t)
	l := w.lead(ctx, withEmail)
	w.bookings.After = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.do(ctx, "POST", "/leads/"+l.ID+"/convert", `{"booking":{"event_date":"2030-01-01"}}`).is(503)
	w.bookings.After = nil
	w.ahead.Store(int64(31 * time.Second))
	var all sync.WaitGroup
	for range 8 {
		complete := w.completers.Leads(w.leads)
		all.Go(func() {
			if err := complete(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(w.bookings.Requests()); n != 2 || w.kinds() != "customer.created lead.created lead.updated" {
		t.Errorf("bookings was called %d times, events %s", n, w.kinds())
	}
	w.settledLeads()
}
