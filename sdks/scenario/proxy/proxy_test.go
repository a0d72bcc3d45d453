package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/sdks/scenario/proxy"
)

// TestFaults checks what a client sees of each fault, and whether the platform received the request.
func TestFaults(t *testing.T) {
	t.Parallel()
	for fault, tc := range map[string]struct {
		status   int // 0: no response
		body     string
		received int64
	}{
		proxy.Pass: {201, "the response", 1}, proxy.TooMany: {429, "rate_limited", 0}, proxy.Down: {503, "unavailable", 0},
		proxy.CutBefore: {0, "", 0}, proxy.CutAfter: {0, "", 1}, proxy.Half: {0, "", 1}, proxy.Slow: {0, "", 1}, proxy.DownAfter: {503, "unavailable", 1},
		"": {418, "", 0},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			var received atomic.Int64
			platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				received.Add(1)
				if r.URL.Path != "/api/v1/bookings" || r.Header.Get("Idempotency-Key") != "k" {
					t.Errorf("%s %v", r.URL, r.Header)
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "the response")
			}))
			defer platform.Close()
			var faults []string
			if fault != "" {
				faults = []string{fault}
			}
			p, err := proxy.Start(platform.URL+"/api/v1", faults)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			status, body, err := post(t, p.URL+"/bookings")
			if (err == nil) != (tc.status != 0) || tc.status != 0 && (status != tc.status || !strings.Contains(body, tc.body)) || received.Load() != tc.received {
				t.Errorf("%d %q %v, received %d", status, body, err, received.Load())
			}
			if all := p.Requests(); len(all) != 1 || all[0].Key != "k" || all[0].Path != "/api/v1/bookings" {
				t.Errorf("%+v", all)
			}
		})
	}
}

// post sends a request and gives up after a second.
func post(t *testing.T, address string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "k")
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), errors.Join(err, response.Body.Close())
}

// TestCutStream checks that a stream ends after two events, and that the next one is complete.
func TestCutStream(t *testing.T) {
	t.Parallel()
	const events = ": hello\n\nid: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n"
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
	}))
	defer platform.Close()
	p, err := proxy.Start(platform.URL, []string{proxy.CutStream, proxy.Pass})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, body, err := post(t, p.URL+"/events/stream"); err == nil || !strings.HasPrefix(events, body) || strings.Contains(body, "data: c") {
		t.Errorf("%q %v", body, err)
	}
	if _, body, err := post(t, p.URL+"/events/stream"); err != nil || body != events {
		t.Errorf("%q %v", body, err)
	}
}
