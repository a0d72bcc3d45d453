package load

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestIdleHoldsConnectionsOpen checks that each connection gets a request, stays open for another one, and is closed at
// the end.
func TestIdleHoldsConnectionsOpen(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requests, open, sources := map[string]int{}, map[net.Conn]bool{}, map[string]bool{}
	status := http.StatusOK
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.RemoteAddr]++
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		sources[host] = true
		w.WriteHeader(status)
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if open[c] = true; state == http.StateClosed {
			delete(open, c)
		}
	}
	s.Start()
	defer s.Close()
	get := Request(http.MethodGet, "/", nil, "")
	target := Target{Addr: strings.TrimPrefix(s.URL, "http://"), Nth: func(int) []byte { return get }}
	const n = 100
	err := Idle(t.Context(), target, n, func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(requests) != n || len(open) != n || len(sources) != idleSources {
			t.Errorf("%d connections with requests, %d open, from %d addresses", len(requests), len(open), len(sources))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		mu.Lock()
		left := len(open)
		mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections are still open", left)
		}
	}
	for from, count := range requests {
		if count != 2 {
			t.Errorf("%d requests from %s", count, from)
		}
	}
	status = http.StatusNotFound
	if err := Idle(t.Context(), target, n, func() error { t.Error("measured"); return nil }); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("error %v", err)
	}
}
