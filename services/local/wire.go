package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"holdfast.dev/services/local/internal/parts"
	"holdfast.dev/services/local/internal/supervise"
)

// service is one process of the platform. Adding one here is all that a new
// process needs.
type service struct {
	name     string
	database bool     // owns a database of its name
	calls    []string // the services it calls, each with a key of its own
}

// services in the order of their start; they stop in the reverse order.
var services = []service{
	{name: "identity", database: true},
	{name: "customers", database: true, calls: []string{"identity", "bookings"}},
	{name: "bookings", database: true, calls: []string{"identity", "customers"}},
	{name: "webhooks", database: true},
	{name: "gateway", calls: []string{"identity", "customers", "bookings", "webhooks"}},
}

// keyID names the first generation of every key.
const keyID = "k1"

// key is a generated 32-byte key with its id, as the services take it.
func (p *platform) key(name string) string { return keyID + ":" + p.state.Secret(name) }

// callerKey is the key that signs the calls of one service to another.
func (p *platform) callerKey(from, to string) string {
	return p.key("caller." + from + "." + to)
}

// environment is the whole environment of a service.
func (p *platform) environment(s service) []string {
	return append(append(inherited(), supervise.OwnerEnv+"="+p.root), p.settings(s)...)
}

// settings are the variables that tell a service where everything is.
func (p *platform) settings(s service) []string {
	var vars []string
	set := func(name, value string) { vars = append(vars, name+"="+value) }
	set("HTTP_ADDR", p.address(s.name))
	set("METRICS_ADDR", p.address(s.name+".metrics"))
	set("REDIS_URL", p.redisURL)
	set("KAFKA_BROKERS", p.brokers[0])
	set("KAFKA_TOPIC_PREFIX", p.topicPrefix())
	set("CURSOR_KEYS", p.key("cursor"))
	set("SERVICE_ENCRYPTION_KEYS", p.key("encryption."+s.name))
	set("CALLER_SIGN_KEYS", p.signKeys(s))
	set("CALLER_VERIFY_KEYS", p.verifyKeys(s))
	for _, other := range services {
		if other.name != "gateway" {
			set(strings.ToUpper(other.name)+"_URL", "http://"+p.address(other.name))
		}
	}
	if s.name == "gateway" {
		set("PUBLIC_URL", p.publicURL())
	}
	if s.name == "webhooks" {
		set("WEBHOOK_ALLOWED_CIDRS", "127.0.0.0/8,::1/128") // receivers on this machine
	}
	if s.database {
		d := p.database(s.name)
		set("DATABASE_URL", p.databaseURL(d, "app"))
		set("WORKER_DATABASE_URL", p.databaseURL(d, "worker"))
		set("MIGRATE_DATABASE_URL", p.databaseURL(d, "owner"))
		set("APP_ROLE", d.Role("app"))
		set("WORKER_ROLE", d.Role("worker"))
	}
	return vars
}

func (p *platform) signKeys(s service) string {
	var keys []string
	for _, target := range s.calls {
		keys = append(keys, target+"="+p.callerKey(s.name, target))
	}
	return strings.Join(keys, ",")
}

func (p *platform) verifyKeys(s service) string {
	var keys []string
	for _, from := range services {
		if slices.Contains(from.calls, s.name) {
			keys = append(keys, from.name+"="+p.callerKey(from.name, s.name))
		}
	}
	return strings.Join(keys, ",")
}

func (p *platform) database(name string) parts.Database {
	d := parts.Database{Name: p.config.Prefix + name, Passwords: map[string]string{}}
	for _, role := range parts.Roles {
		d.Passwords[role] = p.state.Secret("database." + name + "." + role)
	}
	return d
}

func (p *platform) databaseURL(d parts.Database, role string) string {
	u, _ := d.URL(p.postgresURL, role) // was checked before anything was started
	return u
}

func (p *platform) address(name string) string { return parts.Loopback(p.state.Port(name)) }

// topicPrefix keeps two checkouts apart that were given one Kafka: in the same
// groups each would read half of both's events.
func (p *platform) topicPrefix() string {
	return cmp.Or(os.Getenv("KAFKA_TOPIC_PREFIX"), strings.TrimRight(p.config.Prefix, "_.-")+".")
}

func (p *platform) publicURL() string {
	return "http://" + p.address("gateway")
}
