package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/obs"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func handle(t *testing.T, h http.HandlerFunc, header http.Header) (lines []map[string]any, reg *prometheus.Registry) {
	t.Helper()
	var out bytes.Buffer
	log, err := obs.NewLogger(&out, "svc", "info")
	if err != nil {
		t.Fatal(err)
	}
	reg = prometheus.NewRegistry()
	req := httptest.NewRequest(http.MethodPost, "/customers/cu_1?email=a@b.c", strings.NewReader(`{"name":"Ann"}`))
	req.Header = header
	func() {
		defer func() { _ = recover() }()
		obs.Handler(log, obs.NewRED(reg, "svc"), h).ServeHTTP(httptest.NewRecorder(), req)
	}()
	for line := range strings.Lines(out.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, l)
	}
	if strings.Contains(out.String(), "a@b.c") || strings.Contains(out.String(), "Ann") {
		t.Errorf("the line shows the query or the body: %s", out.String())
	}
	return lines, reg
}

func TestHandlerWritesOneWideLine(t *testing.T) {
	t.Parallel()
	lines, reg := handle(t, func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		obs.SetRoute(ctx, "/customers/{id}")
		obs.AddCaller(ctx, caller.Caller{Mode: caller.Test, Credential: "key_1", RequestID: "req_1"})
		obs.Since(ctx, "postgres_ms", time.Now().Add(-2*time.Millisecond))
		obs.Since(ctx, "postgres_ms", time.Now().Add(-3*time.Millisecond))
		obs.Count(ctx, "postgres_calls", 1)
		obs.Count(ctx, "postgres_calls", 1)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("12345"))
	}, http.Header{"Traceparent": {parent}})
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	for k, want := range map[string]any{
		"level": "INFO", "msg": "request", "service": "svc", "method": "POST", "route": "/customers/{id}",
		"status": 201.0, "bytes": 5.0, "mode": "test", "credential": "key_1", "request_id": "req_1",
		"postgres_calls": 2.0, "trace_id": "0af7651916cd43dd8448eb211c80319c",
	} {
		if lines[0][k] != want {
			t.Errorf("%s is %v, want %v", k, lines[0][k], want)
		}
	}
	if ms, _ := lines[0]["postgres_ms"].(float64); ms < 5 || ms > 50 {
		t.Errorf("postgres_ms is %v", ms)
	}
	if n := testutil.CollectAndCount(reg, "http_request_duration_seconds"); n != 1 {
		t.Errorf("%d series", n)
	}
}

func TestSampledAndFailedRequestsAreExported(t *testing.T) {
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + string(body)
	}))
	defer collector.Close()
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	stop, err := obs.StartTracing(t.Context(), "svc", collector.URL, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	var inside string
	handle(t, func(_ http.ResponseWriter, r *http.Request) {
		obs.SetRoute(r.Context(), "/customers/{id}")
		inside = obs.Traceparent(r.Context())
	}, http.Header{"Traceparent": {parent}})
	if inside[:36] != parent[:36] || inside == parent || inside[53:] != "01" {
		t.Errorf("inside the span: %s", inside)
	}
	unsampled := http.Header{"Traceparent": {parent[:53] + "00"}}
	for route, status := range map[string]int{"/fine": 200, "/failed": 503, "/missing": 404} {
		handle(t, func(w http.ResponseWriter, r *http.Request) {
			obs.SetRoute(r.Context(), route)
			w.WriteHeader(status)
		}, unsampled)
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := <-got
	if !strings.HasPrefix(b, "/v1/traces") || !strings.Contains(b, "POST /customers/{id}") || !strings.Contains(b, "POST /failed") {
		t.Errorf("exported: %q", b)
	}
	if strings.Contains(b, "/fine") || strings.Contains(b, "/missing") {
		t.Errorf("exported though not sampled: %q", b)
	}
}

func TestHandlerLogsAPanic(t *testing.T) {
	t.Parallel()
	lines, _ := handle(t, func(http.ResponseWriter, *http.Request) { panic("boom") }, http.Header{})
	if len(lines) != 1 || lines[0]["status"] != 500.0 || lines[0]["error"] != "panic: boom" || lines[0]["level"] != "ERROR" {
		t.Errorf("%v", lines)
	}
	if id, _ := lines[0]["trace_id"].(string); len(id) != 32 {
		t.Errorf("no trace id of its own: %q", id)
	}
}

func TestTraceparentTravels(t *testing.T) {
	t.Parallel()
	if got := obs.Traceparent(obs.WithTraceparent(context.Background(), parent)); got != parent {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"", "x", parent[:50], strings.ToUpper(parent)} {
		if got := obs.Traceparent(obs.WithTraceparent(context.Background(), bad)); got != "" {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

func TestNothingHappensWithoutALine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	obs.Add(ctx, slog.String("a", "b"))
	obs.Since(ctx, "ms", time.Now())
	obs.SetRoute(ctx, "/")
	if obs.LineFrom(ctx).Attrs() != nil {
		t.Error("attributes out of nowhere")
	}
}

func TestLoggerRefusesAnUnknownLevel(t *testing.T) {
	t.Parallel()
	if _, err := obs.NewLogger(&bytes.Buffer{}, "svc", "loud"); err == nil {
		t.Error("taken")
	}
}

func BenchmarkHandler(b *testing.B) {
	log := slog.New(slog.NewJSONHandler(discard{}, nil))
	h := obs.Handler(log, obs.NewRED(prometheus.NewRegistry(), "svc"), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		obs.SetRoute(r.Context(), "/customers/{id}")
		obs.AddCaller(r.Context(), caller.Caller{Mode: caller.Test, Credential: "key_1", RequestID: "req_1"})
		obs.Since(r.Context(), "postgres_ms", time.Now())
	}))
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	for b.Loop() {
		h.ServeHTTP(w, req)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
