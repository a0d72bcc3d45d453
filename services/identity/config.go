package main

import (
	"errors"
	"time"

	"holdfast.dev/libs/egress"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/secret"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
)

// Config contains the service's own settings, in addition to service.Common.
type Config struct {
	Platform        platform.Config
	RedisURL        secret.Setting `env:"REDIS_URL,required" secret:"url"` // URL of the Redis that the gateways use
	Redis           redisx.Access  // its certificates, and the Sentinels' login
	Mail            peers.MailAccess
	RateLimit       int            `env:"RATE_LIMIT_PER_MINUTE" envDefault:"600"`                  // rate limit that GET /me returns; the gateway enforces it
	Upstreams       peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"`         // URL of the services that this one calls; UPSTREAM_<NAME>_URL replaces it for one service
	SignKeys        secret.Setting `env:"CALLER_SIGN_KEYS,required" secret:"true"`                 // keys to sign calls to other services: <target>=<kid>:<hex>,…
	EncryptionKeys  secret.Setting `env:"SERVICE_ENCRYPTION_KEYS,required,notEmpty" secret:"true"` // <kid>:<hex of 32 bytes>,…; the first key encrypts
	AuthURL         string         `env:"AUTH_URL" envDefault:"http://localhost:8080"`             // URL of the OAuth pages and endpoints as people and apps reach them, without a path; it is the issuer
	AllowedCIDRs    []string       `env:"CLIENT_DOCUMENT_ALLOWED_CIDRS"`                           // for development, if AUTH_URL is http on a loopback address: address ranges of client ID metadata documents to allow in addition to public addresses
	PlatformAddr    string         `env:"PLATFORM_ADDR"`                                           // address of the platform API, such as :8081; empty: it is off
	ClosingPeriod   time.Duration  `env:"TENANT_CLOSING_PERIOD" envDefault:"720h"`                 // how long the data of a closing tenant can be read before it is erased; the same for the command line
	PasswordsAtOnce int            `env:"PASSWORDS_AT_ONCE" envDefault:"2"`                        // maximum number of passwords hashed in parallel in this process, with 64 MiB each; further ones wait
}

// defaults returns the defaults that differ from those of the shared settings.
func defaults() Config { return Config{Platform: platform.Config{DatabaseMaxConns: 10}} }

// documentGuard returns the guard for client ID metadata documents. On a platform that others can reach, anybody could use an additional range
// to send requests into it, so the setting is an error there.
func documentGuard(cfg Config) (*egress.Guard, error) {
	if len(cfg.AllowedCIDRs) > 0 && !domain.LocalURL(cfg.AuthURL) {
		return nil, errors.New("CLIENT_DOCUMENT_ALLOWED_CIDRS is for development: remove it, or set AUTH_URL to http on a loopback address")
	}
	return egress.NewGuard("CLIENT_DOCUMENT_ALLOWED_CIDRS", cfg.AllowedCIDRs)
}

// mailer returns nil if mail is not configured.
func mailer(c peers.MailAccess) (app.Mailer, error) {
	m, err := peers.NewMailer(c)
	if err != nil || m == nil {
		return nil, err
	}
	return m, nil
}
