package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
)

// meter reads the metrics of what waits for the gateway.
type meter struct {
	*world
	unfinished *app.Unfinished
	registry   *prometheus.Registry
}

func newMeter(w *world) meter {
	registry := prometheus.NewRegistry()
	return meter{w, app.NewUnfinished(w.DB.Worker, w.now, registry), registry}
}

// shows checks the number of what waits, and the age of the oldest one, to half a minute.
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

// Intents of all tenants are counted from their request until the gateway has made or refused them, and no attempt in between
// makes them younger, the first one of a new key included.
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

// A request that repeats one which was refused long ago is as young as its own call.
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

// Events of all tenants are counted from their receipt until they are worked off, also while one of them is tried again.
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
		w.event(account, "whsec_1", w.now(), eventBody(fmt.Sprintf("evt_other_%d", i), "payout.paid", `{"id":"po_1"}`)).is(200) // of no intent
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

// An event of another program that uses the operator's account is given up before it is so old that an alert fires.
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
