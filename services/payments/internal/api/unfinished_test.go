package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

// meter reads the metrics of the work that waits for the gateway.
type meter struct {
	*world
	unfinished *app.Unfinished
	registry   *prometheus.Registry
}

func newMeter(w *world) meter {
	registry := prometheus.NewRegistry()
	return meter{w, app.NewUnfinished(w.DB.Worker, w.now, registry), registry}
}

// shows checks the number of waiting items, and the age of the oldest one, to within half a minute.
func (m meter) shows(count, age string, want int, oldest time.Duration) {
	m.T.Helper()
	if err := m.unfinished.Run(m.T.Context()); err != nil {
		m.T.Fatal(err)
	}
	families, err := m.registry.Gather()
	if err != nil {
		m.T.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	if n, ok := values[count]; !ok || n != float64(want) {
		m.T.Errorf("%s is %v, want %d", count, n, want)
	}
	got, ok := values[age]
	if low := oldest.Seconds(); !ok || want == 0 && got != 0 || want > 0 && (got < low || got > low+30) {
		m.T.Errorf("%s is %v, want %v", age, got, low)
	}
}

// intents checks payment_intents_creating and its age.
func (m meter) intents(want int, oldest time.Duration) {
	m.T.Helper()
	m.shows("payment_intents_creating", "payment_intents_creating_oldest_seconds", want, oldest)
}

// events checks gateway_events_waiting and its age.
func (m meter) events(want int, oldest time.Duration) {
	m.T.Helper()
	m.shows("gateway_events_waiting", "gateway_events_oldest_seconds", want, oldest)
}

func (w *world) complete() {
	w.T.Helper()
	if err := w.completer.Run(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

// TestUnfinishedIntentsAreCounted checks that intents of all tenants are counted from their request until the gateway has created
// or refused them. No attempt in between, including the first one with a new key, changes their age.
func TestUnfinishedIntentsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, one, other := newMeter(w), w.tenant(), w.tenant()
	m.intents(0, 0)
	w.post(one, w.booked(one, 10), key("small")).is(422, "invalid_request", "amount_minor")
	w.post(one, w.booked(one, 100), key("made")).is(201)
	m.intents(0, 0)
	w.gateway.Before = func(context.Context, string) error { m.intents(1, 0); return errLost }
	w.post(one, w.booked(one, 100), key("a")).is(502, "payment_intent_failed")
	w.gateway.Before = func(context.Context, string) error { return errLost }
	w.ahead.Add(int64(2 * time.Minute))
	w.post(other, w.booked(other, 100), key("b")).is(502, "payment_intent_failed")
	m.intents(2, 2*time.Minute)
	w.ahead.Add(int64(3 * time.Minute))
	w.complete()
	m.intents(2, 5*time.Minute)
	w.ahead.Add(int64(24 * time.Hour)) // the gateway has forgotten the attempts, and new ones begin
	w.gateway.Forget()
	w.gateway.Before = func(_ context.Context, call string) error {
		if call == "find" {
			return nil
		}
		return errLost
	}
	w.complete()
	m.intents(2, 24*time.Hour+5*time.Minute)
	w.gateway.Before = nil
	w.ahead.Add(int64(time.Minute))
	w.complete()
	m.intents(0, 0)
}

// TestRepeatedAfterARefusalIsYoung checks that the age of a request that repeats one refused long ago is that of its own call.
func TestRepeatedAfterARefusalIsYoung(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := newMeter(w), w.tenant()
	body := w.booked(ctx, 100)
	w.gateway.Before = func(context.Context, string) error {
		return &domain.RefusedError{Failure: domain.Failure{Code: "account_invalid", Message: "No."}}
	}
	w.post(ctx, body, key("k")).is(502, "payment_intent_failed")
	w.ahead.Add(int64(time.Hour))
	w.gateway.Before = func(context.Context, string) error { return errLost }
	w.post(ctx, body, key("k")).is(502, "payment_intent_failed")
	m.intents(1, 0)
}

// TestUnfinishedEventsAreCounted checks that events of all tenants are counted from receipt until they are processed, including
// while one of them is retried.
func TestUnfinishedEventsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newMeter(w)
	for i := range 2 {
		ctx := pgtest.Ctx(t, caller.Test)
		account := w.connect(ctx).ID.String()
		p := w.post(ctx, w.booked(ctx, 100)).is(201).intent()
		body := eventBody(fmt.Sprintf("evt_%d", i), "payment_intent.processing", fmt.Sprintf(`{"id":%q}`, p.ID))
		w.event(account, "whsec_1", w.now(), body).is(200)
		w.event(account, "whsec_1", w.now(), eventBody(fmt.Sprintf("evt_other_%d", i), "payout.paid", `{"id":"po_1"}`)).is(200) // about no intent
		if i == 0 {
			w.ahead.Add(int64(time.Minute))
		}
	}
	m.events(2, time.Minute)
	w.gateway.Before = func(_ context.Context, call string) error {
		m.events(2, time.Minute)
		return apperr.ErrUnavailable
	}
	w.work()
	m.events(2, time.Minute)
	w.gateway.Before = func(context.Context, string) error { return apperr.ErrUnavailable }
	w.ahead.Add(int64(time.Hour))
	w.work()
	m.events(2, time.Hour+time.Minute)
	w.gateway.Before = nil
	w.ahead.Add(int64(time.Hour))
	w.work()
	m.events(0, 0)
}

// TestForeignEventsRaiseNoAlert checks that an event of another program that uses the operator's account is given up before it is
// old enough to trigger an alert.
func TestForeignEventsRaiseNoAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := newMeter(w), pgtest.Ctx(t, caller.Test)
	account := w.connect(ctx).ID.String()
	w.event(account, "whsec_1", w.now(), eventBody("evt_1", "payment_intent.succeeded", `{"id":"pi_foreign"}`)).is(200)
	begin := w.now()
	for w.now().Sub(begin) < 280*time.Second {
		w.work()
		w.ahead.Add(int64(2 * time.Second))
	}
	m.events(0, 0)
}

// TestUnfinishedWorkIsCounted checks that refunds with an unknown outcome and waiting lost bookings are counted by kind, with the
// age of the oldest one.
func TestUnfinishedWorkIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := newMeter(w), w.tenant()
	check := func(want string) {
		t.Helper()
		if err := m.unfinished.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				if strings.HasPrefix(f.GetName(), "payment_work") {
					v := one.GetGauge().GetValue()
					if f.GetName() == "payment_work_oldest_seconds" {
						v = float64(int(v) / 60) // minutes
					}
					got[one.GetLabel()[0].GetValue()] = fmt.Sprint(got[one.GetLabel()[0].GetValue()], v, " ")
				}
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	check("map[cancellation:0 0  owed:0 0  refund:0 0  settlement:0 0 ]")
	paid, open := w.bookings.Add(ctx, "pending", 1000, 1000, "USD"), w.bookings.Add(ctx, "pending", 100, 100, "USD")
	p := w.paidOf(ctx, paid, 1000)
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q}`, open.ID)).is(201)
	w.gateway.After = func(context.Context, string) error { return errLost }
	w.refund(ctx, refundOf(p, `,"amount_minor":400`), key("k")).is(502)
	for _, b := range []domain.Booking{paid, open} {
		gone := message(ctx, t, "bookings", "booking.updated", b.ID.String(), 50, `{"status":"cancelled","customer_id":null}`)
		if err := w.topicHandlers.Handle(ctx, gone); err != nil {
			t.Fatal(err)
		}
	}
	w.ahead.Add(int64(10*time.Minute + time.Second))
	check("map[cancellation:1 10  owed:0 0  refund:1 10  settlement:1 10 ]")
}

// TestRefusedKeysAreGivenUp checks that an intent whose account refuses its keys is retried for three days. Then it is refused, and
// no alert remains.
func TestRefusedKeysAreGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, ctx := newMeter(w), pgtest.Ctx(t, caller.Test)
	w.connect(ctx)
	w.gateway.Before = func(context.Context, string) error { return errLost }
	w.post(ctx, w.booked(ctx, 100), key("k")).is(502, "payment_intent_failed")
	w.gateway.Before = func(context.Context, string) error {
		return &domain.RefusedError{Failure: domain.Failure{Code: "account_refused"}, Unread: true}
	}
	for range 71 {
		w.complete()
		w.ahead.Add(int64(time.Hour))
	}
	m.intents(1, 71*time.Hour)
	w.ahead.Add(int64(2 * time.Hour))
	w.complete()
	m.intents(0, 0)
	if n := w.Count(`select count(*) from payment_intents where status = 'refused'`); n != 1 {
		t.Errorf("%d intents are refused", n)
	}
}

// TestRefusedRowsAreDeleted checks that intents and refunds that the gateway has refused are deleted after a week, together with
// their dependent rows. All others stay.
func TestRefusedRowsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.tenant()
	b := w.bookings.Add(ctx, "pending", 1000, 1000, "USD")
	p := w.paidOf(ctx, b, 500)
	w.gateway.Before = func(context.Context, string) error {
		return &domain.RefusedError{Failure: domain.Failure{Code: "no", Message: "No."}}
	}
	w.post(ctx, fmt.Sprintf(`{"booking_id":%q,"amount_minor":100,"metadata":{"a":"b"}}`, b.ID)).is(502)
	w.refund(ctx, refundOf(p, `,"metadata":{"a":"b"}`), key("k")).is(502)
	w.gateway.Before = nil
	w.refund(ctx, refundOf(p, `,"metadata":{"c":"d"}`), key("l")).is(201)
	rows := func() string {
		t.Helper()
		out := ""
		for _, table := range []string{"payment_intents", "payment_intent_metadata", "refunds", "refund_metadata", "refund_allocations"} {
			out += fmt.Sprint(w.Count(`select count(*) from `+table), " ")
		}
		return out
	}
	sweep := func() {
		t.Helper()
		if err := (&app.Sweeper{Worker: w.DB.Worker, Now: w.now}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.ahead.Add(int64(6 * 24 * time.Hour))
	sweep()
	if got := rows(); got != "2 1 2 2 2 " {
		t.Errorf("after six days: %s", got)
	}
	w.ahead.Add(int64(25 * time.Hour))
	sweep()
	if got := rows(); got != "1 0 1 1 1 " {
		t.Errorf("after a week: %s", got)
	}
}
