package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// Metrics contains the counters for operators. A nil Metrics counts nothing.
type Metrics struct {
	opened   prometheus.Counter
	closed   *prometheus.CounterVec
	givenUp  prometheus.Counter
	differed *prometheus.CounterVec
	late     prometheus.Counter
	settled  prometheus.Histogram
}

// NewMetrics creates the metrics and registers them. Each series begins at 0, so that its first increase is visible.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		opened: prometheus.NewCounter(prometheus.CounterOpts{Name: "payment_disputes_opened_total", Help: "Disputes opened by payers."}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "payment_disputes_closed_total", Help: "Closed disputes, by outcome: won, lost or withdrawn.",
		}, []string{"outcome"}),
		givenUp: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_events_given_up_total", Help: "Payment gateway events that were not processed within three days.",
		}),
		differed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "payment_reconciler_differences_total", Help: "Differences between the payment gateway and this platform found by the reconciler, by kind.",
		}, []string{"kind"}),
		late: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "payment_late_total", Help: "Card payments that arrived after their booking was cancelled or had expired.",
		}),
		settled: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "payment_settlement_seconds", Help: "Time from the receipt of a payment gateway event to the commit of what it changes, or until it is given up.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600},
		}),
	}
	for _, outcome := range domain.DisputeOutcomes {
		m.closed.WithLabelValues(outcome)
	}
	for _, kind := range domain.DifferenceKinds {
		m.differed.WithLabelValues(string(kind))
	}
	reg.MustRegister(m.opened, m.closed, m.givenUp, m.differed, m.late, m.settled)
	return m
}

func (m *Metrics) disputeOpened() {
	if m != nil {
		m.opened.Inc()
	}
}

func (m *Metrics) disputeClosed(outcome string) {
	if m != nil {
		m.closed.WithLabelValues(outcome).Inc()
	}
}

func (m *Metrics) eventGivenUp() {
	if m != nil {
		m.givenUp.Inc()
	}
}

func (m *Metrics) difference(kind domain.DifferenceKind) {
	if m != nil {
		m.differed.WithLabelValues(string(kind)).Inc()
	}
}

func (m *Metrics) paymentLate() {
	if m != nil {
		m.late.Inc()
	}
}

// settle observes the events about one intent that are processed or given up.
func (m *Metrics) settle(events []domain.Event, now time.Time) {
	if m == nil {
		return
	}
	for _, e := range events {
		if e.DueAt == nil && !e.Dropped {
			m.settled.Observe(max(0, now.Sub(e.ReceivedAt).Seconds()))
		}
	}
}

// Unfinished measures how many calls and events wait for the gateway and for how long, so that alerts can use the numbers.
type Unfinished struct {
	operation.Meter

	silent *prometheus.GaugeVec
}

// NewUnfinished creates the metrics and registers them.
func NewUnfinished(worker *pg.DB, now func() time.Time, reg prometheus.Registerer) *Unfinished {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		reg.MustRegister(g)
		return g
	}
	silent := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "payment_accounts_without_events", Help: "Connected payment gateway accounts whose events do not arrive, by state (missing: no signing secret, late) and mode.",
	}, []string{"state", "mode"})
	reg.MustRegister(silent)
	work := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "payment_work", Help: "Refunds with an unknown outcome, and cancelled or expired bookings with intents to cancel, payments to settle or refunds to create, by kind.",
	}, []string{"kind"})
	oldest := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "payment_work_oldest_seconds", Help: "Age of the oldest item of payment_work, by kind; 0 when there is none.",
	}, []string{"kind"})
	owed := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "payment_refunds_owed", Help: "Refunds owed under booking policies that could not be created, by reason: failed, or nothing_left to refund by card.",
	}, []string{"reason"})
	owedFor := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "payment_refunds_owed_oldest_seconds", Help: "Time since the first failure of the oldest item of payment_refunds_owed, by reason; 0 when there is none.",
	}, []string{"reason"})
	reg.MustRegister(work, oldest, owed, owedFor)
	of := func(kind string, measure operation.Measure) operation.Backlog {
		return operation.Labelled(work, oldest, kind, measure)
	}
	return &Unfinished{silent: silent, Meter: operation.Meter{Worker: worker, Now: now, Backlogs: []operation.Backlog{
		{
			Count:   gauge("payment_intents_creating", "Payment intents whose call to the payment gateway is in progress or has an unknown outcome."),
			Age:     gauge("payment_intents_creating_oldest_seconds", "Age of the oldest item of payment_intents_creating since its first call; 0 when there is none."),
			Measure: store.UnfinishedIntents,
		},
		{
			Count:   gauge("gateway_events_waiting", "Payment gateway events that have not been processed."),
			Age:     gauge("gateway_events_oldest_seconds", "Age of the oldest item of gateway_events_waiting since it was received; 0 when there is none."),
			Measure: store.UnfinishedEvents,
		},
		{
			Count:   gauge("payment_reconciler_accounts", "Payment gateway accounts that the reconciler compares."),
			Age:     gauge("payment_reconciler_oldest_seconds", "Longest time since the last completed comparison of an account; 0 when there is none."),
			Measure: store.OldestReconciliation,
		},
		of("refund", store.UnfinishedRefunds), of("cancellation", store.UnfinishedCancellations), of("settlement", store.UnfinishedSettlements), of("owed", store.OwedNew),
		operation.Labelled(owed, owedFor, "failed", store.OwedFailed), operation.Labelled(owed, owedFor, "nothing_left", store.OwedWithoutPayment),
	}}}
}

// Run counts them once.
func (a *Unfinished) Run(ctx context.Context) error {
	return a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := a.Measure(ctx, tx); err != nil {
			return err
		}
		silent, err := store.SilentAccounts(ctx, tx)
		for _, s := range silent {
			a.silent.WithLabelValues(string(s.Events), string(caller.ModeOf(s.Livemode))).Set(float64(s.Count))
		}
		return err
	})
}
