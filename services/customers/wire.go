package main

import (
	"context"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"

	"holdfast.dev/services/customers/internal/api"
	"holdfast.dev/services/customers/internal/app"
)

const sweepEvery = time.Minute

// wire builds everything, top to bottom, and registers it with rt; stopping runs upwards.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	keys, err := caller.ParseKeys(cfg.VerifyKeys)
	if err != nil {
		return err
	}
	pages, err := page.NewCodec(cfg.CursorKeys)
	if err != nil {
		return err
	}
	cluster, err := cfg.Kafka.Cluster()
	if err != nil {
		return err
	}
	spec, err := contract.Load(proto.OpenAPI)
	if err != nil {
		return err
	}

	db, err := pg.OpenIn(ctx, rt, "postgres", cfg.DatabaseURL, pg.Options{MaxConns: cfg.DatabaseConns, StatementTimeout: cfg.Database.StatementTimeout})
	if err != nil {
		return err
	}
	worker, err := pg.OpenIn(ctx, rt, "postgres worker", cfg.WorkerDatabaseURL, pg.Options{MaxConns: 4, Background: true})
	if err != nil {
		return err
	}

	writer := kafkax.NewWriter(cluster, topics(cfg.Kafka.Partitions)...)
	rt.OnStop("kafka", func(context.Context) error { return writer.Close() })
	relay := outbox.NewRelay(worker, writer, rt.Log, rt.Metrics)
	relay.BatchBytes = rt.Common.BatchBytes
	rt.Go("relay", kafkax.WithTopics(cluster, topics(cfg.Kafka.Partitions), relay.Run))
	rt.Every("idempotency sweeper", sweepEvery, func(ctx context.Context) error { return idem.Sweep(ctx, worker) })
	rt.Every("inbox sweeper", sweepEvery, func(ctx context.Context) error { return inbox.Sweep(ctx, worker) })

	answers := &idem.Store{DB: db, Now: time.Now}
	door := &api.API{
		DB:        db,
		Customers: &app.Customers{DB: db, Idem: answers, Contract: spec, Wake: relay.Wake},
		Pages:     pages,
		Server: &httpx.Server{
			Service: "customers", Contract: spec, Idem: answers,
			Verifier: &caller.Verifier{Self: "customers", Keys: keys},
		},
	}
	engine := httpx.NewEngine()
	if err := door.Mount(engine); err != nil { //nolint:contextcheck // each handler takes its request's context
		return err
	}
	rt.HTTP(rt.Common.HTTPAddr, engine)
	return nil
}

// topics are those that the service writes and reads.
func topics(partitions int) []kafkax.Topic {
	return kafkax.ServiceTopics(partitions, app.Topic, "")
}

func makeTopics(ctx context.Context, s kafkax.Settings) error {
	return kafkax.MakeTopics(ctx, s, topics)
}
