package assistant

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestLoop checks that the handler receives the request as from the client's connection, and that the response is complete.
func TestLoop(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: loop{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.RemoteAddr != "203.0.113.7:1" || r.Header.Get("X-Forwarded-For") != "198.51.100.1" || r.RequestURI != "/api/v1/x?y=%20" || r.Host != "api.example" {
			t.Errorf("%v %s %v %s %s", err, r.RemoteAddr, r.Header, r.RequestURI, r.Host)
		}
		w.Header()["RateLimit-Limit"] = []string{"600"} // not in Go's spelling
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("got "))
		_, _ = w.Write(body)
	})}}
	message := &http.Request{RemoteAddr: "203.0.113.7:1", Header: http.Header{"X-Forwarded-For": {"198.51.100.1"}}}
	ctx := context.WithValue(t.Context(), requestKey{}, message)
	for _, sent := range []string{"", "body"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example/api/v1/x?y=%20", strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusTeapot || string(body) != "got "+sent || a.Header.Get("RateLimit-Limit") != "600" || a.ContentLength != int64(len(body)) {
			t.Errorf("%v %+v %q", err, a, body)
		}
		_ = a.Body.Close()
	}
}

// TestLoopReportsAnAbortedResponse checks that a handler that aborts its response does not end the process, nor returns half a response.
func TestLoopReportsAnAbortedResponse(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: loop{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	})}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := client.Do(r)
	if err == nil {
		_ = a.Body.Close()
	}
	if !errors.Is(err, errAborted) {
		t.Errorf("%v", err)
	}
}
