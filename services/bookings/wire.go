package main

import (
	"context"
	"time"

	"holdfast.dev/libs/crypt"
	"holdfast.dev/libs/numbers"
	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"
	"holdfast.dev/libs/tenantstate"
	"holdfast.dev/libs/testclock"

	"holdfast.dev/services/bookings/internal/api"
	"holdfast.dev/services/bookings/internal/app"
	"holdfast.dev/services/bookings/internal/consume"
	"holdfast.dev/services/bookings/internal/peers"
)

const (
	expireEvery  = time.Second
	holdersEvery = 10 * time.Second
	maxWait      = 4 * time.Second // how long a request that sets the test clock waits for the expiry of quotes; the gateway waits 10 s
)

// wire builds everything from top to bottom and registers it with rt. It stops in the reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	to, err := cfg.Upstreams.Clients("bookings", cfg.SignKeys)
	if err != nil {
		return err
	}
	box, err := crypt.FollowKeys(cfg.EncryptionKeys)
	if err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys, Box: box})
	if err != nil {
		return err
	}
	customers := &peers.Customers{Client: to["customers"]}
	tenants := peers.NewTenants(to["identity"])
	bookings := &app.Bookings{
		DB: p.DB, Directory: customers, Tenants: tenants, Accounts: &peers.Payments{Client: to["payments"]},
		Numbers: &numbers.Numbers{DB: p.DB, Table: "booking_counters", Format: "B-%06d"}, Wake: p.Relay.Wake, Now: time.Now,
	}
	clocks := &app.Clocks{DB: p.DB, Owner: tenants, Bookings: bookings, Quotes: customers, Log: rt.Log, MaxWait: maxWait}
	expiry := &app.Expiry{Bookings: bookings, Worker: p.Worker, Log: rt.Log}
	rt.Every("hold expiry", expireEvery, expiry.Run)
	feeds := app.NewFeeds(app.FeedOptions{
		DB: p.DB, Wake: p.Relay.Wake, PublicURL: rt.Common.PublicURL, Now: time.Now, Credentials: &peers.Credentials{Client: to["identity"]},
	})
	holders := &app.FeedHolders{Feeds: feeds, Worker: p.Worker, Log: rt.Log}
	rt.Every("feed holders", holdersEvery, holders.Run)
	p.Consume(consume.New(
		&app.Customers{DB: p.DB}, &app.Payments{Bookings: bookings, Log: rt.Log}, &testclock.Events{DB: p.DB, Service: "bookings"},
		&tenantstate.Events{DB: p.DB, Service: "bookings"},
	).Handle)

	handlers := &api.API{
		DB:          p.DB,
		Idempotency: p.Idempotency,
		Bookings:    bookings,
		Catalogue:   &app.Catalogue{Bookings: bookings, Wake: p.Relay.Wake, Now: time.Now},
		Clocks:      clocks,
		Feeds:       feeds,
		Directory:   customers,
		Pages:       p.Pages,
		Server:      p.Server,
		Now:         time.Now,
	}
	return p.Serve(handlers.Mount)
}
