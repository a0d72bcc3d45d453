package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
)

// The results of an attempt.
const (
	attemptOK         = "ok"
	attemptRefused    = "refused"
	attemptUnanswered = "unanswered"
)

// Metrics are the metrics of deliveries.
type Metrics struct {
	attempts *prometheus.CounterVec
	latency  prometheus.Histogram
	took     prometheus.Histogram
	claims   prometheus.Histogram
	unsigned prometheus.Counter
}

// NewMetrics creates the metrics and registers them unless reg is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "webhook_attempts_total", Help: "Delivery attempts, by result: ok (2xx), refused (another status) or unanswered.",
		}, []string{"result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "webhook_first_attempt_seconds", Help: "Time from a change to the first delivery attempt of its event.",
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "webhook_attempt_seconds", Help: "Time from the start of an attempt to the response.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		claims: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "webhook_claim_seconds", Help: "Duration of transactions that claim deliveries.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
		unsigned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "webhook_unsigned_total", Help: "Deliveries that are waiting because the service has no encryption key for the endpoint's secrets.",
		}),
	}
	for _, result := range []string{attemptOK, attemptRefused, attemptUnanswered} {
		m.attempts.WithLabelValues(result) // at 0, so that an alert sees the first attempt
	}
	if reg != nil {
		reg.MustRegister(m.attempts, m.latency, m.took, m.claims, m.unsigned)
	}
	return m
}

// first observes the latency of a first attempt.
func (m *Metrics) first(c store.Claim, now time.Time) {
	if c.First {
		m.latency.Observe(now.Sub(c.EventID.Time()).Seconds())
	}
}

// count counts an attempt by its result.
func (m *Metrics) count(a domain.Response) {
	result := attemptRefused
	switch {
	case a.OK():
		result = attemptOK
	case a.Status == 0:
		result = attemptUnanswered
	}
	m.attempts.WithLabelValues(result).Inc()
	m.took.Observe(a.Took.Seconds())
}
