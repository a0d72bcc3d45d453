// Package tlstest provides tests with their own certificate authority, for servers on loopback and their clients.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates that expire with its own.
type Authority struct {
	CAFile string // its own certificate, in PEM
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// New creates an authority that expires in an hour. Its files are deleted at the end of the test.
func New(t testing.TB) *Authority {
	t.Helper()
	return NewFor(t, time.Hour)
}

// NewFor is New for an authority that expires after the given time, which can be negative.
func NewFor(t testing.TB, valid time.Duration) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir()}
	a.key = newKey(t)
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"},
		NotBefore: time.Now().Add(min(valid, 0) - time.Minute), NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := a.sign(t, a.cert, a.key)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.CAFile = a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

// Expires returns when the authority and its certificates expire.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Leaf returns the files of a certificate and its key for 127.0.0.1, localhost and the given name. Servers and clients can use
// them.
func (a *Authority) Leaf(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	cert := a.sign(t, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{name, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".pem", "CERTIFICATE", cert), a.write(t, name+".key", "PRIVATE KEY", der)
}

// Client returns the configuration of a client with its own certificate.
func (a *Authority) Client(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Leaf(t, "client"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

// sign creates the certificate of key.
func (a *Authority) sign(t testing.TB, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
