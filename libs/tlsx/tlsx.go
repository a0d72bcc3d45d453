// Package tlsx creates the TLS configuration for Kafka and Redis clients from PEM files.
package tlsx

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Files are the paths of PEM files. Each can be empty.
type Files struct {
	CA        string // certificate authorities to trust in addition to the system's
	Cert, Key string // the client's certificate with its chain, and its private key: both or neither
}

// Client is the configuration of a client whose certificates can be renewed while the process runs.
type Client struct {
	prefix string
	files  Files
	last   atomic.Pointer[tls.Config] // the newest configuration whose files were valid
}

// NewClient reads the files. prefix is the common prefix of their settings, such as "KAFKA_", for error messages.
func NewClient(prefix string, f Files) (*Client, error) {
	c := &Client{prefix: prefix, files: f}
	cfg, err := read(prefix, f)
	if err != nil {
		return nil, err
	}
	c.last.Store(cfg)
	return c, nil
}

// Config returns the configuration for a new connection. It reads the files again. While they are not valid, for example because a program
// is writing them, it returns the previous configuration. The caller may change the result.
func (c *Client) Config() *tls.Config {
	cfg, err := read(c.prefix, c.files)
	if err != nil {
		slog.Warn("certificates not reloaded; keeping the previous ones", slog.Any("error", err))
		return c.last.Load().Clone()
	}
	c.last.Store(cfg)
	return cfg.Clone()
}

func read(prefix string, f Files) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pool, err := authorities(f.CA)
		if err != nil {
			return nil, fmt.Errorf("%sCA_FILE: %w", prefix, err)
		}
		cfg.RootCAs = pool
	}
	switch {
	case f.Cert == "" && f.Key == "":
		return cfg, nil
	case f.Key == "":
		return nil, fmt.Errorf("%[1]sCLIENT_CERT_FILE is set without %[1]sCLIENT_KEY_FILE", prefix)
	case f.Cert == "":
		return nil, fmt.Errorf("%[1]sCLIENT_KEY_FILE is set without %[1]sCLIENT_CERT_FILE", prefix)
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%[1]sCLIENT_CERT_FILE and %[1]sCLIENT_KEY_FILE: %[2]w", prefix, err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

// None returns an error if any file is set, for connections without TLS. how is the setting that turns TLS on.
func (f Files) None(prefix, how string) error {
	if f != (Files{}) {
		return fmt.Errorf("%[1]sCA_FILE, %[1]sCLIENT_CERT_FILE or %[1]sCLIENT_KEY_FILE is set, but TLS is not: %[2]s", prefix, how)
	}
	return nil
}

var errNoCertificate = errors.New("holds no certificate in PEM")

func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // an image without root certificates: the file is the only source
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s %w", file, errNoCertificate)
	}
	return pool, nil
}

// Expiry returns when the first certificate in a PEM file expires, for a certificate with its chain.
func Expiry(file string) (time.Time, error) {
	all, err := expiries(file)
	if err != nil {
		return time.Time{}, err
	}
	first := all[0]
	for _, t := range all {
		if t.Before(first) {
			first = t
		}
	}
	return first, nil
}

// ExpiryOfAuthorities returns when the first authority in a PEM file expires, of those that have not expired at now. It returns the last
// time if all have. After a change of an authority, its file can still contain the expired one.
func ExpiryOfAuthorities(file string, now time.Time) (time.Time, error) {
	all, err := expiries(file)
	if err != nil {
		return time.Time{}, err
	}
	next, last := time.Time{}, all[0]
	for _, t := range all {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
		if t.After(last) {
			last = t
		}
	}
	if next.IsZero() {
		return last, nil
	}
	return next, nil
}

// expiries returns the ends of the certificates in a file, of at least one.
func expiries(file string) (ends []time.Time, err error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for block := (*pem.Block)(nil); ; {
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		ends = append(ends, cert.NotAfter)
	}
	if len(ends) == 0 {
		return nil, fmt.Errorf("%s %w", file, errNoCertificate)
	}
	return ends, nil
}
