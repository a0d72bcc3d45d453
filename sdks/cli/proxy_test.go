package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// tunnels is a proxy whose tunnels all lead to one server.
type tunnels struct {
	to string // host:port

	mu      sync.Mutex
	targets []string
}

// ServeHTTP opens a tunnel.
func (p *tunnels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.targets = append(p.targets, r.Method+" "+r.Host)
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.to)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(w, fmt.Sprint(err), http.StatusMethodNotAllowed)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() { _, _ = io.Copy(server, buffered) }()
	_, _ = io.Copy(client, server)
}

// opened returns the tunnels so far.
func (p *tunnels) opened() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.targets)
}

// TestProxy checks that requests go through the proxy of HTTPS_PROXY, unless NO_PROXY names the host. The Go SDK sends them.
func TestProxy(t *testing.T) {
	t.Parallel()
	platform := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":%q}`, r.Host)
	}))
	defer platform.Close()
	p := &tunnels{to: platform.Listener.Addr().String()}
	proxy := httptest.NewServer(p)
	defer proxy.Close()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: platform.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := bare(t).with("HOLDFAST_API_KEY=svc_test_key", "HOLDFAST_BASE_URL=https://example.com/api/v1", "HTTPS_PROXY="+proxy.URL, "SSL_CERT_FILE="+certificate)
	if got := c.ok("me", "get", "--jq", ".id"); got != "example.com" {
		t.Errorf("%s", got)
	}
	if got := p.opened(); !slices.Equal(got, []string{"CONNECT example.com:443"}) {
		t.Errorf("%q", got)
	}
	c.with("HOLDFAST_BASE_URL=https://platform.invalid/api/v1", "NO_PROXY=platform.invalid").fails(8, []string{"me", "get"}, "no response")
	if got := p.opened(); len(got) != 1 {
		t.Errorf("in spite of NO_PROXY: %q", got)
	}
}
