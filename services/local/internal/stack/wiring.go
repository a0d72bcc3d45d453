package stack

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/libs/keyset"
	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
)

// Wiring holds the addresses and keys for the services' settings.
type Wiring struct {
	Keys        *state.State // also the ports
	Prefix      string       // of databases and roles
	PostgresURL string       // of the administrator
	poolerPort  int          // of the pooler in front of it; 0 without one
	secretFiles string       // folder of the services' secrets in files; empty: in the environment
	RedisURL    string
	broker      string // of Kafka
	topicPrefix string
	run         string // folder of files that services keep over a restart
}

// Source provides the values of the Secrets. The state keeps keys and passwords.
func (w Wiring) Source() keyset.Source {
	s := keyset.Source{Key: w.Keys.Secret, Prefix: w.Prefix, Server: w.PostgresURL, Redis: w.RedisURL}
	if w.poolerPort != 0 {
		s.ServingURL, _ = parts.Through(w.PostgresURL, w.poolerPort) // checked before anything was started
	}
	return s
}

// Database returns the database of a service with the passwords of its roles.
func (w Wiring) Database(name string) parts.Database {
	d := parts.Database{Name: w.Prefix + name, Passwords: map[string]string{}}
	for _, role := range parts.Roles {
		d.Passwords[role] = w.Keys.Secret(keyset.PasswordName(name, role))
	}
	return d
}

// settings returns the variables with the addresses of all processes on this machine.
func (w Wiring) settings(s proto.Service) []string {
	secrets := w.Source().Serving(s)
	vars := maps.Clone(secrets)
	vars["HTTP_ADDR"] = w.address(s.Name)
	vars["METRICS_ADDR"] = w.address(s.Name + ".metrics")
	vars["PUBLIC_URL"], vars["AUTH_URL"] = w.publicURL(), w.publicURL()
	if s.Kafka() {
		vars["KAFKA_BROKERS"], vars["KAFKA_TOPIC_PREFIX"] = w.broker, w.topicPrefix
	}
	if w.secretFiles != "" {
		for name := range secrets {
			vars[name+"_FILE"] = filepath.Join(w.secretFiles, s.Name, name)
			delete(vars, name)
		}
	}
	for _, target := range s.Calls {
		vars["UPSTREAM_"+strings.ToUpper(target)+"_URL"] = "http://" + w.address(target)
	}
	if s.State != "" {
		vars[s.State] = filepath.Join(w.run, s.Name+"."+strings.TrimSuffix(strings.ToLower(s.State), "_path"))
	}
	if slices.Contains(s.Reaches, "receivers") {
		vars["WEBHOOK_ALLOWED_CIDRS"] = "127.0.0.0/8,::1/128" // receivers on this machine
	}
	if slices.Contains(s.Reaches, "clients") {
		vars["CLIENT_DOCUMENT_ALLOWED_CIDRS"] = "127.0.0.0/8,::1/128" // clients on this machine
	}
	if slices.Contains(s.Reaches, "gateways") {
		vars["STRIPE_URL"] = w.stripeURL()
	}
	if s.Database {
		maps.Copy(vars, w.Source().Migration(s)) // its command and jobs, which do not use the pooler
		vars["DATABASE_POOLER"] = strconv.FormatBool(w.poolerPort != 0)
	}
	return Lines(vars)
}

// address returns the address on which a process of this machine listens.
func (w Wiring) address(name string) string { return parts.Loopback(w.Keys.Port(name)) }

func (w Wiring) publicURL() string { return "http://" + w.address(proto.PublicService().Name) }

// Lines returns variables as a sorted environment.
func Lines(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

func (p *Platform) wiring() Wiring {
	w := Wiring{
		Keys: p.state, Prefix: p.config.Prefix, PostgresURL: p.postgresURL, poolerPort: p.poolerPort, RedisURL: p.redisURL,
		broker: p.brokers[0], topicPrefix: p.topicPrefix(), run: p.Run,
	}
	if p.config.SecretFiles {
		w.secretFiles = filepath.Join(p.Run, "services")
	}
	return w
}

// environment returns the complete environment of a service.
func (p *Platform) environment(s proto.Service) []string {
	return append(append(inherited(), supervise.OwnerEnv+"="+p.Root), p.wiring().settings(s)...)
}

// topicPrefix separates two checkouts that use the same Kafka. In the same groups, each would read a part of the other's events.
func (p *Platform) topicPrefix() string {
	return cmp.Or(os.Getenv("KAFKA_TOPIC_PREFIX"), strings.TrimRight(p.config.Prefix, "_.-")+".")
}
