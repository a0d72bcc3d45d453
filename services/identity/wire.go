package main

import (
	"context"
	"maps"
	"math"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/api"
	"holdfast.dev/services/identity/internal/api/oauth"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/consume"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/peers"
	"holdfast.dev/services/identity/internal/store"
)

// auditWait is how long events are collected. The records of a tenant form one chain, so writing them is only efficient in batches.
const auditWait = time.Second

const (
	redisTimeout  = time.Second // of one write; no request waits for it
	endingsEvery  = 5 * time.Second
	erasuresEvery = 2 * time.Second
	grantsEvery   = 2 * time.Second
	usageEvery    = 30 * time.Second // how often to ask a service again that is not ready for the usage of a day
	countEvery    = 15 * time.Second // how often to count erasures and days of usage that are due
)

// otherMemory is the memory of the process in addition to that for passwords, if nothing else limits it.
const otherMemory = 256 << 20

// boundMemory makes the garbage collector run in time if neither a container nor GOMEMLIMIT sets a limit, because each password
// leaves 64 MiB behind.
func boundMemory(passwords int) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(otherMemory + int64(passwords)*app.PasswordMemory)
	}
}

// wire builds everything from top to bottom and registers it with rt. It stops in the reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	boundMemory(cfg.PasswordsAtOnce)
	box, err := crypt.FollowKeys(cfg.EncryptionKeys)
	if err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{Box: box})
	if err != nil {
		return err
	}
	redis, err := redisx.Open(cfg.RedisURL.Get(), redisx.Options{Login: cfg.RedisURL, Timeout: redisTimeout, PoolSize: 4, Access: cfg.Redis})
	if err != nil {
		return err
	}
	rt.OnStop("redis", func(context.Context) error { return redis.Close() })
	mailer, err := mailer(cfg.Mail)
	if err != nil {
		return err
	}
	to, err := cfg.Upstreams.Clients(name, cfg.SignKeys)
	if err != nil {
		return err
	}
	passwords := app.NewPasswords(cfg.PasswordsAtOnce)
	identity := &app.App{
		DB: p.DB, Worker: p.Worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes,
		Passwords: passwords, Metrics: app.NewMetrics(rt.Metrics, passwords), Box: box,
		Now: time.Now, Log: rt.Log, Wake: p.Relay.Wake, Mailer: mailer, AuthURL: cfg.AuthURL, ClosingPeriod: cfg.ClosingPeriod,
	}
	resets := app.NewPasswordResets(identity)
	if resets != nil {
		rt.Go("password resets", resets.Run)
	}
	guard, err := documentGuard(cfg)
	if err != nil {
		return err
	}
	documents := app.NewClientDocuments(identity, peers.NewClientDocuments(guard, &net.Resolver{PreferGo: true}, nil))
	server, err := oauth.New(oauth.Options{
		App: identity, Documents: documents, Box: box, Resets: resets, AuthURL: cfg.AuthURL, PublicURL: strings.TrimSuffix(rt.Common.PublicURL, "/"), Now: time.Now,
	})
	if err != nil {
		return err
	}
	rt.Go("oauth sweep", identity.SweepOAuth)
	rt.Every("operator endings", endingsEvery, func(ctx context.Context) error { return identity.FinishEndings(ctx, nil) })
	rt.Go("signals", identity.RetryPublish)
	erasures := &app.Erasures{App: identity, Own: p.Eraser, Services: map[string]app.ErasureService{}, Platform: domain.PlatformTenant}
	metering := &app.Metering{App: identity, Sources: map[string]app.UsageSource{
		name: &peers.OwnUsage{Source: &usage.Source{Service: name, DB: identity.DB}},
	}}
	for name, client := range to {
		erasures.Services[name] = &peers.Erasure{Client: client}
		metering.Sources[name] = &peers.Usage{Client: client}
	}
	if client := to["webhooks"]; client != nil {
		grants := &app.EndpointGrants{DB: p.DB, Holders: &peers.EndpointGrants{Client: client}, Now: time.Now}
		rt.Every("endpoint grants", grantsEvery, grants.Run)
	}
	rt.Every("tenant erasures", erasuresEvery, erasures.Run)
	rt.Every("usage", usageEvery, metering.RecordUsage)
	rt.Every("unfinished work", countEvery, app.NewUnfinished(p.Worker, time.Now, rt.Metrics).Run)
	lastUse := &app.LastUse{Worker: p.Worker, Log: rt.Log}
	rt.Go("last use", lastUse.Run)
	events := consume.New(identity)
	consumer := p.Consume(events.Handle)
	consumer.HandleBatch, consumer.FetchWait = events.HandleBatch, auditWait

	handlers := &api.API{
		DB:          p.DB,
		App:         identity,
		Idempotency: p.Idempotency,
		LastUse:     lastUse,
		RateLimit:   cfg.RateLimit,
		Server:      p.Server,
		OAuth:       server,
		Now:         time.Now,
	}
	if err := servePlatform(rt, cfg, &api.PlatformAPI{ //nolint:contextcheck // requests have contexts of their own
		App: identity, Metering: metering, Idempotency: p.Idempotency, Server: &httpx.Server{Service: "identity", Idempotency: p.Idempotency}, Now: time.Now,
		ErasedServices: slices.Sorted(maps.Keys(to)),
	}); err != nil {
		return err
	}
	return p.Serve(handlers.Mount)
}

// servePlatform serves the platform API on its own address, if it is set.
func servePlatform(rt *service.Runtime, cfg Config, platform *api.PlatformAPI) error {
	if cfg.PlatformAddr == "" {
		return nil
	}
	engine := httpx.NewEngine(rt.Common.PublicURL)
	if err := platform.Mount(engine); err != nil {
		return err
	}
	rt.HTTP(cfg.PlatformAddr, engine)
	return nil
}
