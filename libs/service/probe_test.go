package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast.dev/libs/service"
)

// TestProbe checks that the command retries a URL until it responds with 200, stops at the timeout, needs no settings, and names
// the URL that failed.
func TestProbe(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" || r.URL.Path == "/late" && requests.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	run := func(args ...string) (string, error) {
		var out strings.Builder
		err := service.Run(t.Context(), service.App{Name: "example"}, append([]string{"probe"}, args...), &out)
		return out.String(), err
	}
	if out, err := run(srv.URL+"/ready", srv.URL+"/late"); err != nil || strings.Count(out, ": 200 after ") != 2 || requests.Load() != 3 {
		t.Errorf("after %d requests: %v\n%s", requests.Load(), err, out)
	}
	if _, err := run("--timeout", "100ms", srv.URL+"/ready", srv.URL+"/never"); err == nil || !strings.Contains(err.Error(), "/never: the status is 503") {
		t.Errorf("a service that is never ready: %v", err)
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "requires at least 1 arg") {
		t.Errorf("without a URL: %v", err)
	}
}
