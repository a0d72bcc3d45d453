package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"holdfast.dev/services/local/stripe/internal/api"
	"holdfast.dev/services/local/stripe/internal/app"
	"holdfast.dev/services/local/stripe/internal/control"
	"holdfast.dev/services/local/stripe/internal/deliver"
	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/faults"
	"holdfast.dev/services/local/stripe/internal/page"
	"holdfast.dev/services/local/stripe/internal/store"
)

const stopLimit = 10 * time.Second

// run serves until ctx ends. It calls ready with the address.
func run(ctx context.Context, c config, ready func(address string)) (err error) {
	db, err := store.Open(c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the server also closes it

	base := "http://" + listener.Addr().String()
	wake := make(chan struct{}, 1)
	notify := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	modes, rules, keys := &app.EventModes{}, &faults.Set{}, &api.Keyring{}
	rules.SetLatency(c.Latency)
	sender := &deliver.Sender{DB: db, Modes: modes, Retries: c.WebhookRetries, Client: &http.Client{
		Timeout:       c.WebhookTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	core := &app.App{
		DB: db, Fees: domain.Fees{BasisPoints: c.FeeBasisPoints, Fixed: c.FeeFixed, Dispute: c.FeeDispute},
		AsyncDelay: c.AsyncDelay, Scheduled: notify, Deliver: sender.Add, Events: modes,
	}
	stripe := &api.Server{
		App: core, Keys: keys, Faults: rules, BaseURL: base, Lifetime: c.KeyLifetime,
		Stopping: background.Done(),
	}
	controls := &control.Server{App: core, Keys: keys, Faults: rules, Sender: sender, Token: c.ControlToken}
	if err := prepare(db, keys, controls, c.account()); err != nil {
		return err
	}

	var all sync.WaitGroup
	defer func() { stop(); all.Wait(); sender.Wait() }()
	if err := sender.Start(background); err != nil {
		return err
	}
	all.Go(func() { core.Work(background, wake) })

	mux := http.NewServeMux()
	mux.Handle("/v1/", stripe.Handler())
	mux.Handle("/_control/", controls.Handler())
	mux.Handle("GET /v3/{$}", page.Handler())
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return background },
	}
	ready(listener.Addr().String())
	return serveUntil(ctx, server, listener, stop)
}

// serveUntil serves until ctx ends. stop ends requests that a fault holds.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, stop func()) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return server.Shutdown(end)
}

// prepare creates the account from the settings and loads the keys of all accounts.
func prepare(db *store.DB, keys *api.Keyring, controls *control.Server, own domain.Account) error {
	err := db.View(func(t *store.Tx) error {
		accounts, err := t.Accounts()
		for _, a := range accounts {
			if a.ID == own.ID {
				own.Keys, own.Created = merge(own.Keys, a.Keys), a.Created
				continue
			}
			keys.Add(a)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = controls.Create(own)
	return err
}

// merge uses the keys of before that are missing in the settings.
func merge(given, before domain.Keys) domain.Keys {
	for _, k := range []struct{ given, before *string }{
		{&given.TestSecret, &before.TestSecret},
		{&given.TestPublishable, &before.TestPublishable},
		{&given.LiveSecret, &before.LiveSecret},
		{&given.LivePublishable, &before.LivePublishable},
	} {
		if *k.given == "" {
			*k.given = *k.before
		}
	}
	return given
}
