package main

import (
	"fmt"
	"time"

	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/redisx"
)

// Config are the gateway's own settings; those of every process stand in libs/service, the time-outs and
// limits of its HTTP server among them.
type Config struct {
	RedisURL     string        `env:"REDIS_URL,required"` // one server, a Cluster or Sentinels: libs/redisx
	Redis        redisx.Access // its certificates, and the Sentinels' login
	RedisTimeout time.Duration `env:"REDIS_TIMEOUT" envDefault:"15ms"` // then a request goes on without Redis
	RedisQueue   int           `env:"REDIS_QUEUE" envDefault:"4096"`   // requests that may wait for Redis

	Upstreams peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"` // of the services that answer; UPSTREAM_<NAME>_URL for one
	SignKeys  string         `env:"CALLER_SIGN_KEYS,required" secret:"true"`
	PublicURL string         `env:"PUBLIC_URL"` // where clients reach the gateway; for the start line

	UpstreamTimeout  time.Duration `env:"UPSTREAM_TIMEOUT" envDefault:"10s"`   // of one call, of a stream to its header; then 504
	UpstreamMaxConns int           `env:"UPSTREAM_MAX_CONNS" envDefault:"256"` // per service

	StreamsPerCredential int           `env:"STREAMS_PER_CREDENTIAL" envDefault:"10"` // open at once in this process, then 429
	StreamWriteTimeout   time.Duration `env:"STREAM_WRITE_TIMEOUT" envDefault:"30s"`  // of one write to a stream's client, then it is cut

	BodyBytesPerCredential int64         `env:"BODY_BYTES_PER_CREDENTIAL" envDefault:"8388608"` // of bodies under way at once in this process, then 429
	BodyBytes              int64         `env:"BODY_BYTES" envDefault:"67108864"`               // the same of all credentials together, then 503
	BodyStallTimeout       time.Duration `env:"BODY_STALL_TIMEOUT" envDefault:"5s"`             // without a byte of a body, then it is cut

	RateLimit          int64         `env:"RATE_LIMIT_PER_MINUTE" envDefault:"600"`   // per credential
	LookupsAtOnce      int           `env:"LOOKUPS_AT_ONCE" envDefault:"16"`          // of credentials not seen in the last hour; further ones wait
	UnknownPerSecond   int           `env:"UNKNOWN_KEYS_PER_SECOND" envDefault:"100"` // looked up in this process; those that wait a second for it get 429
	PrincipalCacheSize int           `env:"PRINCIPAL_CACHE_SIZE" envDefault:"50000"`  // credentials that are remembered
	PrincipalCacheTTL  time.Duration `env:"PRINCIPAL_CACHE_TTL" envDefault:"30s"`     // time for which a credential is remembered
	TrustedProxyHops   int           `env:"TRUSTED_PROXY_HOPS" envDefault:"0"`        // proxies whose X-Forwarded-For is believed
}

// check refuses bounds that would let nothing through.
func (c *Config) check() error {
	for name, n := range map[string]int64{
		"UPSTREAM_MAX_CONNS": int64(c.UpstreamMaxConns), "LOOKUPS_AT_ONCE": int64(c.LookupsAtOnce), "UNKNOWN_KEYS_PER_SECOND": int64(c.UnknownPerSecond),
		"BODY_BYTES_PER_CREDENTIAL": c.BodyBytesPerCredential, "BODY_BYTES": c.BodyBytes, "BODY_STALL_TIMEOUT": int64(c.BodyStallTimeout),
	} {
		if n < 1 {
			return fmt.Errorf("%s must be above 0", name)
		}
	}
	return nil
}
