package stack

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"holdfast.dev/services/local/internal/parts"
)

// config holds the environment settings of `local up`.
type config struct {
	DatabaseURL  string `env:"DATABASE_URL"`                           // administrator's URL; empty: a private PostgreSQL
	RedisURL     string `env:"REDIS_URL"`                              // empty: a private Redis
	KafkaBrokers string `env:"KAFKA_BROKERS"`                          // comma-separated; empty: a private broker
	Kafka        string `env:"KAFKA" envDefault:"auto"`                // auto, apache, or embedded
	KafkaFullJIT bool   `env:"KAFKA_FULL_JIT"`                         // true: Apache Kafka's JVM uses all its compilers; it starts later and then needs less CPU
	Sockets      string `env:"POSTGRES_SOCKETS"`                       // folder of the private PostgreSQL's Unix socket; empty: none
	Pooler       int    `env:"POOLER"`                                 // starts PgBouncer with this number of connections to PostgreSQL for each database and role, and services connect to it; 0: none
	SecretFiles  bool   `env:"SECRET_FILES"`                           // true: services read their secrets from files, as with a mounted Secret in a cluster
	Prefix       string `env:"HOLDFAST_PREFIX" envDefault:"holdfast_"` // of databases and roles
	GatewayPort  int    `env:"GATEWAY_PORT"`                           // 8080, or another port if it is in use
	Logs         string `env:"LOG" envDefault:"warn"`                  // log lines of the services on the terminal: warn or all
}

// DefaultPrefix is the default prefix of databases and roles.
const DefaultPrefix = "holdfast_"

const (
	defaultGatewayPort = 8080
	defaultTopicPrefix = "holdfast."
)

// prefixes is the pattern of the prefix of databases, roles, and topics.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,29}$`)

func readConfig() (config, error) {
	c, err := env.ParseAs[config]()
	if err != nil {
		return c, err
	}
	switch {
	case !slices.Contains([]string{"auto", parts.Apache, parts.Embedded}, c.Kafka):
		return c, fmt.Errorf("KAFKA must be auto, apache or embedded, not %q", c.Kafka)
	case !slices.Contains([]string{"warn", "all"}, c.Logs):
		return c, fmt.Errorf("LOG must be warn or all, not %q", c.Logs)
	case c.Pooler < 0 || c.Pooler > 100:
		return c, fmt.Errorf("POOLER must be from 0 to 100, not %d", c.Pooler)
	case c.GatewayPort < 0 || c.GatewayPort > 65535:
		return c, fmt.Errorf("GATEWAY_PORT must be a port number, not %d", c.GatewayPort)
	case !prefixes.MatchString(c.Prefix):
		return c, fmt.Errorf("HOLDFAST_PREFIX must be 1 to 30 letters, digits, _ . or -, starting with a letter or digit, not %q", c.Prefix)
	}
	return c, nil
}

// inherited returns our own environment without the administrator's addresses, which services do not need.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DATABASE_URL", "REDIS_URL", "KAFKA_BROKERS", "HTTP_ADDR", "METRICS_ADDR", "DATABASE_POOLER"}, name)
	})
}
