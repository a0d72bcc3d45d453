package app

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of the intake.
type Metrics struct {
	entries *prometheus.CounterVec
	counts  *prometheus.CounterVec
	behind  prometheus.Gauge
}

// NewMetrics creates the metrics and registers them unless reg is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		entries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "request_log_entries_total",
			Help: "Entries of the request log, by result: stored, repeated, out_of_range, or deleted because the tenant has too many.",
		}, []string{"result"}),
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "request_counts_total",
			Help: "Requests that gateways counted for metering, by result: added, repeated or out_of_range.",
		}, []string{"result"}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "request_log_partitions_overdue", Help: "Days of the request log that are past their retention and could not be dropped yet.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.entries, m.counts, m.behind)
	}
	return m
}
