package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"

	"holdfast.dev/services/gateway/internal/domain"
)

// BenchmarkAdd measures one entry of a write with its share of a batch, without Kafka.
func BenchmarkAdd(b *testing.B) {
	m := NewMetrics(prometheus.NewRegistry())
	l := NewRequestLogs(accepts{}, 0, slog.New(slog.DiscardHandler), m)
	tenants := make([]*caller.Caller, 1000)
	for i := range tenants {
		tenants[i] = &caller.Caller{Tenant: ids.New[ids.TenantPrefix](), Mode: caller.Live, Credential: "key_01k00000000000000000000001", Kind: "api_key"}
	}
	entry := domain.RequestLog{
		ID: ids.New[ids.RequestPrefix]().String(), Status: 201, Method: "POST", Route: "/bookings", Path: "/bookings", Created: "bk_01k00000000000000000000001",
		Address: "203.0.113.77", UserAgent: "holdfast-go/1.0.0", IdempotencyKey: "7f1c6b0e-3f0a-4b52-9d4e-2f1a8c5d6e70",
	}
	b.ReportAllocs()
	added := 0
	for b.Loop() {
		entry.Caller = tenants[added%len(tenants)]
		l.Add(&entry)
		if added++; added%len(tenants) == 0 {
			for i := range l.shards {
				l.shards[i].counted = time.Time{} // each batch is of another second
			}
			l.write(b.Context(), time.Minute)
		}
	}
	l.write(b.Context(), time.Minute)
	if sent := testutil.ToFloat64(m.RequestLogs.WithLabelValues("sent")); sent != float64(added) {
		b.Errorf("%g of %d entries were sent", sent, added)
	}
}

// accepts is a producer that has stored each message at once.
type accepts struct{}

// Produce implements kafkax.Producer.
func (accepts) Produce(context.Context, ...kafkax.Message) error { return nil }
