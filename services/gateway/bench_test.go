package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/app"
)

// BenchmarkHandler measures a read through the gateway with its log line and metrics, on a real Redis, to a service in the same
// process that does nothing. The figures include the service's share. It runs without an entry in the request log, with one for each
// hundredth read, and with one for each.
func BenchmarkHandler(b *testing.B) {
	w := newWorld(b)
	idle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, customerBody("cu_00000000000000000000000000"))
	}))
	defer idle.Close()
	for name, reads := range map[string]float64{"not logged": 0, "sampled": 0.01, "logged": 1} {
		b.Run(name, func(b *testing.B) {
			g := w.start(b, at("customers", idle.URL), func(c *Config) { c.RateLimit = 1 << 40 })
			logs := app.NewRequestLogs(discard{}, reads, slog.New(slog.DiscardHandler), g.server.Pipeline.Metrics)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			go func() { _ = logs.Run(ctx) }()
			g.server.Pipeline.Requests = logs
			key := w.identity.newKey()
			log := slog.New(slog.NewJSONHandler(io.Discard, nil))
			handler := obs.Handler(log, obs.NewRED(prometheus.NewRegistry(), "gateway"), g.server.Handler())
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := httptest.NewRequest(http.MethodGet, oneCu, nil)
					r.Header.Set("Authorization", "Bearer "+key)
					r.Header.Set("User-Agent", "holdfast-go/1.0.0")
					rec := httptest.NewRecorder()
					if handler.ServeHTTP(rec, r); rec.Code != http.StatusOK {
						b.Error(rec.Code, rec.Body)
						return
					}
				}
			})
		})
	}
}

// discard is a producer that has stored each message at once.
type discard struct{}

// Produce implements kafkax.Producer.
func (discard) Produce(context.Context, ...kafkax.Message) error { return nil }
