package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/proto"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/state"
	"holdfast.dev/services/local/internal/supervise"
)

// keyID is the id of the first generation of every key.
const keyID = "k1"

// wiring holds the addresses and keys for the services' settings.
type wiring struct {
	keys        *state.State // also the ports
	prefix      string       // of databases and roles
	postgresURL string       // of the administrator
	poolerPort  int          // of the pooler in front of it; 0 without one
	secretFiles string       // folder of the services' secrets in files; empty: in the environment
	redisURL    string
	broker      string // of Kafka
	topicPrefix string
	run         string // folder of files that services keep over a restart
}

func (w wiring) key(name string) string { return keyID + ":" + w.keys.Secret(name) }

// callerKey returns the key that signs the calls of one service to another.
func (w wiring) callerKey(from, to string) string { return w.key("caller." + from + "." + to) }

// secrets returns the settings of a service that only this service can read.
func (w wiring) secrets(s proto.Service) map[string]string {
	vars := map[string]string{
		"CURSOR_KEYS":             w.key("cursor"),
		"SERVICE_ENCRYPTION_KEYS": w.key("encryption." + s.Name),
		"CALLER_SIGN_KEYS":        w.signKeys(s),
		"CALLER_VERIFY_KEYS":      w.verifyKeys(s),
	}
	if s.Redis {
		vars["REDIS_URL"] = w.redisURL
	}
	if s.Database {
		d := w.database(s.Name)
		vars["DATABASE_URL"], vars["WORKER_DATABASE_URL"] = w.servingURL(d, "app"), w.servingURL(d, "worker")
	}
	return vars
}

// migration returns the settings of a service's migrate command.
func (w wiring) migration(s proto.Service) map[string]string {
	d := w.database(s.Name)
	return map[string]string{"MIGRATE_DATABASE_URL": w.databaseURL(d, "owner"), "APP_ROLE": d.Role("app"), "WORKER_ROLE": d.Role("worker")}
}

func (w wiring) signKeys(s proto.Service) string {
	var keys []string
	for _, target := range s.Calls {
		keys = append(keys, target+"="+w.callerKey(s.Name, target))
	}
	return strings.Join(keys, ",")
}

func (w wiring) verifyKeys(s proto.Service) string {
	var keys []string
	for _, from := range proto.Services() {
		if slices.Contains(from.Calls, s.Name) {
			keys = append(keys, from.Name+"="+w.callerKey(from.Name, s.Name))
		}
	}
	return strings.Join(keys, ",")
}

func (w wiring) database(name string) parts.Database {
	d := parts.Database{Name: w.prefix + name, Passwords: map[string]string{}}
	for _, role := range parts.Roles {
		d.Passwords[role] = w.keys.Secret("database." + name + "." + role)
	}
	return d
}

func (w wiring) databaseURL(d parts.Database, role string) string {
	u, _ := d.URL(w.postgresURL, role) // checked before anything was started
	return u
}

// servingURL returns the URL for requests and background work. Commands of the owner, such as migrations, do not use the pooler.
func (w wiring) servingURL(d parts.Database, role string) string {
	direct := w.databaseURL(d, role)
	if w.poolerPort == 0 {
		return direct
	}
	u, _ := parts.Through(direct, w.poolerPort) // checked before anything was started
	return u
}

// settings returns the variables with the addresses of all processes on this machine.
func (w wiring) settings(s proto.Service) []string {
	vars := w.secrets(s)
	vars["HTTP_ADDR"] = w.address(s.Name)
	vars["METRICS_ADDR"] = w.address(s.Name + ".metrics")
	vars["PUBLIC_URL"], vars["AUTH_URL"] = w.publicURL(), w.publicURL()
	if s.Kafka() {
		vars["KAFKA_BROKERS"], vars["KAFKA_TOPIC_PREFIX"] = w.broker, w.topicPrefix
	}
	if w.secretFiles != "" {
		for name := range w.secrets(s) {
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
	if slices.Contains(s.Reaches, "gateways") {
		vars["STRIPE_URL"] = w.stripeURL()
	}
	if s.Database {
		maps.Copy(vars, w.migration(s))
		vars["DATABASE_POOLER"] = strconv.FormatBool(w.poolerPort != 0)
	}
	return lines(vars)
}

// address returns the address on which a process of this machine listens.
func (w wiring) address(name string) string { return parts.Loopback(w.keys.Port(name)) }

func (w wiring) publicURL() string { return "http://" + w.address(proto.PublicService().Name) }

// lines returns variables as a sorted environment.
func lines(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

func (p *platform) wiring() wiring {
	w := wiring{
		keys: p.state, prefix: p.config.Prefix, postgresURL: p.postgresURL, poolerPort: p.poolerPort, redisURL: p.redisURL,
		broker: p.brokers[0], topicPrefix: p.topicPrefix(), run: p.run,
	}
	if p.config.SecretFiles {
		w.secretFiles = filepath.Join(p.run, "services")
	}
	return w
}

// environment returns the complete environment of a service.
func (p *platform) environment(s proto.Service) []string {
	return append(append(inherited(), supervise.OwnerEnv+"="+p.root), p.wiring().settings(s)...)
}

// topicPrefix separates two checkouts that use the same Kafka. In the same groups, each would read a part of the other's events.
func (p *platform) topicPrefix() string {
	return cmp.Or(os.Getenv("KAFKA_TOPIC_PREFIX"), strings.TrimRight(p.config.Prefix, "_.-")+".")
}
