package kafkax

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"holdfast.dev/libs/secret"
	"holdfast.dev/libs/tlsx"
)

// Settings are the settings of every process that uses Kafka. Cluster converts them.
type Settings struct {
	Brokers        []string       `env:"KAFKA_BROKERS,required,notEmpty"`           // host:port of each broker
	Prefix         string         `env:"KAFKA_TOPIC_PREFIX" envDefault:"holdfast."` // prefix of all topic and group names
	TLS            bool           `env:"KAFKA_TLS"`                                 // connect with TLS; each broker's certificate must match the host name that the service connects to
	CAFile         string         `env:"KAFKA_CA_FILE"`                             // PEM file with certificate authorities to trust in addition to the system's
	ClientCertFile string         `env:"KAFKA_CLIENT_CERT_FILE"`                    // PEM file with the client certificate, for brokers that require one
	ClientKeyFile  string         `env:"KAFKA_CLIENT_KEY_FILE"`                     // PEM file with the client certificate's private key
	SASLMechanism  string         `env:"KAFKA_SASL_MECHANISM"`                      // plain, scram-sha-256 or scram-sha-512; empty: no SASL
	SASLUsername   string         `env:"KAFKA_SASL_USERNAME"`                       // user name for SASL
	SASLPassword   secret.Setting `env:"KAFKA_SASL_PASSWORD" secret:"true"`         // password for SASL
	Partitions     int            `env:"KAFKA_PARTITIONS" envDefault:"48"`          // number of partitions of a topic when it is created
}

// Cluster specifies how to reach a Kafka cluster.
type Cluster struct {
	Brokers []string       // host:port
	Prefix  string         // before each topic's and group's name
	TLS     *tlsx.Client   // nil: none
	SASL    sasl.Mechanism // nil: none
}

// Cluster reads the files and checks that the settings are consistent. It does not connect.
func (s Settings) Cluster() (Cluster, error) {
	c := Cluster{Brokers: s.Brokers, Prefix: s.Prefix}
	files := tlsx.Files{CA: s.CAFile, Cert: s.ClientCertFile, Key: s.ClientKeyFile}
	var err error
	if s.TLS {
		c.TLS, err = tlsx.NewClient("KAFKA_", files)
	} else {
		err = files.None("KAFKA_", "set KAFKA_TLS=true")
	}
	if err != nil {
		return Cluster{}, fmt.Errorf("settings: %w", err)
	}
	if c.SASL, err = s.sasl(); err != nil {
		return Cluster{}, fmt.Errorf("settings: %w", err)
	}
	return c, nil
}

var (
	errNoMechanism = errors.New("KAFKA_SASL_USERNAME or KAFKA_SASL_PASSWORD is set without KAFKA_SASL_MECHANISM")
	errNoLogin     = errors.New("KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD")
	errMechanism   = errors.New("KAFKA_SASL_MECHANISM must be plain, scram-sha-256 or scram-sha-512")
)

func (s Settings) sasl() (sasl.Mechanism, error) {
	switch {
	case s.SASLMechanism == "" && s.SASLUsername == "" && s.SASLPassword.Get() == "":
		return nil, nil
	case s.SASLMechanism == "":
		return nil, errNoMechanism
	case s.SASLUsername == "" || s.SASLPassword.Get() == "":
		return nil, errNoLogin
	}
	switch s.SASLMechanism {
	case "plain":
		return login{plain.Mechanism{}, func(password string) (sasl.Mechanism, error) {
			return plain.Mechanism{Username: s.SASLUsername, Password: password}, nil
		}, s.SASLPassword}, nil
	case "scram-sha-256":
		return s.scram(scram.SHA256)
	case "scram-sha-512":
		return s.scram(scram.SHA512)
	default:
		return nil, fmt.Errorf("%w, not %q", errMechanism, s.SASLMechanism)
	}
}

func (s Settings) scram(algorithm scram.Algorithm) (sasl.Mechanism, error) {
	mechanism := func(password string) (sasl.Mechanism, error) {
		return scram.Mechanism(algorithm, s.SASLUsername, password)
	}
	first, err := mechanism(s.SASLPassword.Get())
	return login{first, mechanism, s.SASLPassword}, err
}

// login is a mechanism that uses the current password for each new connection.
type login struct {
	sasl.Mechanism
	with     func(password string) (sasl.Mechanism, error)
	password secret.Setting
}

func (l login) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	m, err := l.with(l.password.Get())
	if err != nil {
		return nil, nil, err
	}
	return m.Start(ctx)
}

// dial creates a connection. With TLS, the broker's certificate must match the host of its address.
func (c Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var conn net.Conn
	var err error
	if c.TLS == nil {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	} else {
		conn, err = (&tls.Dialer{Config: c.TLS.Config()}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	return limited{conn}, nil
}

// limited is a connection that never waits without a limit: the library sets none while it logs in.
type limited struct{ net.Conn }

func (c limited) SetDeadline(t time.Time) error      { return c.Conn.SetDeadline(limit(t)) }
func (c limited) SetReadDeadline(t time.Time) error  { return c.Conn.SetReadDeadline(limit(t)) }
func (c limited) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(limit(t)) }

func limit(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now().Add(retryTimeout)
	}
	return t
}
