package main

import (
	"errors"
	"fmt"
	"time"

	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/secret"

	"holdfast.dev/services/gateway/internal/domain"
)

// Config contains the gateway's own settings, in addition to service.Common, which has the timeouts and limits of the HTTP
// server.
type Config struct {
	bounds

	RedisURL     secret.Setting `env:"REDIS_URL,required" secret:"url"` // URL of one server, a Cluster or Sentinels
	Redis        redisx.Access  // certificates, and the login for Sentinels
	RedisTimeout time.Duration  `env:"REDIS_TIMEOUT" envDefault:"100ms"` // how long a request waits for Redis; then it and the next ones continue without Redis until it responds again

	Upstreams peer.Addresses `env:"UPSTREAM_URL" envDefault:"http://{service}:8080"` // URL of the services; UPSTREAM_<NAME>_URL replaces it for one service
	SignKeys  secret.Setting `env:"CALLER_SIGN_KEYS,required" secret:"true"`         // keys to sign calls to the services: <target>=<kid>:<hex>,…

	UpstreamTimeout time.Duration `env:"UPSTREAM_TIMEOUT" envDefault:"10s"` // time limit of one call, or until the header of a stream arrives; then 504

	Compressions int `env:"COMPRESSIONS" envDefault:"1"` // maximum number of responses that this process compresses at the same time, 0 to 64; others are sent uncompressed, and 0 turns compression off

	RateLimit         int64         `env:"RATE_LIMIT_PER_MINUTE" envDefault:"600"`        // requests per minute of one credential
	TenantRateLimit   int64         `env:"TENANT_RATE_LIMIT_PER_MINUTE" envDefault:"0"`   // requests per minute of all credentials of a tenant in one mode, over all gateways; 0 is five times RATE_LIMIT_PER_MINUTE, and at least 3000
	OAuthRateLimit    int64         `env:"OAUTH_RATE_LIMIT_PER_MINUTE" envDefault:"6000"` // requests per minute of one network to the OAuth endpoints and pages; the same number to the console
	PrincipalCacheTTL time.Duration `env:"PRINCIPAL_CACHE_TTL" envDefault:"30s"`          // how long a credential is cached
	ContinueTraces    bool          `env:"CLIENT_TRACEPARENT" envDefault:"false"`         // whether requests continue the trace of the client's traceparent and follow its sampling decision; false: each request starts a new trace, and TRACE_SAMPLE_RATIO decides
	TrustedProxyHops  int           `env:"TRUSTED_PROXY_HOPS" envDefault:"0"`             // number of trusted proxies in front of the gateway that add to X-Forwarded-For

	Kafka           kafkax.Settings // brokers for the request log, and how to connect to them
	RequestCounts   string          `env:"REQUEST_COUNTS_PATH"`                 // file of 8 MB for the counts of requests that Kafka does not have yet, so that a process that is killed loses none; only one process can use it; empty: they are in memory
	RequestLogReads float64         `env:"REQUEST_LOG_READS" envDefault:"0.01"` // share of the successful reads in the request log, 0 to 1; it has all writes and errors
}

// bounds are the limits that nobody needs to choose. Tests lower them. "Per process" means that n gateways allow n times as much.
type bounds struct {
	GatewayTimeout         time.Duration // of a call to a service that waits for a payment gateway; longer than that service's own calls take
	UpstreamMaxConns       int           // connections to each service
	UpstreamTenantCalls    int           // calls of a tenant, or of an address without a credential, that run at once in each service
	StreamsPerCredential   int           // open streams of a credential, per process
	DownloadsPerCredential int           // parallel CSV downloads and exports of a credential, per process
	MCPMessagesPerTenant   int           // messages of assistants of a tenant in one mode at the same time, per process
	StreamWriteTimeout     time.Duration // of one write to a stream's client; then the stream is closed
	BodyBytesPerCredential int64         // request bodies of a credential in flight, per process
	BodyBytes              int64         // all request bodies in flight, per process
	BodyStallTimeout       time.Duration // longest pause while a body is received
	TokenRateLimit         int64         // requests per minute of one token in a path, such as a calendar feed's
	EventRateLimit         int64         // events per minute of one payment gateway account from one address
	UnknownPerSecond       int           // lookups per second that may find no credential, per process
}

var standard = bounds{
	GatewayTimeout: 30 * time.Second, UpstreamMaxConns: 256, UpstreamTenantCalls: 16, StreamsPerCredential: 10, DownloadsPerCredential: 2,
	MCPMessagesPerTenant: 16, StreamWriteTimeout: 30 * time.Second, BodyBytesPerCredential: 8 << 20, BodyBytes: 64 << 20, BodyStallTimeout: 5 * time.Second,
	TokenRateLimit: 60, EventRateLimit: 6000, UnknownPerSecond: 100,
}

// limits returns the limits of tenants without their own.
func (c *Config) limits() domain.Limits {
	all := c.TenantRateLimit
	if all == 0 {
		all = max(minTenantRateLimit, tenantFactor*c.RateLimit)
	}
	return domain.Limits{Credential: perMinute(c.RateLimit), Tenant: perMinute(all)}
}

// The default of TENANT_RATE_LIMIT_PER_MINUTE.
const (
	tenantFactor       = 5
	minTenantRateLimit = 3000
)

// check rejects limits that would block every request.
func (c *Config) check() error {
	if c.OAuthRateLimit < 1 {
		return errors.New("OAUTH_RATE_LIMIT_PER_MINUTE must be greater than 0")
	}
	if c.TenantRateLimit < 0 {
		return errors.New("TENANT_RATE_LIMIT_PER_MINUTE must be at least 0")
	}
	if c.RequestLogReads < 0 || c.RequestLogReads > 1 {
		return fmt.Errorf("REQUEST_LOG_READS must be from 0 to 1, not %g", c.RequestLogReads)
	}
	if c.Compressions < 0 || c.Compressions > maxCompressions {
		return fmt.Errorf("COMPRESSIONS must be from 0 to %d", maxCompressions)
	}
	return nil
}

// maxCompressions bounds the memory of the encoders.
const maxCompressions = 64
