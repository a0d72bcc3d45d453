package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/redisx"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"
	"holdfast.dev/services/identity/internal/api"
	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/consume"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

const sweepEvery = time.Minute

// wire builds the serving process, top to bottom; what is registered last stops first.
func wire(ctx context.Context, rt *service.Runtime, cfg config) error {
	keys, err := caller.ParseKeys(cfg.CallerVerifyKeys)
	if err != nil {
		return err
	}
	cluster, err := cfg.Kafka.Cluster()
	if err != nil {
		return err
	}
	c, err := contract.Load(proto.OpenAPI)
	if err != nil {
		return err
	}
	db, err := pg.OpenIn(ctx, rt, "postgres", cfg.DatabaseURL, pg.Options{MaxConns: cfg.DatabaseMaxConns, StatementTimeout: cfg.Database.StatementTimeout})
	if err != nil {
		return err
	}
	worker, err := pg.OpenIn(ctx, rt, "postgres worker", cfg.WorkerDatabaseURL, pg.Options{MaxConns: 4, Background: true})
	if err != nil {
		return err
	}
	redis, err := redisx.Open(cfg.RedisURL, redisx.Options{
		Timeout: time.Duration(cfg.RedisTimeoutMS) * time.Millisecond, PoolSize: 4, Access: cfg.Redis,
	})
	if err != nil {
		return err
	}
	rt.OnStop("redis", func(context.Context) error { return redis.Close() })

	writer := kafkax.NewWriter(cluster, topics(cfg.Kafka.Partitions)...)
	rt.OnStop("kafka", func(context.Context) error { return writer.Close() })
	relay := outbox.NewRelay(worker, writer, rt.Log, rt.Metrics)
	relay.BatchBytes = rt.Common.BatchBytes
	rt.Go("relay", kafkax.WithTopics(cluster, topics(cfg.Kafka.Partitions), relay.Run))
	rt.Every("inbox sweeper", sweepEvery, func(ctx context.Context) error { return inbox.Sweep(ctx, worker) })

	identity := &app.App{
		DB: db, Worker: worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes,
		Now: time.Now, Log: rt.Log, Wake: relay.Wake,
	}
	rt.Go("signals", identity.KeepTelling)
	lastUse := &app.LastUse{Worker: worker, Log: rt.Log}
	rt.Go("last use", lastUse.Run)
	consumer := &kafkax.Consumer{
		Cluster: cluster, Group: consume.Group, Topics: consume.Topics,
		Handle: (&consume.Webhooks{App: identity}).Handle, BatchBytes: rt.Common.BatchBytes, DeadLetter: writer, Log: rt.Log, Metrics: rt.Metrics,
	}
	rt.Go("consumer", kafkax.WithTopics(cluster, topics(cfg.Kafka.Partitions), consumer.Run))

	door := &api.API{
		DB: db, App: identity, LastUse: lastUse, Verifier: &caller.Verifier{Self: "identity", Keys: keys},
		RateLimit: cfg.RateLimit, Now: time.Now,
	}
	handler, err := door.Handler(c)
	if err != nil {
		return err
	}
	rt.HTTP(rt.Common.HTTPAddr, handler)
	return nil
}

// migrate brings identity's database to this version's schema.
func migrate(ctx context.Context, c toolConfig) (err error) {
	if c.MigrateDatabaseURL == "" {
		if c, err = loadTools(); err != nil {
			return err
		}
	}
	return pg.Migrate(ctx, c.MigrateDatabaseURL, migrations.Files, pg.Roles{App: c.AppRole, Worker: c.WorkerRole})
}

// openTools builds the use cases for one command; close gives the connections back.
func openTools(ctx context.Context) (identity *app.App, closeAll func(), err error) {
	c, err := loadTools()
	if err != nil {
		return nil, nil, err
	}
	if c.RedisURL == "" {
		return nil, nil, errors.New("REDIS_URL is not set, and no .run/env names it")
	}
	redis, err := redisx.Open(c.RedisURL, redisx.Options{Timeout: time.Second, PoolSize: 2, Access: c.Redis})
	if err != nil {
		return nil, nil, err
	}
	db, err := pg.Open(ctx, c.DatabaseURL, pg.Options{MaxConns: 2, Background: true})
	if err != nil {
		_ = redis.Close()
		return nil, nil, err
	}
	worker, err := pg.Open(ctx, c.WorkerDatabaseURL, pg.Options{MaxConns: 2, Background: true})
	if err != nil {
		_ = redis.Close()
		db.Close()
		return nil, nil, err
	}
	identity = &app.App{
		DB: db, Worker: worker, Redis: store.Redis{Client: redis}, Scopes: proto.Scopes,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), // commands say themselves what failed
	}
	return identity, func() { worker.Close(); db.Close(); _ = redis.Close() }, nil
}

// topics are those that the service writes and reads.
func topics(partitions int) []kafkax.Topic {
	return kafkax.ServiceTopics(partitions, app.Topic, consume.Group, consume.Topics...)
}

func makeTopics(ctx context.Context, s kafkax.Settings) error {
	return kafkax.MakeTopics(ctx, s, topics)
}
