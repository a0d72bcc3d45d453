package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
)

// collector is an OTLP receiver that keeps what it gets.
type collector struct {
	*httptest.Server
	mu  sync.Mutex
	got []byte
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path == "/v1/traces" {
			c.got = append(c.got, body...)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// has reports whether a span of the trace with the hexadecimal id was exported.
func (c *collector) has(t *testing.T, traceID string) bool {
	t.Helper()
	id, err := hex.DecodeString(traceID)
	if err != nil || len(id) != 16 {
		t.Fatalf("the trace %q: %v", traceID, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.got, id)
}

// TestTracesOfClients checks that a client's traceparent neither joins nor samples a trace, unless the platform allows it.
func TestTracesOfClients(t *testing.T) {
	const clientTrace = "0af7651916cd43dd8448eb211c80319c"
	sampled, unsampled := "00-"+clientTrace+"-b7ad6b7169203331-01", "00-"+clientTrace+"-b7ad6b7169203331-00"
	for name, c := range map[string]struct {
		allowed             bool
		ratio, traceparent  string
		continues, exported bool
	}{
		"default: the client cannot force sampling":   {false, "0", sampled, false, false},
		"default: the client cannot prevent sampling": {false, "1", unsampled, false, true},
		"no traceparent":                         {true, "1", "", false, true},
		"an invalid one":                         {true, "0", "00-" + clientTrace + "-0000000000000000-01", false, false},
		"allowed: the client's sampling applies": {true, "0", sampled, true, true},
		"allowed: the client does not sample":    {true, "1", unsampled, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := otel.GetTracerProvider()
			defer otel.SetTracerProvider(before)
			w, traces := newWorld(t), newCollector(t)
			if c.allowed { // otherwise the default applies
				w.cfg.ContinueTraces = true
			}
			g := &gateway{world: w, url: "http://" + w.process(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": traces.URL, "OTEL_BSP_SCHEDULE_DELAY": "10", "TRACE_SAMPLE_RATIO": c.ratio,
			})}
			key := bearer(w.identity.newKey())
			want(t, g.send(t, "GET", oneCu, "", key, header("Traceparent", c.traceparent), header("Tracestate", "vendor=1")), 200, "")
			got := w.service.last.Header
			tp := got.Get("Traceparent")
			if len(tp) != 55 || strings.Contains(tp, clientTrace) != c.continues || strings.HasSuffix(tp, "-01") != c.exported || got.Get("Tracestate") != "" {
				t.Errorf("the service got %q, %q", tp, got.Get("Tracestate"))
			}
			if c.exported {
				eventually(t, "the gateway's span is exported", func() bool { return traces.has(t, tp[3:35]) })
				return
			}
			// A request that fails is exported whatever was sampled. It arrives after every earlier span.
			w.service.handle = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
			if _, err := g.raw("GET", oneCu, "", key); err != nil {
				t.Fatal(err)
			}
			failed := w.service.last.Header.Get("Traceparent")
			eventually(t, "the failed request is exported", func() bool { return traces.has(t, failed[3:35]) })
			if traces.has(t, tp[3:35]) || traces.has(t, clientTrace) {
				t.Error("exported though not sampled")
			}
		})
	}
}
