package main

import (
	"context"
	"math/rand/v2"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/egress"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/tenantstate"

	"holdfast.dev/services/webhooks/internal/api"
	"holdfast.dev/services/webhooks/internal/app"
	"holdfast.dev/services/webhooks/internal/consume"
	"holdfast.dev/services/webhooks/internal/peers"
	"holdfast.dev/services/webhooks/internal/store"
)

const (
	sweepEvery    = time.Minute
	maintainEvery = time.Hour
	streamLife    = 5 * time.Minute
	streamPoll    = time.Second
	tenantStreams = 100 // open streams of a tenant in this process; one more returns 429
	streamGap     = 100 * time.Millisecond
	maxInFlight   = 1024     // attempts in flight in this process, over all endpoints
	maxBytes      = 64 << 20 // of their bodies
)

// wire builds everything, top to bottom, and registers it with rt. Parts stop in reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	box, err := crypt.FollowKeys(cfg.EncryptionKeys)
	if err != nil {
		return err
	}
	guard, err := egress.NewGuard("WEBHOOK_ALLOWED_CIDRS", cfg.AllowedCIDRs)
	if err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys, Box: box, WorkerByIndex: true})
	if err != nil {
		return err
	}
	rt.Every("secret sweeper", sweepEvery, func(ctx context.Context) error { return store.SweepSecrets(ctx, p.Worker) })

	sender := peers.NewSender(guard)
	rt.OnStop("sender", func(context.Context) error { sender.Close(); return nil })
	dispatcher := &app.Dispatcher{
		Worker: p.Worker, Box: box, Sender: sender, Log: rt.Log, Metrics: app.NewMetrics(rt.Metrics),
		Breaker: cfg.Breaker, MaxConcurrency: maxInFlight, MaxBytes: maxBytes, BatchBytes: rt.Common.BatchBytes,
		Now: time.Now, Jitter: rand.Float64, WakeRelay: p.Relay.Wake,
	}
	rt.Go("dispatcher", dispatcher.Run)

	notifier, queue := &app.Notifier{MinInterval: streamGap, MaxStreams: tenantStreams}, &store.Queue{Wake: dispatcher.Wake}
	intake := &app.Intake{
		DB: p.DB, Worker: p.Worker, Queue: queue, Notifier: notifier, BatchBytes: rt.Common.BatchBytes, Now: time.Now, Contract: p.Contract, Idempotency: p.Idempotency,
	}
	rt.Every("log maintenance", maintainEvery, intake.Maintain)
	states := &tenantstate.Events{DB: p.DB, Service: "webhooks", Changed: queue.TenantChanged}
	events := &consume.Events{Intake: intake, Tenants: states, Types: app.AllTypes()}
	p.Consume(events.Handle).HandleBatch = events.HandleBatch

	stopping := make(chan struct{})
	endpoints := &app.Endpoints{DB: p.DB, Box: box, Guard: guard, Queue: queue, Wake: p.Relay.Wake, Now: time.Now}
	handlers := &api.API{
		DB:          p.DB,
		Idempotency: p.Idempotency,
		Endpoints:   endpoints,
		Deliveries:  &app.Deliveries{Queue: queue, Wake: p.Relay.Wake, Now: time.Now},
		Grants:      &app.EndpointGrants{Worker: p.Worker, Endpoints: endpoints},
		Streams:     &api.Streams{Notifier: notifier, MaxDuration: streamLife, PollInterval: streamPoll, Stop: stopping},
		Pages:       p.Pages,
		Server:      p.Server,
		Now:         time.Now,
	}
	if err := p.Serve(handlers.Mount); err != nil {
		return err
	}
	rt.OnStop("streams", func(context.Context) error { close(stopping); return nil }) // before the server, which waits for them
	return nil
}
