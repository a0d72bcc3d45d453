package kafkax

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

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
	// Each new connection uses the current password.
	login := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: s.SASLUsername, Pass: s.SASLPassword.Get()}, nil
	}
	switch s.SASLMechanism {
	case "plain":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: s.SASLUsername, Pass: s.SASLPassword.Get()}, nil
		}), nil
	case "scram-sha-256":
		return scram.Sha256(login), nil
	case "scram-sha-512":
		return scram.Sha512(login), nil
	default:
		return nil, fmt.Errorf("%w, not %q", errMechanism, s.SASLMechanism)
	}
}

const (
	clientID       = "holdfast"
	dialTimeout    = 3 * time.Second        // for one connection with TLS and SASL
	requestTimeout = 5 * time.Second        // for the response to a request, in addition to the time that the request lets the broker wait
	retryTimeout   = 10 * time.Second       // for a request with its repetitions; fetches and writes have their own limits
	metadataAge    = 250 * time.Millisecond // how soon a client asks again for the leaders of partitions
)

// options returns the options of each client, and those of one.
func (c Cluster) options(more ...kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(clientID), kgo.DialTimeout(dialTimeout), kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.RetryTimeout(retryTimeout), kgo.MetadataMinAge(metadataAge),
	}
	if c.TLS != nil {
		opts = append(opts, kgo.Dialer(c.dial)) // kgo.DialTLSConfig would keep the certificates of the start
	}
	if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.SASL))
	}
	return append(opts, more...)
}

// dial creates a connection with TLS. The broker's certificate must match the host of its address.
func (c Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: c.TLS.Config()}
	return d.DialContext(ctx, network, address)
}

// admin creates a client for individual requests. release closes its connections.
func (c Cluster) admin() (admin *kadm.Client, release func(), err error) {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return nil, nil, fmt.Errorf("kafka: %w", err)
	}
	return kadm.NewClient(client), client.Close, nil
}
