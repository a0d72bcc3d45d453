package command

import (
	"context"
	"errors"
	"net/url"
	"time"

	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/redisx"
	settings "holdfast.dev/libs/service"

	"holdfast.dev/services/identity/internal/peers"
	"holdfast.dev/services/identity/migrations"
)

// Settings contains the settings of the commands on the database. Missing settings are read from the .run/env of a running platform,
// in the working folder or a folder above it.
type Settings struct {
	DatabaseURL        string `env:"DATABASE_URL" secret:"url"`                   // identity's own URL, or an administrator's
	WorkerDatabaseURL  string `env:"WORKER_DATABASE_URL" secret:"url"`            // URL of the database in the worker role
	Pooler             bool   `env:"DATABASE_POOLER"`                             // true: both are addresses of a pooler in transaction mode
	MigrateDatabaseURL string `env:"MIGRATE_DATABASE_URL" secret:"url"`           // URL of the database in the owner role
	AppRole            string `env:"APP_ROLE"`                                    // role of the serving process
	WorkerRole         string `env:"WORKER_ROLE"`                                 // role of background work
	PostgresURL        string `env:"POSTGRES_URL" secret:"url"`                   // an administrator's URL
	RedisURL           string `env:"REDIS_URL" secret:"url"`                      // the same as for identity
	AuthURL            string `env:"AUTH_URL" envDefault:"http://localhost:8080"` // one-time links start with this URL
	Mail               peers.MailAccess
	Redis              redisx.Access
	ClosingPeriod      time.Duration `env:"TENANT_CLOSING_PERIOD" envDefault:"720h"` // the same as for identity
	Prefix             string        `env:"HOLDFAST_PREFIX" envDefault:"holdfast_"`  // prefix of database and role names
}

var errNoDatabase = errors.New("no database configured: set DATABASE_URL or POSTGRES_URL, or run the command in the folder of a running platform (with .run/env)")

// Migrate migrates the database.
func Migrate(ctx context.Context, c Settings) (err error) {
	if c.MigrateDatabaseURL == "" {
		if c, err = load(); err != nil {
			return err
		}
	}
	return pg.Migrate(ctx, c.MigrateDatabaseURL, migrations.FS, pg.Roles{App: c.AppRole, Worker: c.WorkerRole})
}

func load() (Settings, error) {
	var c Settings
	if err := settings.Load(&c, settings.EnvFile()); err != nil {
		return c, err
	}
	if c.DatabaseURL != "" && c.WorkerDatabaseURL != "" { // the service's setting, which is never the only one
		return c, nil
	}
	admin := c.DatabaseURL // from the environment; a file never contains it
	if admin == "" {
		admin = c.PostgresURL
	}
	if admin == "" {
		return c, errNoDatabase
	}
	return c, c.derive(admin)
}

// derive builds the three URLs from an administrator's URL. They have the same login, but identity's database and roles, so that
// row-level security also applies.
func (c *Settings) derive(admin string) error {
	u, err := url.Parse(admin)
	if err != nil {
		return errors.New("POSTGRES_URL or DATABASE_URL is not a valid URL") // the text of err would contain the password
	}
	name := c.Prefix + service
	u.Path = "/" + name
	as := func(role string) string {
		q := u.Query()
		q.Set("role", role)
		v := *u
		v.RawQuery = q.Encode()
		return v.String()
	}
	c.AppRole, c.WorkerRole = name+"_app", name+"_worker"
	c.DatabaseURL, c.WorkerDatabaseURL, c.MigrateDatabaseURL = as(c.AppRole), as(c.WorkerRole), as(name+"_owner")
	return nil
}
