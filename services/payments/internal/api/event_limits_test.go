package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// TestEventsAreGivenUp checks an event of an account whose keys the gateway refuses, or whose reads fail for days. The event is
// retried less and less often, and given up and counted after three days.
func TestEventsAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err        error
		first, day int // maximum and minimum number of reads on the first day
	}{
		"refused keys": {&domain.RefusedError{Failure: domain.Failure{Code: "account_refused"}, Unread: true}, 40, 30},
		"an outage":    {errLost, 310, 280},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ctx := pgtest.Ctx(t, caller.Test)
			account := w.connect(ctx).ID.String()
			p := w.post(ctx, w.booked(ctx, 1000)).is(201).intent()
			reads := 0
			w.gateway.Before = func(_ context.Context, call string) error {
				if call == "read" {
					reads++
				}
				return c.err
			}
			w.event(account, "whsec_1", time.Now(), eventBody("evt_1", "payment_intent.succeeded", fmt.Sprintf(`{"id":%q}`, p.ID))).is(200)
			const step = 150 * time.Second
			run := func(until time.Duration) {
				for time.Duration(w.ahead.Load()) < until {
					w.work()
					w.ahead.Add(int64(step))
				}
			}
			run(24 * time.Hour)
			if reads > c.first || reads < c.day {
				t.Errorf("%d reads on the first day", reads)
			}
			first := reads
			run(71 * time.Hour)
			if later := reads - first; later < 47 || later > 63 {
				t.Errorf("%d reads later", later)
			}
			if n := w.Count(`select count(*) from gateway_events where due_at is not null`); n != 1 {
				t.Errorf("%d events are due", n)
			}
			run(74 * time.Hour)
			if n := w.Count(`select count(*) from gateway_events where due_at is not null`); n != 0 {
				t.Errorf("%d events are due", n)
			}
			want := "# HELP gateway_events_given_up_total Payment gateway events that were not processed within three days.\n" +
				"# TYPE gateway_events_given_up_total counter\ngateway_events_given_up_total 1\n"
			if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(want), "gateway_events_given_up_total"); err != nil {
				t.Error(err)
			}
			if n, sum := w.settlements(); n != 1 || sum < 71*3600 {
				t.Errorf("%d settlements, %v s", n, sum)
			}
		})
	}
}

// TestOldEventsAreDeleted checks that processed events are retained for 30 days, however many there are. Due events stay.
func TestOldEventsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx)
	put := func(id string, age time.Duration, due bool) {
		e := domain.Event{AccountID: account.ID, ID: id, Type: "x"}
		if due {
			e.Intent = "pi_1"
		}
		if err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.PutEvent(ctx, tx, e, w.now().Add(-age)) }); err != nil {
			t.Fatal(err)
		}
	}
	const day = 24 * time.Hour
	put("evt_old", 31*day, false)
	put("evt_due", 31*day, true)
	put("evt_new", 29*day, false)
	w.Exec(fmt.Sprintf(`insert into gateway_events (tenant_id, livemode, account_id, id, type, received_at)
		select tenant_id, livemode, account_id, 'evt_' || n, 'x', now() - interval '40 days' from gateway_events, generate_series(1, %d) n
		where id = 'evt_old'`, 2500))
	if err := (&app.Sweeper{Worker: w.DB.Worker, Now: w.now}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(`select count(*) from gateway_events`); n != 2 {
		t.Errorf("%d events", n)
	}
	if n := w.Count(`select count(*) from gateway_events where id in ('evt_due', 'evt_new')`); n != 2 {
		t.Errorf("%d of the events that stay", n)
	}
}

// settlements returns the number and the sum of payment_settlement_seconds.
func (w *world) settlements() (n uint64, seconds float64) {
	w.T.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.T.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "payment_settlement_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	w.T.Fatal("there is no payment_settlement_seconds")
	return 0, 0
}

// TestSettlementTime checks that an event counts once, with the time from its receipt until it is processed.
func TestSettlementTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	p := w.post(ctx, w.booked(ctx, 1000)).is(201).intent()
	body := eventBody("evt_1", "payment_intent.succeeded", fmt.Sprintf(`{"id":%q}`, p.ID))
	for range 2 {
		w.event(account, "whsec_1", time.Now(), body).is(200)
	}
	if n, _ := w.settlements(); n != 0 {
		t.Errorf("%d settlements before the work", n)
	}
	w.ahead.Store(int64(40 * time.Second))
	w.work()
	w.work()
	if n, sum := w.settlements(); n != 1 || sum < 40 || sum > 55 {
		t.Errorf("%d settlements, %v s", n, sum)
	}
}
