package main

import (
	"context"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/customers/internal/api"
	"holdfast.dev/services/customers/internal/app"
)

// wire builds everything and registers it with rt. The parts stop in reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys})
	if err != nil {
		return err
	}
	door := &api.API{
		DB:        p.DB,
		Answers:   p.Idem,
		Customers: &app.Customers{Answers: p.Idem, Contract: p.Contract, Wake: p.Relay.Wake},
		Pages:     p.Pages,
		Server:    p.Server,
	}
	return p.Serve(door.Mount)
}
