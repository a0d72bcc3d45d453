package seed

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCallsArePatient checks that a request is repeated unchanged, with its key, while a service is starting, and that a refused
// request is not repeated.
func TestCallsArePatient(t *testing.T) {
	t.Parallel()
	var keys, bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		keys, bodies = append(keys, req.Header.Get("Idempotency-Key")), append(bodies, string(body))
		switch {
		case req.URL.Path == "/refused":
			w.WriteHeader(http.StatusConflict)
		case len(keys) < 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(w, `{"id":"x"}`)
		}
	}))
	t.Cleanup(srv.Close)
	c := &client{base: srv.URL}
	var out struct{ ID string }
	if err := c.call(t.Context(), http.MethodPost, "/things", map[string]int{"n": 1}, &out); err != nil || out.ID != "x" {
		t.Fatal(out, err)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] || bodies[0] != `{"n":1}` || bodies[2] != bodies[0] {
		t.Errorf("%q %q", keys, bodies)
	}
	if err := c.call(t.Context(), http.MethodPost, "/refused", map[string]int{"n": 1}, nil); err == nil || len(keys) != 4 {
		t.Errorf("%d requests, %v", len(keys), err)
	}
	if keys[3] == keys[2] {
		t.Error("another request has the same key")
	}
}
