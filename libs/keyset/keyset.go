// Package keyset contains the Secrets of a platform: new values for them, a check that the services accept each other's keys, and the
// steps of a rotation. proto/services.yaml and the settings of the services specify which Secrets there are and what each contains.
package keyset

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"
)

// The settings that contain keys.
const (
	signKeys       = "CALLER_SIGN_KEYS"
	verifyKeys     = "CALLER_VERIFY_KEYS"
	cursorKeys     = "CURSOR_KEYS"
	encryptionKeys = "SERVICE_ENCRYPTION_KEYS"
)

// firstKey is the id of the first key of each kind. Rotations count upwards from it.
const firstKey = "k1"

// migration ends the name of the Secret of a migration.
const migration = "-migrate"

// Set contains the settings in each Secret, by its name without the release, such as "bookings" or "bookings-migrate".
type Set map[string]map[string]string

// Names returns the names of all Secrets, without the release, in the order of the services.
func Names() []string {
	var names []string
	for _, s := range proto.Services() {
		names = append(names, s.Name)
		if s.Database {
			names = append(names, s.Name+migration)
		}
	}
	return names
}

// settings returns the settings that the Secret of a name must have.
func settings(name string) []string {
	if service, ok := strings.CutSuffix(name, migration); ok {
		if s, _ := proto.ServiceNamed(service); s.Database {
			return proto.MigrationSecrets()
		}
	}
	s, _ := proto.ServiceNamed(name)
	return s.Secrets()
}

// Pair is a service that calls another one.
type Pair struct{ From, To string }

// String returns the pair in the form in which Rotate accepts it.
func (p Pair) String() string { return p.From + "/" + p.To }

// Pairs returns all pairs, in the order of the services.
func Pairs() []Pair {
	var all []Pair
	for _, s := range proto.Services() {
		for _, to := range s.Calls {
			all = append(all, Pair{s.Name, to})
		}
	}
	return all
}

// Source provides what the values consist of.
type Source struct {
	Key        func(name string) string // 32 bytes in hexadecimal for a name, each time the same for the same name
	Prefix     string                   // of the names of databases and roles, such as holdfast_
	Server     string                   // URL of PostgreSQL; its user and database are replaced
	ServingURL string                   // the same for requests and background work, such as that of a pooler; empty: Server
	Redis      string                   // URL
}

var errServer = errors.New("the URL of PostgreSQL is not valid: want postgres://HOST:PORT/?sslmode=…")

// New returns all Secrets.
func (o Source) New() (Set, error) {
	for _, server := range []string{o.Server, o.serving()} {
		if u, err := url.Parse(server); err != nil || u.Host == "" && u.Query().Get("host") == "" || !strings.HasPrefix(u.Scheme, "postgres") {
			return nil, errServer // the text of err would contain the password
		}
	}
	set := Set{}
	for _, s := range proto.Services() {
		set[s.Name] = o.Serving(s)
		if s.Database {
			set[s.Name+migration] = o.Migration(s)
		}
	}
	return set, nil
}

// Serving returns the Secret of a service.
func (o Source) Serving(s proto.Service) map[string]string {
	values := map[string]string{}
	for _, setting := range s.Secrets() {
		values[setting] = o.value(s, setting)
	}
	return values
}

// Migration returns the Secret of the migration of a service's database.
func (o Source) Migration(s proto.Service) map[string]string {
	d := pg.DatabaseOf(o.Prefix + s.Name)
	return map[string]string{"MIGRATE_DATABASE_URL": o.database(o.Server, s, "owner", d.Owner), "APP_ROLE": d.App, "WORKER_ROLE": d.Worker}
}

// PasswordName returns the name of the key that is the password of a role of a service's database: owner, app or worker.
func PasswordName(service, role string) string { return "database." + service + "." + role }

func (o Source) serving() string {
	if o.ServingURL != "" {
		return o.ServingURL
	}
	return o.Server
}

func (o Source) value(s proto.Service, setting string) string {
	d := pg.DatabaseOf(o.Prefix + s.Name)
	switch setting {
	case "REDIS_URL":
		return o.Redis
	case "DATABASE_URL":
		return o.database(o.serving(), s, "app", d.App)
	case "WORKER_DATABASE_URL":
		return o.database(o.serving(), s, "worker", d.Worker)
	case cursorKeys:
		return o.key("cursor." + s.Name)
	case encryptionKeys:
		return o.key("encryption." + s.Name)
	case signKeys:
		return o.callers(s.Calls, func(peer string) Pair { return Pair{s.Name, peer} })
	case verifyKeys:
		return o.callers(s.Callers(), func(peer string) Pair { return Pair{peer, s.Name} })
	}
	return "" // Check reports a required setting without a value
}

// callers returns the keys with each peer of a service.
func (o Source) callers(peers []string, pair func(peer string) Pair) string {
	keys := make([]string, len(peers))
	for i, peer := range peers {
		p := pair(peer)
		keys[i] = peer + "=" + o.key(fmt.Sprintf("caller.%s.%s", p.From, p.To))
	}
	return strings.Join(keys, ",")
}

func (o Source) key(name string) string { return firstKey + ":" + o.Key(name) }

// database returns a server's URL with a role of a service's database. The server was checked by New.
func (o Source) database(server string, s proto.Service, role, login string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	u.User, u.Path = url.UserPassword(login, o.Key(PasswordName(s.Name, role))), "/"+o.Prefix+s.Name
	return u.String()
}
