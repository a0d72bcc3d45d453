package main

import (
	"errors"
	"net/url"
	"time"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/peers"
)

// Config is the service's own settings beside service.Common.
type Config struct {
	Platform     platform.Config
	RedisURL     string        `env:"REDIS_URL,required"` // of the gateways' Redis: libs/redisx
	Redis        redisx.Access // its certificates, and the Sentinels' login
	Mail         peers.MailAccess
	RedisTimeout time.Duration `env:"REDIS_TIMEOUT" envDefault:"1s"`          // time of one write; no request waits for it
	RateLimit    int           `env:"RATE_LIMIT_PER_MINUTE" envDefault:"600"` // requests, as GET /me answers them; the gateway counts

	EncryptionKeys  string `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…: the first seals
	AuthURL         string `env:"AUTH_URL" envDefault:"http://localhost:8080"`             // where people and apps reach OAuth's pages and endpoints: the issuer, without a path
	PasswordsAtOnce int    `env:"PASSWORDS_AT_ONCE" envDefault:"2"`                        // passwords that are hashed at once in this process, 64 MiB each; further ones wait
}

// defaults are those that differ from the ones of the shared settings.
func defaults() Config { return Config{Platform: platform.Config{DatabaseMaxConns: 10}} }

// mailer returns nil where no mail is set up.
func mailer(c peers.MailAccess) (app.Mailer, error) {
	m, err := peers.NewMailer(c)
	if err != nil || m == nil {
		return nil, err
	}
	return m, nil
}

// toolConfig is what the command line needs. A setting that the environment lacks is taken from the .run/env of a
// running platform, which is looked for from the working folder upwards.
type toolConfig struct {
	DatabaseURL        string `env:"DATABASE_URL"`                                // identity's own, or an administrator's
	WorkerDatabaseURL  string `env:"WORKER_DATABASE_URL"`                         // worker role
	MigrateDatabaseURL string `env:"MIGRATE_DATABASE_URL"`                        // owner role
	AppRole            string `env:"APP_ROLE"`                                    // role that serves
	WorkerRole         string `env:"WORKER_ROLE"`                                 // role of background work
	PostgresURL        string `env:"POSTGRES_URL"`                                // an administrator's
	RedisURL           string `env:"REDIS_URL"`                                   // as identity has it
	AuthURL            string `env:"AUTH_URL" envDefault:"http://localhost:8080"` // one-time links begin with it
	Mail               peers.MailAccess
	Redis              redisx.Access
	Prefix             string `env:"HOLDFAST_PREFIX" envDefault:"holdfast_"` // of database and role names
}

var errNoDatabase = errors.New("no database is named: set DATABASE_URL or POSTGRES_URL, or work in the folder of a running platform (its .run/env)")

func loadTools() (toolConfig, error) {
	var c toolConfig
	if err := service.Load(&c, service.EnvFile()); err != nil {
		return c, err
	}
	if c.ownDatabase() {
		return c, nil
	}
	admin := c.DatabaseURL // the environment's; a file never has it
	if admin == "" {
		admin = c.PostgresURL
	}
	if admin == "" {
		return c, errNoDatabase
	}
	return c, c.derive(admin)
}

// ownDatabase reports whether DATABASE_URL is a service's setting, which never stands alone, and not an
// administrator's URL.
func (c *toolConfig) ownDatabase() bool {
	return c.DatabaseURL != "" && c.WorkerDatabaseURL != ""
}

// derive makes the three URLs out of an administrator's: the same login, in identity's database and its roles, so
// that row-level security holds for it too.
func (c *toolConfig) derive(admin string) error {
	u, err := url.Parse(admin)
	if err != nil {
		return errors.New("POSTGRES_URL or DATABASE_URL is no URL") // the text of err would show the password
	}
	name := c.Prefix + "identity"
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
