package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/apikey"
	"holdfast.dev/libs/caller"
)

// firstByte records how many requests were counted when the response began.
type firstByte struct {
	*httptest.ResponseRecorder

	waiting func() int64
	counted int64
}

func (w *firstByte) WriteHeader(status int) {
	w.counted = w.waiting()
	w.ResponseRecorder.WriteHeader(status)
}

// A request is counted before the first byte of its response, so that a client never has a response that a killed gateway did not count.
// It is counted once. A request without a valid credential belongs to no tenant.
func TestRequestsCountBeforeTheirResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.RateLimit, c.TenantRateLimit = 1, 1000 })
	handler := g.server.Handler()
	spent := w.identity.newKey()
	want(t, g.send(t, "GET", oneCu, "", bearer(spent)), 200, "")
	source := w.service.streaming(t)
	close(source.events)
	serve := w.service.handle
	w.service.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/stream") && serve(w, r)
		}
	})
	for _, c := range []struct {
		name, method, path, key string
		status                  int
		counted                 int64
	}{
		{"a read", "GET", oneCu, w.identity.newKey(), 200, 1},
		{"a write", "POST", customers, w.identity.newKey(), 201, 1},
		{"a stream", "GET", stream, w.identity.newKey(), 200, 1},
		{"a refused request", "GET", oneCu, spent, 429, 1},
		{"a request without the scope", "GET", oneCu, w.identity.newKey("read:units"), 403, 1},
		{"a credential that nobody has", "GET", oneCu, apikey.New(caller.Live), 401, 0},
	} {
		before := g.server.Pipeline.Counts.Waiting()
		req := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(`{"name":"Ada"}`))
		req.Header.Set("Authorization", "Bearer "+c.key)
		req.Header.Set("Content-Type", "application/json")
		res := &firstByte{ResponseRecorder: httptest.NewRecorder(), waiting: g.server.Pipeline.Counts.Waiting}
		handler.ServeHTTP(res, req)
		after := g.server.Pipeline.Counts.Waiting()
		if res.Code != c.status || res.counted-before != c.counted || after-before != c.counted {
			t.Errorf("%s: %d; %d counted before the response, %d after it; want %d\n%s", c.name, res.Code, res.counted-before, after-before, c.counted, res.Body)
		}
	}
}

// The counts of a gateway that ends without sending them are in its file, and the next gateway has them. Two gateways cannot use one file.
func TestRequestCountsRemainInTheirFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "counts")
	file := func(c *Config) { c.RequestCounts = path }
	g := w.start(t, file)
	for range 3 {
		want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
	}
	cfg := w.cfg
	file(&cfg)
	if _, _, err := build(cfg, nil, nil, nil, nil, prometheus.NewRegistry()); err == nil || !strings.HasPrefix(err.Error(), "REQUEST_COUNTS_PATH: request counts in "+path+": another process uses this file") {
		t.Error(err)
	}
	if err := g.server.Pipeline.Counts.Close(); err != nil {
		t.Fatal(err)
	}
	if n := w.start(t, file).server.Pipeline.Counts.Waiting(); n != 3 {
		t.Errorf("%d requests wait, want 3", n)
	}
}
