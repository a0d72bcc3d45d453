package main

import (
	"fmt"
	"time"

	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/redisx"
)

// Config are the gateway's own settings. libs/service has those of every process, with the time-outs and limits of the
// HTTP server.
type Config struct {
	RedisURL     string        `env:"REDIS_URL,required"` // one server, a Cluster or Sentinels: libs/redisx
	Redis        redisx.Access // its certificates, and the Sentinels' login
	RedisTimeout time.Duration `env:"REDIS_TIMEOUT" envDefault:"15ms"` // time for Redis to answer; then a request continues without it
	RedisQueue   int           `env:"REDIS_QUEUE" envDefault:"4096"`   // requests that may wait for Redis

	Upstreams peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"` // addresses of the services; UPSTREAM_<NAME>_URL sets a single one
	SignKeys  string         `env:"CALLER_SIGN_KEYS,required" secret:"true"`         // <target>=<kid>:<hex>,…

	UpstreamTimeout  time.Duration `env:"UPSTREAM_TIMEOUT" envDefault:"10s"`         // time for one call, or until a stream's header; then 504
	GatewayTimeout   time.Duration `env:"UPSTREAM_GATEWAY_TIMEOUT" envDefault:"30s"` // the same for a service that waits for a payment gateway: longer than its calls there
	UpstreamMaxConns int           `env:"UPSTREAM_MAX_CONNS" envDefault:"256"`       // connections to each service

	StreamsPerCredential   int           `env:"STREAMS_PER_CREDENTIAL" envDefault:"10"`  // open streams of a credential in this process; one more gets 429
	DownloadsPerCredential int           `env:"DOWNLOADS_PER_CREDENTIAL" envDefault:"2"` // lists as CSV and exports that a credential reads at once in this process; one more gets 429
	StreamWriteTimeout     time.Duration `env:"STREAM_WRITE_TIMEOUT" envDefault:"30s"`   // time for one write to a stream's client; then the stream is closed

	BodyBytesPerCredential int64         `env:"BODY_BYTES_PER_CREDENTIAL" envDefault:"8388608"` // bytes of a credential's bodies at once in this process; more get 429
	BodyBytes              int64         `env:"BODY_BYTES" envDefault:"67108864"`               // bytes of all bodies at once in this process; more get 503
	BodyStallTimeout       time.Duration `env:"BODY_STALL_TIMEOUT" envDefault:"5s"`             // longest pause between the bytes of a body; then the request ends

	RateLimit          int64         `env:"RATE_LIMIT_PER_MINUTE" envDefault:"600"`                // requests per minute of one credential
	TokenRateLimit     int64         `env:"TOKEN_RATE_LIMIT_PER_MINUTE" envDefault:"60"`           // requests per minute of one token in a path, such as a calendar's
	EventRateLimit     int64         `env:"GATEWAY_EVENT_RATE_LIMIT_PER_MINUTE" envDefault:"6000"` // events per minute of one account at a payment gateway from one address
	OAuthRateLimit     int64         `env:"OAUTH_RATE_LIMIT_PER_MINUTE" envDefault:"6000"`         // requests per minute of one network to OAuth and its pages, and as many to the console
	LookupsAtOnce      int           `env:"LOOKUPS_AT_ONCE" envDefault:"16"`                       // parallel look-ups of credentials that were not valid within the last hour; further ones wait
	UnknownPerSecond   int           `env:"UNKNOWN_KEYS_PER_SECOND" envDefault:"100"`              // look-ups a second in this process that may find no credential; a request that waits a second for one gets 429
	PrincipalCacheSize int           `env:"PRINCIPAL_CACHE_SIZE" envDefault:"50000"`               // credentials in the cache
	PrincipalCacheTTL  time.Duration `env:"PRINCIPAL_CACHE_TTL" envDefault:"30s"`                  // time for which a credential is cached
	TrustedProxyHops   int           `env:"TRUSTED_PROXY_HOPS" envDefault:"0"`                     // trusted proxies in front, which add to X-Forwarded-For
}

// check refuses limits that would let no request through.
func (c *Config) check() error {
	for name, n := range map[string]int64{
		"TOKEN_RATE_LIMIT_PER_MINUTE": c.TokenRateLimit, "GATEWAY_EVENT_RATE_LIMIT_PER_MINUTE": c.EventRateLimit, "OAUTH_RATE_LIMIT_PER_MINUTE": c.OAuthRateLimit, "DOWNLOADS_PER_CREDENTIAL": int64(c.DownloadsPerCredential),
		"UPSTREAM_MAX_CONNS": int64(c.UpstreamMaxConns), "LOOKUPS_AT_ONCE": int64(c.LookupsAtOnce), "UNKNOWN_KEYS_PER_SECOND": int64(c.UnknownPerSecond),
		"BODY_BYTES_PER_CREDENTIAL": c.BodyBytesPerCredential, "BODY_BYTES": c.BodyBytes, "BODY_STALL_TIMEOUT": int64(c.BodyStallTimeout),
	} {
		if n < 1 {
			return fmt.Errorf("%s must be above 0", name)
		}
	}
	return nil
}
