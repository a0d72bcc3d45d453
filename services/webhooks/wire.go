package main

import (
	"context"
	"math/rand/v2"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"

	"holdfast.dev/services/webhooks/internal/api"
	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/consume"
	"holdfast.dev/services/webhooks/internal/peers"
	"holdfast.dev/services/webhooks/internal/store"
)

const (
	sweepEvery = time.Minute
	tidyEvery  = time.Hour
	streamLife = 5 * time.Minute
	streamPoll = time.Second
	streamGap  = 100 * time.Millisecond
)

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
	box, err := crypt.NewBox(cfg.EncryptionKeys)
	if err != nil {
		return err
	}
	guard, err := peers.NewGuard(cfg.AllowedCIDRs)
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
	worker, err := pg.OpenIn(ctx, rt, "postgres worker", cfg.WorkerDatabaseURL, pg.Options{MaxConns: cfg.WorkerConns, ByIndex: true, Background: true})
	if err != nil {
		return err
	}

	writer := kafkax.NewWriter(cluster, topics(cfg.Kafka.Partitions)...)
	rt.OnStop("kafka", func(context.Context) error { return writer.Close() })
	relay := outbox.NewRelay(worker, writer, rt.Log, rt.Metrics)
	relay.BatchBytes = rt.Common.BatchBytes
	rt.Go("relay", kafkax.WithTopics(cluster, topics(cfg.Kafka.Partitions), relay.Run))
	rt.Every("idempotency sweeper", sweepEvery, func(ctx context.Context) error { return idem.Sweep(ctx, worker) })
	rt.Every("secret sweeper", sweepEvery, func(ctx context.Context) error { return store.SweepSecrets(ctx, worker) })

	sender := peers.NewSender(guard)
	rt.OnStop("sender", func(context.Context) error { sender.Close(); return nil })
	dispatcher := &app.Dispatcher{
		Worker: worker, Box: box, Sender: sender, Log: rt.Log, Metrics: app.NewMetrics(rt.Metrics),
		Breaker: cfg.Breaker, Places: cfg.Places, Bytes: cfg.Bytes, Batch: rt.Common.BatchBytes, Now: time.Now, Jitter: rand.Float64, Wake: relay.Wake,
	}
	rt.Go("dispatcher", dispatcher.Run)

	bell, queue := &app.Bell{Gap: streamGap, Most: cfg.Streams}, &store.Queue{Wake: dispatcher.Ring}
	answers := &idem.Store{DB: db, Box: box, Now: time.Now}
	intake := &app.Intake{
		DB: db, Worker: worker, Queue: queue, Bell: bell, Batch: rt.Common.BatchBytes, Now: time.Now, Contract: spec, Idem: answers,
	}
	rt.Every("log keeper", tidyEvery, intake.Tidy)
	events := &consume.Events{Intake: intake, Types: app.AllTypes()}
	consumer := &kafkax.Consumer{
		Cluster: cluster, Group: consume.Group, Topics: consume.Topics,
		Handle: events.Handle, Together: events.Together, BatchBytes: rt.Common.BatchBytes, DeadLetter: writer, Log: rt.Log, Metrics: rt.Metrics,
	}
	rt.Go("consumer", kafkax.WithTopics(cluster, topics(cfg.Kafka.Partitions), consumer.Run))

	stopping := make(chan struct{})
	door := &api.API{
		DB:         db,
		Endpoints:  &app.Endpoints{DB: db, Idem: answers, Box: box, Guard: guard, Queue: queue, Now: time.Now},
		Deliveries: &app.Deliveries{DB: db, Idem: answers, Queue: queue, Now: time.Now},
		Streams:    &api.Streams{Bell: bell, Life: streamLife, Poll: streamPoll, Stop: stopping},
		Pages:      pages,
		Server: &httpx.Server{
			Service: "webhooks", Contract: spec, Idem: answers,
			Verifier: &caller.Verifier{Self: "webhooks", Keys: keys},
		},
		Now: time.Now,
	}
	engine := httpx.NewEngine()
	if err := door.Mount(engine); err != nil { //nolint:contextcheck // each handler takes its request's context
		return err
	}
	rt.HTTP(rt.Common.HTTPAddr, engine)
	rt.OnStop("streams", func(context.Context) error { close(stopping); return nil }) // before the server, which waits for them
	return nil
}

// topics are those that the service writes and reads.
func topics(partitions int) []kafkax.Topic {
	return kafkax.ServiceTopics(partitions, app.Topic, consume.Group, consume.Topics...)
}

func makeTopics(ctx context.Context, s kafkax.Settings) error {
	return kafkax.MakeTopics(ctx, s, topics)
}
