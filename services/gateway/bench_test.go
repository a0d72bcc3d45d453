package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/obs"
)

// BenchmarkHandler measures a read through the gateway with its log line and metrics, on a real Redis, to a service in the same
// process that does nothing. The figures include the service's share.
func BenchmarkHandler(b *testing.B) {
	w := newWorld(b)
	idle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, customerBody("cu_00000000000000000000000000"))
	}))
	defer idle.Close()
	g := w.start(b, at("customers", idle.URL), func(c *Config) { c.RateLimit = 1 << 40 })
	key := w.identity.newKey()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	handler := obs.Handler(log, obs.NewRED(prometheus.NewRegistry(), "gateway"), g.server.Handler())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest(http.MethodGet, oneCu, nil)
			r.Header.Set("Authorization", "Bearer "+key)
			rec := httptest.NewRecorder()
			if handler.ServeHTTP(rec, r); rec.Code != http.StatusOK {
				b.Error(rec.Code, rec.Body)
				return
			}
		}
	})
}
