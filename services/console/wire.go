package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/service"
	"holdfast.dev/proto"

	"holdfast.dev/services/console/internal/api"
	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/peers"
)

// livePageTime is how long a page receives updates before it must reconnect.
const livePageTime = 15 * time.Minute

// livePages is how many pages of this process receive updates; further pages are not updated.
const livePages = 2000

// Time limit of one call. A call to a payment gateway takes longer than a call inside the platform.
const (
	callTimeout    = 10 * time.Second
	gatewayTimeout = 28 * time.Second
)

// wire builds the object graph and registers the background processes.
func wire(rt *service.Runtime, cfg Config) error {
	engine, server, err := build(cfg, rt.Common.PublicURL)
	if err != nil {
		return err
	}
	if !pages.Styled() {
		rt.Log.Warn("pages served without styles and scripts: built without Node.js")
	}
	rt.HTTP(rt.Common.HTTPAddr, engine)
	// This is registered after the server, so that it stops first: stopping the server waits for running requests.
	rt.OnStop("live pages", func(context.Context) error {
		server.Stop()
		return nil
	})
	return nil
}

// build is wire without the process, for tests.
func build(cfg Config, publicURL string) (*gin.Engine, *api.Server, error) {
	c, err := contract.Public()
	if err != nil {
		return nil, nil, err
	}
	operations, err := domain.NewOperations(c, proto.OpenAPI, map[string][]byte{
		"bookings": proto.InternalBookings, "identity": proto.InternalIdentity, "payments": proto.InternalPayments, "webhooks": proto.InternalWebhooks,
	})
	if err != nil {
		return nil, nil, err
	}
	clients, err := cfg.Upstreams.Clients("console", cfg.SignKeys)
	if err != nil {
		return nil, nil, err
	}
	verifies, err := caller.FollowKeys(cfg.VerifyKeys)
	if err != nil {
		return nil, nil, fmt.Errorf("CALLER_VERIFY_KEYS: %w", err)
	}
	services := &peers.Services{Operations: operations, Clients: clients}
	for name, client := range clients {
		client.Timeout = callTimeout // identity fetches documents of clients, but not for the console
		if s, ok := proto.ServiceNamed(name); ok && slices.ContainsFunc(s.Reaches, func(network string) bool { return network != "clients" }) {
			client.Timeout = gatewayTimeout
		}
	}
	messages, err := pages.NewMessages()
	if err != nil {
		return nil, nil, err
	}
	server, err := api.New(api.Options{
		App: &app.App{Services: services, Names: app.NewNames(services), Now: time.Now}, Operations: operations, Messages: messages, Live: app.NewLive(services, livePages), LiveTime: livePageTime,
		PublicURL: publicURL, Now: time.Now,
	})
	if err != nil {
		return nil, nil, err
	}
	engine := httpx.NewEngine(publicURL)
	guard := &httpx.Server{Service: "console", Contract: c, Verifier: &caller.Verifier{Self: "console", Keys: verifies}}
	server.Mount(engine, guard.Internal)
	return engine, server, nil
}
