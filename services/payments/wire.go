package main

import (
	"context"
	"log/slog"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/payments/internal/api"
	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/consume"
	"holdfast.dev/services/payments/internal/peers"
	"holdfast.dev/services/payments/internal/store"
)

const (
	fetchWait  = 250 * time.Millisecond // how long to collect events of bookings for a batch
	workEvery  = time.Second            // how often workers look for due items
	maxWait    = 5 * time.Second        // how long a request waits for another request's call
	countEvery = 15 * time.Second       // how often to count what waits for the gateway
	sweepEvery = 10 * time.Minute       // how often to delete old rows

	stripeTimeout  = 10 * time.Second // of one call; the gateway waits longer
	stripeInFlight = 64               // parallel calls for one gateway account in this process
	reconcileEvery = time.Hour        // how often to compare a gateway account with Stripe
)

// wire builds everything and registers it with rt. The parts stop in reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	box, err := crypt.FollowKeys(cfg.EncryptionKeys)
	if err != nil {
		return err
	}
	to, err := cfg.Upstreams.Clients("payments", cfg.SignKeys)
	if err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys, Box: box})
	if err != nil {
		return err
	}
	topicHandlers := consume.Handlers{
		Bookings: &app.BookingProjection{Worker: p.Worker, Now: time.Now},
		Eraser:   &app.Eraser{DB: p.DB, Idempotency: p.Idempotency, Contract: p.Contract, Wake: p.Relay.Wake},
	}
	consumer := p.Consume(topicHandlers.Handle)
	consumer.HandleBatch, consumer.FetchWait = topicHandlers.HandleBatch, fetchWait

	accounts, stripe := store.Accounts{Box: box}, peers.NewStripe(cfg.StripeURL, stripeTimeout, stripeInFlight)
	bookings := &peers.Bookings{Client: to["bookings"]}
	intents := &app.Intents{
		DB: p.DB, Accounts: accounts, Gateway: stripe,
		Bookings: bookings, Invoices: &peers.Customers{Client: to["customers"]}, Keys: p.Idempotency,
		Metrics: app.NewMetrics(rt.Metrics), Wake: p.Relay.Wake, Now: time.Now,
	}
	rt.Every("payment completer", workEvery, (&app.Completer{Intents: intents, Worker: p.Worker, Log: rt.Log}).Run)
	rt.Every("intents of lost bookings", workEvery, (&app.Canceler{Intents: intents, Worker: p.Worker, Log: rt.Log}).Run)
	woken := make(chan struct{}, 1)
	wake := func() {
		select {
		case woken <- struct{}{}:
		default: // already awake
		}
	}
	refunds := &app.Refunds{Intents: intents, Wake: wake}
	settler := &app.Settler{Intents: intents, Lookup: bookings, Worker: p.Worker, Log: rt.Log}
	rt.Every("payments of lost bookings", workEvery, settler.Run)
	owed := &app.OwedRefunds{Refunds: refunds, Worker: p.Worker, Log: rt.Log}
	rt.Every("refunds that are owed", workEvery, owed.Run)
	money := &app.Money{DB: p.DB, Wake: p.Relay.Wake, Now: time.Now}
	rt.Every("unfinished payments", countEvery, app.NewUnfinished(p.Worker, time.Now, rt.Metrics).Run)
	rt.Every("refund completer", workEvery, (&app.RefundCompleter{Refunds: refunds, Worker: p.Worker, Log: rt.Log}).Run)
	events := &app.Events{Intents: intents, Refunds: refunds, Worker: p.Worker, Reader: stripe, Log: rt.Log, Wake: wake, Woken: woken}
	rt.Go("gateway events", func(ctx context.Context) error { return workOff(ctx, woken, events.Run) })

	p.Eraser.Prepare = (&app.TenantErasure{Worker: p.Worker, Now: time.Now}).Prepare
	rt.Every("payment sweeper", sweepEvery, (&app.Sweeper{Worker: p.Worker, Now: time.Now}).Run)

	gateways := &app.Accounts{DB: p.DB, Store: accounts, Gateway: stripe, Now: time.Now}
	reconciler := &app.Reconciler{
		Intents: intents, Refunds: refunds, Gateways: gateways, Wake: wake, Lister: stripe, Worker: p.Worker, Log: rt.Log,
		Interval: reconcileEvery, Grace: cfg.ReconcileGrace,
	}
	rt.Every("payment reconciler", workEvery, reconciler.Run)

	handlers := &api.API{
		DB: p.DB, Idempotency: p.Idempotency, Accounts: accounts, Gateways: gateways, Intents: intents, Refunds: refunds, Owed: owed, Money: money, Events: events, MaxWait: maxWait, Pages: p.Pages, Server: p.Server,
	}
	return p.Serve(handlers.Mount)
}

// workOff runs work on each signal, and at least every second, until ctx ends.
func workOff(ctx context.Context, woken <-chan struct{}, work func(context.Context) error) error {
	for ctx.Err() == nil {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "gateway events not processed; trying again", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-time.After(workEvery):
		}
	}
	return nil
}
