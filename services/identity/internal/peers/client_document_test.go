package peers_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/egress"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
)

// newDocuments returns a client that fetches from a server on loopback.
func newDocuments(t *testing.T, s *httptest.Server) *peers.ClientDocuments {
	t.Helper()
	guard, err := egress.NewGuard("", []string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return peers.NewClientDocuments(guard, net.DefaultResolver, roots)
}

// TestLifetimeOfADocument checks which header of a response determines how long its document is fresh: RFC 9111, sections 4.2.1 and 5.2.2.
func TestLifetimeOfADocument(t *testing.T) {
	t.Parallel()
	headers := http.Header{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie")+r.Header.Get("Authorization")+r.Header.Get("Referer") != "" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("%v", r.Header)
		}
		for name, values := range headers {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "application/client+json")
		_, _ = io.WriteString(w, `{"client_id":"x"}`)
	}))
	defer s.Close()
	documents := newDocuments(t, s)
	for _, c := range []struct {
		headers http.Header
		want    time.Duration
	}{
		{http.Header{}, domain.DocumentLifetime},
		{http.Header{"Cache-Control": {"max-age=60"}}, time.Minute},
		{http.Header{"Cache-Control": {"Public, Max-Age=\"60\""}}, time.Minute},
		{http.Header{"Cache-Control": {"max-age=60, s-maxage=120"}}, 2 * time.Minute},
		{http.Header{"Cache-Control": {"s-maxage=120", "max-age=60"}}, 2 * time.Minute},
		{http.Header{"Cache-Control": {"max-age=60"}, "Age": {"20"}}, 40 * time.Second},
		{http.Header{"Cache-Control": {"max-age=60"}, "Age": {"-20"}}, time.Minute},
		{http.Header{"Cache-Control": {"max-age=99999999999"}}, domain.MaxDocumentLifetime},
		{http.Header{"Cache-Control": {"max-age=x"}}, 0},
		{http.Header{"Cache-Control": {"max-age=-5"}}, 0},
		{http.Header{"Cache-Control": {"no-store, max-age=60"}}, 0},
		{http.Header{"Cache-Control": {"no-cache"}}, 0},
		{http.Header{"Cache-Control": {"private"}}, 0},
		{http.Header{"Date": {"Mon, 01 Jan 2035 00:00:00 GMT"}, "Expires": {"Mon, 01 Jan 2035 00:10:00 GMT"}}, 10 * time.Minute},
		{http.Header{"Date": {"Mon, 01 Jan 2035 00:00:00 GMT"}, "Expires": {"Mon, 01 Jan 2035 00:10:00 GMT"}, "Cache-Control": {"max-age=60"}}, time.Minute},
		{http.Header{"Expires": {"0"}}, 0},
	} {
		headers = c.headers
		d, got, err := documents.Fetch(t.Context(), s.URL+"/c.json")
		if err != nil || got != c.want || d.ClientID != "x" {
			t.Errorf("%v: %s %v, want %s", c.headers, got, err, c.want)
		}
	}
}

// TestSlowDocument checks that a fetch ends with its deadline, wherever the site hangs.
func TestSlowDocument(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"client_id":`)
			_ = http.NewResponseController(w).Flush()
		}
		<-hang
	}))
	defer s.Close()
	defer close(hang)
	documents := newDocuments(t, s)
	for _, path := range []string{"/headers", "/body"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, _, err := documents.Fetch(ctx, s.URL+path)
		cancel()
		if want := domain.DocumentError("the site of client_id did not send the document within 5 seconds"); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestUntrustedSite checks that a certificate of another authority is refused, and that http is not used.
func TestUntrustedSite(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	guard, err := egress.NewGuard("", []string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	documents := peers.NewClientDocuments(guard, net.DefaultResolver, nil)
	if _, _, err := documents.Fetch(t.Context(), s.URL+"/c.json"); err == nil || !strings.Contains(err.Error(), "valid certificate") {
		t.Errorf("%v", err)
	}
}
