package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"

	"holdfast.dev/services/gateway/internal/api"
	"holdfast.dev/services/gateway/internal/api/assistant"
	"holdfast.dev/services/gateway/internal/api/docs"
	"holdfast.dev/services/gateway/internal/app"
	"holdfast.dev/services/gateway/internal/domain"
	"holdfast.dev/services/gateway/internal/peers"
	"holdfast.dev/services/gateway/internal/store"
)

// wire builds the object graph and registers the parts that run.
func wire(rt *service.Runtime, cfg Config) error {
	pages, err := documents(rt.Common.PublicURL)
	if err != nil {
		return err
	}
	cluster, err := cfg.Kafka.Cluster()
	if err != nil {
		return err
	}
	// Each has a client of its own: a message for a topic that Kafka does not know waits as long as the first one of its client.
	entries, counts := kafkax.NewWriter(cluster, topics(cfg.Kafka.Partitions)...), kafkax.NewWriter(cluster, topics(cfg.Kafka.Partitions)...)
	server, redis, err := build(cfg, pages, entries, counts, rt.Log, rt.Metrics)
	if err != nil {
		return err
	}
	server.PublicURL = rt.Common.PublicURL
	server.ReadTimeout = rt.Common.HTTP.ReadTimeout
	if !server.Docs.Scalar {
		rt.Log.Info("API reference served as a plain page: built without Node.js, which embeds Scalar")
	}
	rt.OnStop("redis", func(context.Context) error { return redis.Close() })
	rt.Go("redis", redis.Run)
	rt.OnStop("kafka", func(context.Context) error {
		return errors.Join(entries.Close(), counts.Close(), server.Pipeline.Counts.Close())
	})
	rt.Go("request log", server.Pipeline.Requests.Run)  // it stops after the server, and writes the last entries
	rt.Go("request counts", server.Pipeline.Counts.Run) // the same
	handler := server.Handler()
	server.Assistant = assistant.New(strings.TrimSuffix(server.PublicURL, "/"), rt.Observed(handler), rt.Log)
	rt.PublicHTTP(rt.Common.HTTPAddr, cfg.ContinueTraces, handler)
	// This is registered after the server, so it stops first: the server's stop waits for running requests.
	rt.OnStop("streams", func(context.Context) error {
		server.Pipeline.Streams.Stop()
		server.Pipeline.Downloads.Stop()
		return nil
	})
	return nil
}

// topics returns the topics that the gateway writes.
func topics(partitions int) (list []kafkax.Topic) {
	for _, name := range proto.PublicService().Topics {
		list = append(list, kafkax.Topic{Name: name, Partitions: partitions})
	}
	return list
}

// documents returns the documents and pages that the gateway serves at a URL. Deriving them from the contract takes 0.3 s.
func documents(publicURL string) (*docs.Pages, error) {
	c, err := contract.Public()
	if err != nil {
		return nil, err
	}
	return docs.New(proto.OpenAPI, publicURL, c, docs.Embedded())
}

// build is wire without the process, for tests.
func build(cfg Config, pages *docs.Pages, entries, counts kafkax.Producer, log *slog.Logger, reg prometheus.Registerer) (*api.Server, *store.Redis, error) {
	if err := cfg.check(); err != nil {
		return nil, nil, err
	}
	c, err := contract.Public()
	if err != nil {
		return nil, nil, err
	}
	keys, err := caller.FollowKeys(cfg.SignKeys)
	if err != nil {
		return nil, nil, err
	}
	signer := &caller.Signer{From: "gateway", Keys: keys}
	metrics := app.NewMetrics(reg)
	upstreams, err := upstreams(cfg, c, signer, log, metrics)
	if err != nil {
		return nil, nil, err
	}
	redis, err := store.Open(cfg.RedisURL.Get(), store.Options{
		Login:   cfg.RedisURL,
		Timeout: cfg.RedisTimeout, Queue: redisQueue, Access: cfg.Redis, Dropped: metrics.Dropped.Inc,
		Changed: func(down bool) { redisChanged(down, log, metrics) },
	})
	if err != nil {
		return nil, nil, err
	}
	waiting, err := store.OpenCounts(cfg.RequestCounts)
	if err != nil {
		return nil, nil, fmt.Errorf("REQUEST_COUNTS_PATH: %w", err)
	}
	metrics.Breaker.WithLabelValues(lookups).Set(0)
	toIdentity, err := cfg.Upstreams.Client("identity", signer)
	if err != nil {
		return nil, nil, err
	}
	limits := app.NewLookups(lookupsAtOnce, cfg.UnknownPerSecond)
	toIdentity.Changed = func(state string) { metrics.Breaker.WithLabelValues(lookups).Set(breakerStates[state]) }
	identity := &peers.Identity{Client: toIdentity}
	local := app.NewCounters(principalCacheSize)
	compressor, err := api.NewCompressor(cfg.Compressions)
	if err != nil {
		return nil, nil, err
	}
	return &api.Server{
		Contract:   c,
		Docs:       pages,
		Compressor: compressor,
		Hops:       cfg.TrustedProxyHops,

		BodyStallTimeout: cfg.BodyStallTimeout,
		Pipeline: &app.Pipeline{
			Principals: app.NewPrincipals(identity.Lookup, app.PrincipalOptions{
				TTL: cfg.PrincipalCacheTTL, Size: principalCacheSize, Lookups: limits, Local: local, Limits: cfg.limits(),
			}, metrics),
			Origins:  app.NewOrigins(identity.OriginRegistered),
			Redis:    redis,
			Local:    local,
			Limits:   cfg.limits(),
			Browsers: perMinute(cfg.OAuthRateLimit),
			Tokens: app.NewTokens(app.TokenOptions{
				Missing: domain.ErrNoFeed, TTL: cfg.PrincipalCacheTTL, Size: principalCacheSize, Lookups: limits,
				Limit: perMinute(cfg.TokenRateLimit),
			}),
			Accounts: app.NewTokens(app.TokenOptions{
				Missing: domain.ErrNoAccount, TTL: cfg.PrincipalCacheTTL, Size: principalCacheSize, Lookups: limits,
				Limit: perMinute(cfg.EventRateLimit),
			}),
			Upstreams:  upstreams,
			Streams:    app.NewStreams(cfg.StreamsPerCredential, "streams", metrics),
			Downloads:  app.NewStreams(cfg.DownloadsPerCredential, "downloads", metrics),
			Assistants: app.NewAssistants(cfg.MCPMessagesPerTenant, metrics),
			Bodies:     app.NewBodies(cfg.BodyBytesPerCredential, cfg.BodyBytes, metrics),
			Requests:   app.NewRequestLogs(entries, cfg.RequestLogReads, log, metrics),
			Counts:     app.NewRequestCounts(waiting, counts, log, metrics),
			Metrics:    metrics,
		},
	}, redis, nil
}

func perMinute(n int64) domain.Limit { return domain.Limit{Max: n, Per: time.Minute.Microseconds()} }

const (
	redisQueue         = 4096  // maximum number of requests that wait for Redis
	lookupsAtOnce      = 16    // parallel lookups of credentials that were not valid within the last hour
	principalCacheSize = 50000 // credentials in the cache
)

// breakerStates contains the values of the metric.
var breakerStates = map[string]float64{"closed": 0, "half-open": 1, "open": 2}

// lookups is the metric label of the breaker for lookups in identity, which is separate from the breaker for clients' calls to
// identity.
const lookups = "identity look-ups"

// upstreams creates one Upstream per service that the gateway calls. It fails if the contract names a service that is not in
// proto/services.yaml.
func upstreams(cfg Config, c *contract.Contract, signer *caller.Signer, log *slog.Logger, m *app.Metrics) (map[string]app.Upstream, error) {
	out := map[string]app.Upstream{}
	calls := proto.PublicService().Calls
	for _, op := range c.Operations() {
		if !slices.Contains(calls, op.Service) {
			return nil, fmt.Errorf("the contract's operation %s is served by %s, which proto/services.yaml does not let the gateway call", op.ID, op.Service)
		}
	}
	for _, name := range calls {
		address, err := cfg.Upstreams.Of(name)
		if err != nil {
			return nil, err
		}
		up, err := peers.NewUpstream(name, address, signer, peers.UpstreamOptions{
			Timeout: timeoutOf(cfg, name), MaxConns: cfg.UpstreamMaxConns, ClientCalls: clientCallsOf(cfg, name), StreamWriteTimeout: cfg.StreamWriteTimeout,
			Changed: func(target, state string) {
				m.Breaker.WithLabelValues(target).Set(breakerStates[state])
				log.Warn("circuit breaker", slog.String("service", target), slog.String("state", state))
			},
		})
		if err != nil {
			return nil, err
		}
		m.Breaker.WithLabelValues(name).Set(0)
		out[name] = up
	}
	return out, nil
}

// timeoutOf returns the time limit of a call.
func timeoutOf(cfg Config, name string) time.Duration {
	if waitsForGateways(name) {
		return cfg.GatewayTimeout
	}
	return cfg.UpstreamTimeout
}

// clientCallsOf returns how many calls of a client run at once. Calls that wait for a payment gateway use no processor, so more of them
// can wait.
func clientCallsOf(cfg Config, name string) int {
	if waitsForGateways(name) {
		return max(1, cfg.UpstreamMaxConns/4)
	}
	return min(cfg.UpstreamTenantCalls, cfg.UpstreamMaxConns)
}

// waitsForGateways reports whether a service waits for payment gateways, or calls a service that does.
func waitsForGateways(name string) bool {
	waits := func(name string) bool {
		s, ok := proto.ServiceNamed(name)
		return ok && slices.Contains(s.Reaches, "gateways")
	}
	s, ok := proto.ServiceNamed(name)
	return waits(name) || ok && !s.Database && slices.ContainsFunc(s.Calls, waits)
}

// redisChanged logs once per outage, not once per request, that rate limits are local.
func redisChanged(down bool, log *slog.Logger, m *app.Metrics) {
	if down {
		m.RedisDown.Set(1)
		log.Warn("Redis unavailable: rate limits are counted in this process, and services replay responses")
		return
	}
	m.RedisDown.Set(0)
	log.Info("Redis available again")
}
