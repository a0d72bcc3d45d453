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

	"holdfast.dev/services/bookings/internal/api"
	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/consume"
	"holdfast.dev/services/bookings/internal/peers"
)

const (
	sweepEvery  = time.Minute
	expireEvery = time.Second
)

// wire builds everything, top to bottom, and registers it with rt; stopping runs upwards.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	verify, err := caller.ParseKeys(cfg.VerifyKeys)
	if err != nil {
		return err
	}
	sign, err := caller.ParseKeys(cfg.SignKeys)
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
	signer := &caller.Signer{From: "bookings", Keys: sign}
	toCustomers, err := cfg.Upstreams.Client("customers", signer)
	if err != nil {
		return err
	}
	toIdentity, err := cfg.Upstreams.Client("identity", signer)
	if err != nil {
		return err
	}
	customers := &peers.Customers{Client: toCustomers}
	tenants := peers.NewTenants(toIdentity)
	answers := &idem.Store{DB: db, Now: time.Now}
	bookings := &app.Bookings{
		DB: db, Idem: answers, Directory: customers, Tenants: tenants,
		Numbers: &app.Numbers{DB: db}, Wake: relay.Wake, Now: time.Now,
	}
	clocks := &app.Clocks{DB: db, Idem: answers, Owner: tenants, Bookings: bookings}
	expiry := &app.Expiry{Bookings: bookings, Worker: worker, Log: rt.Log}
	rt.Every("hold expiry", expireEvery, expiry.Run)

	consumer := &kafkax.Consumer{
		Cluster: cluster, Group: consume.Group, Topics: consume.Topics,
		Handle: consume.Handlers{
			"customers": (&consume.Customers{App: &app.Customers{DB: db}}).Handle,
			"identity":  (&consume.Tenants{App: clocks}).Handle,
		}.Handle,
		BatchBytes: rt.Common.BatchBytes, DeadLetter: writer, Log: rt.Log, Metrics: rt.Metrics,
	}
	rt.Go("consumer", kafkax.WithTopics(cluster, topics(cfg.Kafka.Partitions), consumer.Run))

	door := &api.API{
		DB:        db,
		Bookings:  bookings,
		Catalogue: app.NewCatalogue(db, answers),
		Clocks:    clocks,
		Directory: customers,
		Pages:     pages,
		Server: &httpx.Server{
			Service: "bookings", Contract: spec, Idem: answers,
			Verifier: &caller.Verifier{Self: "bookings", Keys: verify},
		},
		Now: time.Now,
	}
	engine := httpx.NewEngine()
	if err := door.Mount(engine); err != nil {
		return err
	}
	rt.HTTP(rt.Common.HTTPAddr, engine)
	return nil
}

// topics are those that the service writes and reads.
func topics(partitions int) []kafkax.Topic {
	return kafkax.ServiceTopics(partitions, app.Topic, consume.Group, consume.Topics...)
}

func makeTopics(ctx context.Context, s kafkax.Settings) error {
	return kafkax.MakeTopics(ctx, s, topics)
}
