package pg

import "github.com/prometheus/client_golang/prometheus"

// poolMetrics reports the use of a pool at the moment when the metrics are read.
type poolMetrics struct {
	db *DB

	connections, limit, waiting, waits, waitSeconds, canceled *prometheus.Desc
}

// newPoolMetrics returns the metrics of a pool. The label pool is the role of its connections: app or worker.
func newPoolMetrics(db *DB, opt Options) *poolMetrics {
	role := prometheus.Labels{"pool": "app"}
	if opt.Background {
		role["pool"] = "worker"
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, role)
	}
	return &poolMetrics{
		db:          db,
		connections: desc("postgres_pool_connections", "Connections to PostgreSQL by state: acquired, idle, or constructing.", "state"),
		limit:       desc("postgres_pool_max_connections", "Maximum number of connections of the pool."),
		waiting:     desc("postgres_pool_waiting", "Requests and background tasks that are waiting for a connection."),
		waits:       desc("postgres_pool_waits_total", "Acquired connections for which the pool had no idle one, so that a request waited for a release or a new connection."),
		waitSeconds: desc("postgres_pool_wait_seconds_total", "Total time of these waits."),
		canceled:    desc("postgres_pool_canceled_total", "Attempts to acquire a connection that ended without one, because the time limit passed or the client left."),
	}
}

// Describe implements prometheus.Collector.
func (m *poolMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connections, m.limit, m.waiting, m.waits, m.waitSeconds, m.canceled} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *poolMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.db.pool.Stat()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge(m.connections, float64(s.AcquiredConns()), "acquired")
	gauge(m.connections, float64(s.IdleConns()), "idle")
	gauge(m.connections, float64(s.ConstructingConns()), "constructing")
	gauge(m.limit, float64(s.MaxConns()))
	gauge(m.waiting, float64(m.db.waiting.Load()))
	counter(m.waits, float64(s.EmptyAcquireCount()))
	counter(m.waitSeconds, s.EmptyAcquireWaitTime().Seconds())
	counter(m.canceled, float64(s.CanceledAcquireCount()))
}
