package command

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestALoopOfPages checks that each command that reads all pages ends with an error if the list does not go on.
func TestALoopOfPages(t *testing.T) {
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		cursor := r.URL.Query().Get("cursor")
		if strings.HasPrefix(r.URL.Path, "/empty") {
			cursor = ""
		} else if cursor == "" {
			cursor = "a"
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"x"}],"has_more":true,"next_cursor":"` + cursor + `"}`))
	}))
	defer platform.Close()
	t.Setenv("HOLDFAST_API_KEY", "svc_test_key")
	for _, base := range []string{"/same/v1", "/empty/v1"} {
		t.Setenv("HOLDFAST_BASE_URL", platform.URL+base)
		for _, args := range [][]string{{"bookings", "list", "--all"}, {"units", "list", "--all", "-o", "table"}, {"export", "--folder", t.TempDir()}} {
			a, out := newApp()
			if code := a.Run(t.Context(), args); code != exitError || !strings.Contains(out.String(), errNoNewCursor.Error()) {
				t.Errorf("%s %v: %d %s", base, args, code, out)
			}
		}
	}
}

// TestAFinalRefusal checks that commands do not repeat a request if the platform says that it would fail again.
func TestAFinalRefusal(t *testing.T) {
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable} {
		var requests atomic.Int64
		platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/me" || r.URL.Path == "/v1/events" {
				_, _ = w.Write([]byte(`{"mode":"test","data":[{"id":"evt_1"}]}`))
				return
			}
			requests.Add(1)
			w.Header().Set("Service-Should-Retry", "false")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"code":"payment_intent_failed","message":"Connect an account."}}`))
		}))
		defer platform.Close()
		t.Setenv("HOLDFAST_API_KEY", "svc_test_key")
		t.Setenv("HOLDFAST_BASE_URL", platform.URL+"/v1")
		for _, args := range [][]string{{"bookings", "create", "--yes"}, {"bookings", "list"}, {"logs", "tail"}, {"events", "stream"}, {"listen"}} {
			requests.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			a, out := newApp()
			if code := a.Run(ctx, args); code != exitUnavailable || requests.Load() != 1 {
				t.Errorf("%v: %d after %d requests: %s", args, code, requests.Load(), out)
			}
			cancel()
		}
	}
}
