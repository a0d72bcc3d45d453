package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestASlowNameServerStopsNoCall checks that a name server that is slower than an attempt to connect, or does not respond any more,
// delays a call to a known name only briefly, and that a changed address is used.
func TestASlowNameServerStopsNoCall(t *testing.T) {
	t.Parallel()
	_, port, other := servers(t)
	var delay atomic.Int64
	var found atomic.Value
	found.Store("127.0.0.1")
	n := &names{hosts: map[string]*host{}, lookup: func(ctx context.Context, _ string) ([]string, error) {
		select {
		case <-time.After(time.Duration(delay.Load())):
			return []string{found.Load().(string)}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	reach := func(limit time.Duration) (string, error) {
		conn, err := dial(t.Context(), n, "tcp", "name:"+port, limit)
		if err != nil {
			return "", err
		}
		defer func() { _ = conn.Close() }()
		address, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		return address, err
	}
	delay.Store(int64(2 * dialAttempt))
	if at, err := reach(ConnectLimit); err != nil || at != "127.0.0.1" {
		t.Errorf("an unknown name, slow name server: %q, %v", at, err)
	}
	delay.Store(int64(time.Hour))
	for range 3 {
		began := time.Now()
		if at, err := reach(ConnectLimit); err != nil || at != "127.0.0.1" || time.Since(began) > time.Second {
			t.Errorf("a known name, no name server: %q after %v, %v", at, time.Since(began), err)
		}
	}
	delay.Store(0)
	found.Store(other)
	for end := time.Now().Add(2 * lookupLimit); ; {
		at, err := reach(ConnectLimit)
		if err != nil {
			t.Fatal(err)
		}
		if at == other {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the new address is not used, but %s", at)
		}
	}
}

// TestAnUnknownNameIsUnconnected checks that a name without an address is reported as unconnected within the limit.
func TestAnUnknownNameIsUnconnected(t *testing.T) {
	t.Parallel()
	missing := &net.DNSError{Err: "no such host", Name: "name", IsNotFound: true}
	for what, lookup := range map[string]func(context.Context, string) ([]string, error){
		"refused": func(context.Context, string) ([]string, error) { return nil, missing },
		"silent":  func(ctx context.Context, _ string) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		n := &names{hosts: map[string]*host{}, lookup: lookup}
		began := time.Now()
		_, err := dial(t.Context(), n, "tcp", "name:80", 300*time.Millisecond)
		if !Unconnected(err) || time.Since(began) > 2*time.Second {
			t.Errorf("%s: %v after %v", what, err, time.Since(began))
		}
		if dns := (*net.DNSError)(nil); what == "refused" && !errors.As(err, &dns) {
			t.Errorf("%s: %v does not say that the name is unknown", what, err)
		}
	}
}

// servers starts a server on one port of two addresses of the loopback network.
func servers(t *testing.T) (first, port, second string) {
	t.Helper()
	one := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(one.Close)
	first, port, err := net.SplitHostPort(one.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	two := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}}
	two.Start()
	t.Cleanup(two.Close)
	return first, port, "127.0.0.2"
}
