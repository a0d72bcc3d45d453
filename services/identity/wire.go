package main

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/api"
	"holdfast.dev/services/identity/internal/api/oauth"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/consume"
	"holdfast.dev/services/identity/internal/store"
)

// auditWait gathers events: what they record of a tenant is one link of its chain after another, cheap only in batches.
const auditWait = time.Second

const endingsEvery = 5 * time.Second

// Memory of the process where nothing else limits it, besides what its passwords take.
const otherMemory = 256 << 20

// boundMemory lets the collector work in time where neither a container nor GOMEMLIMIT sets a limit: each password leaves 64 MiB behind.
func boundMemory(passwords int) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(otherMemory + int64(passwords)*app.PasswordMemory)
	}
}

// wire builds everything, top to bottom, and registers it with rt; stopping runs upwards.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	boundMemory(cfg.PasswordsAtOnce)
	box, err := crypt.NewBox(cfg.EncryptionKeys)
	if err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{Box: box})
	if err != nil {
		return err
	}
	redis, err := redisx.Open(cfg.RedisURL, redisx.Options{Timeout: cfg.RedisTimeout, PoolSize: 4, Access: cfg.Redis})
	if err != nil {
		return err
	}
	rt.OnStop("redis", func(context.Context) error { return redis.Close() })
	mailer, err := mailer(cfg.Mail)
	if err != nil {
		return err
	}
	passwords := app.NewPasswords(cfg.PasswordsAtOnce)
	identity := &app.App{
		DB: p.DB, Worker: p.Worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes,
		Passwords: passwords, Metrics: app.NewMetrics(rt.Metrics, passwords), Box: box,
		Now: time.Now, Log: rt.Log, Wake: p.Relay.Wake, Mailer: mailer, AuthURL: cfg.AuthURL,
	}
	server, err := oauth.New(oauth.Options{
		App: identity, Box: box, AuthURL: cfg.AuthURL, Resource: rt.Common.PublicURL + "/api/v1", Docs: rt.Common.PublicURL + "/docs", Now: time.Now,
	})
	if err != nil {
		return err
	}
	rt.Go("oauth sweep", identity.SweepOAuth)
	rt.Every("operator endings", endingsEvery, func(ctx context.Context) error { return identity.FinishEndings(ctx, nil) })
	rt.Go("signals", identity.RetryPublish)
	lastUse := &app.LastUse{Worker: p.Worker, Log: rt.Log}
	rt.Go("last use", lastUse.Run)
	events := consume.New(identity)
	consumer := p.Consume(events.Handle)
	consumer.HandleBatch, consumer.FetchWait = events.HandleBatch, auditWait

	handlers := &api.API{
		DB:        p.DB,
		App:       identity,
		Answers:   p.Idem,
		LastUse:   lastUse,
		RateLimit: cfg.RateLimit,
		Server:    p.Server,
		OAuth:     server,
		Now:       time.Now,
	}
	return p.Serve(handlers.Mount)
}
