package tlsx_test

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/tlstest"
	"holdfast.dev/libs/tlsx"
)

// server accepts TLS connections with a certificate of the authority, and requires one of the same authority. It returns its address.
func server(t *testing.T, a *tlstest.Authority) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Leaf(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, // in which the client learns of a rejection in its handshake
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Client(t).RootCAs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			}()
		}
	}()
	return l.Addr().String()
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func handshake(t *testing.T, c *tlsx.Client, address string) error {
	t.Helper()
	cfg := c.Config()
	cfg.ServerName = "localhost"
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, cfg)
	defer conn.Close()
	return conn.HandshakeContext(t.Context())
}

// A process uses renewed certificates without a restart, and keeps the previous ones while a file is not valid.
func TestRenewedCertificates(t *testing.T) {
	t.Parallel()
	first, second := tlstest.New(t), tlstest.New(t)
	dir := t.TempDir()
	files := tlsx.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	install := func(a *tlstest.Authority) {
		cert, key := a.Leaf(t, "client")
		copyFile(t, a.CAFile, files.CA)
		copyFile(t, cert, files.Cert)
		copyFile(t, key, files.Key)
	}
	install(first)
	before, after := server(t, first), server(t, second)
	c, err := tlsx.NewClient("TEST_", files)
	if err != nil {
		t.Fatal(err)
	}
	if err := handshake(t, c, before); err != nil {
		t.Errorf("the certificates of the start: %v", err)
	}
	if err := handshake(t, c, after); err == nil {
		t.Error("another authority's server was accepted")
	}
	install(second)
	if err := handshake(t, c, after); err != nil {
		t.Errorf("renewed certificates: %v", err)
	}
	if err := handshake(t, c, before); err == nil {
		t.Error("the previous authority's server was accepted")
	}
	copyFile(t, first.CAFile, files.Key) // no key
	if err := handshake(t, c, after); err != nil {
		t.Errorf("while a file is not valid: %v", err)
	}
}

// A chain ends with its first certificate. A file of authorities can contain expired ones.
func TestExpiry(t *testing.T) {
	t.Parallel()
	expired, soon, late := tlstest.NewFor(t, -time.Hour), tlstest.NewFor(t, time.Hour), tlstest.NewFor(t, 48*time.Hour)
	dir := t.TempDir()
	file := func(name string, authorities ...*tlstest.Authority) string {
		var text strings.Builder
		for _, a := range authorities {
			one, err := os.ReadFile(a.CAFile)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(one)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all, past, none := file("all", late, expired, soon), file("past", expired), file("none")
	for name, tc := range map[string]struct {
		got  func() (time.Time, error)
		want *tlstest.Authority
	}{
		"a chain":             {func() (time.Time, error) { return tlsx.Expiry(all) }, expired},
		"authorities":         {func() (time.Time, error) { return tlsx.ExpiryOfAuthorities(all, time.Now()) }, soon},
		"expired authorities": {func() (time.Time, error) { return tlsx.ExpiryOfAuthorities(past, time.Now()) }, expired},
	} {
		if got, err := tc.got(); err != nil || !got.Equal(tc.want.Expires()) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want.Expires())
		}
	}
	if _, err := tlsx.Expiry(none); err == nil || !strings.Contains(err.Error(), "holds no certificate in PEM") {
		t.Errorf("an empty file: %v", err)
	}
}
