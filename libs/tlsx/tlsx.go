// Package tlsx creates the TLS configuration for Kafka and Redis clients from PEM files.
package tlsx

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files are the paths of PEM files. Each can be empty.
type Files struct {
	CA        string // certificate authorities to trust in addition to the system's
	Cert, Key string // the client's certificate with its chain, and its private key: both or neither
}

// Client reads the files. prefix is the common prefix of their settings, such as "KAFKA_", for error messages.
func Client(prefix string, f Files) (*tls.Config, error) {
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
	pem, err := os.ReadFile(file) //nolint:gosec // named by the operator
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // an image without root certificates: the file is the only source
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s %w", file, errNoCertificate)
	}
	return pool, nil
}
