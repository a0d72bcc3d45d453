package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/services/gateway/internal/domain"
)

// Metrics are the metrics of the caches and the limiter. No label contains a tenant or a key.
type Metrics struct {
	Fallback   prometheus.Counter     // requests that were counted in this process only
	Principals *prometheus.CounterVec // lookups by result: hit, miss, unknown, refused, reread, full
	Replays    *prometheus.CounterVec // writes with a key by result: hit, miss, mismatch
	Dropped    prometheus.Counter     // responses that were not cached
	RedisDown  prometheus.Gauge       // 1 while Redis is down
	Limited    prometheus.Counter     // 429
	Tenants    prometheus.Counter     // 429 because of the limit of a tenant; also in Limited
	Apps       prometheus.Counter     // 429 because of the limit of the apps of a tenant; also in Limited
	Unchecked  prometheus.Counter     // 429 without asking Redis; also in Limited
	Streams    prometheus.Gauge       // open streams
	Assistants prometheus.Gauge       // messages of assistants in progress
	BodyBytes  prometheus.Gauge       // bytes of bodies in memory
	Breaker    *prometheus.GaugeVec   // state of the circuit breaker by upstream: 0 closed, 1 half open, 2 open

	RequestLogs   *prometheus.CounterVec // entries of the request log by result: sent; full, tenant and failed were dropped
	RequestCounts *prometheus.CounterVec // requests by what became of their count: sent; full and lost are not counted
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		Fallback: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_limiter_fallback_total", Help: "Requests limited in this process because Redis was down.",
		}),
		Principals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_principal_lookups_total", Help: "Credential lookups, by result in the local cache.",
		}, []string{"result"}),
		Replays: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_idempotency_lookups_total", Help: "Writes with an Idempotency-Key, by result in Redis.",
		}, []string{"result"}),
		Dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_idempotency_dropped_total", Help: "Completed responses that were not cached in Redis.",
		}),
		RedisDown: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_redis_away", Help: "1 while Redis is marked as down.",
		}),
		Limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_rate_limited_total", Help: "Requests rejected with 429.",
		}),
		Tenants: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_tenant_rate_limited_total", Help: "Requests rejected with 429 because of the limit of their tenant.",
		}),
		Apps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_apps_rate_limited_total", Help: "Requests rejected with 429 because of the limit of the apps (OAuth grants) of their tenant.",
		}),
		Unchecked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_rate_limited_without_redis_total", Help: "Requests rejected with 429 without asking Redis, because their window was known to be full.",
		}),
		Streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_streams_open", Help: "Open streams.",
		}),
		Assistants: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_mcp_messages", Help: "Messages of assistants (MCP) in progress.",
		}),
		BodyBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_body_bytes", Help: "Bytes of the bodies of requests in progress.",
		}),
		Breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gateway_breaker_state", Help: "Circuit breaker by upstream: 0 closed, 1 half open, 2 open.",
		}, []string{"upstream"}),
		RequestLogs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_request_log_entries_total",
			Help: "Entries of the request log, by result: sent, or dropped because of too many entries (full), too many of one tenant (tenant) or Kafka (failed).",
		}, []string{"result"}),
		RequestCounts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_request_counts_total", Help: "Requests counted for metering, by result: sent, or not counted because of too many tenants (full) or of a stop while Kafka was down (lost).",
		}, []string{"result"}),
	}
	reg.MustRegister(m.Fallback, m.Principals, m.Replays, m.Dropped, m.RedisDown, m.Limited, m.Tenants, m.Apps, m.Unchecked, m.Streams, m.Assistants, m.BodyBytes, m.Breaker, m.RequestLogs, m.RequestCounts)
	return m
}

// CountTenantLimit counts a rejection because of a limit of a tenant, by its name.
func (m *Metrics) CountTenantLimit(name string) {
	if name == domain.LimitApps {
		m.Apps.Inc()
		return
	}
	m.Tenants.Inc()
}
