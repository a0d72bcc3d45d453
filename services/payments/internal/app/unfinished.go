package app

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/store"
)

// Unfinished measures how many intents and events wait for the gateway and since when, so that an alert can tell.
type Unfinished struct {
	Worker *pg.DB // worker role: counts them
	Now    func() time.Time

	intents, events waiting
}

// waiting are the metrics of one kind of work.
type waiting struct {
	count, age prometheus.Gauge
	measure    func(ctx context.Context, tx pg.Tx, real time.Time) (store.Unfinished, error)
}

// NewUnfinished makes the metrics and registers them.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *Unfinished {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		reg.MustRegister(g)
		return g
	}
	return &Unfinished{
		Worker: worker, Now: now,
		intents: waiting{
			count:   gauge("payment_intents_creating", "Payment intents whose call to the gateway is under way, or has an unknown outcome."),
			age:     gauge("payment_intents_creating_oldest_seconds", "Age of the oldest of payment_intents_creating, from its first request; 0 when there is none."),
			measure: store.UnfinishedIntents,
		},
		events: waiting{
			count:   gauge("gateway_events_waiting", "Events of the gateway that are not worked off."),
			age:     gauge("gateway_events_oldest_seconds", "Age of the oldest of gateway_events_waiting, from its receipt; 0 when there is none."),
			measure: store.UnfinishedEvents,
		},
	}
}

// Run counts them once.
func (a *Unfinished) Run(ctx context.Context) error {
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		for _, w := range []waiting{a.intents, a.events} {
			left, err := w.measure(ctx, tx, a.Now())
			if err != nil {
				return fmt.Errorf("count what waits for the gateway: %w", err)
			}
			w.count.Set(float64(left.Count))
			w.age.Set(left.Age)
		}
		return nil
	})
}
