package main

import (
	"context"
	"time"

	"holdfast.dev/libs/platform"
	"holdfast.dev/libs/service"

	"holdfast.dev/services/logs/internal/api"
	"holdfast.dev/services/logs/internal/app"
	"holdfast.dev/services/logs/internal/consume"
)

const (
	maintainEvery = 10 * time.Minute
	catchUp       = 10 * time.Second       // how long a measurement of usage waits for the consumer
	fetchWait     = 250 * time.Millisecond // how long to collect requests for a batch
)

// wire builds everything and registers it with rt. The parts stop in reverse order.
func wire(ctx context.Context, rt *service.Runtime, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	p, err := platform.Open(ctx, rt, cfg.Platform, platform.Spec{CursorKeys: cfg.CursorKeys, WorkerByIndex: true})
	if err != nil {
		return err
	}
	intake := &app.Intake{
		Worker: p.Worker, Retention: cfg.Retention, MaxRows: cfg.MaxRows, Now: time.Now, Metrics: app.NewMetrics(rt.Metrics), Log: rt.Log,
	}
	rt.Every("partitions", maintainEvery, intake.Maintain)
	requests := &consume.Requests{Intake: intake, Erased: p.Marks.Erased}
	consumer := p.Consume(requests.Handle)
	consumer.HandleBatch, consumer.FetchWait = requests.HandleBatch, fetchWait
	handlers := &api.API{
		DB: p.DB, Pages: p.Pages, Server: p.Server, Retention: cfg.Retention, Now: time.Now,
		CaughtUp: func(ctx context.Context) (bool, error) { return p.CaughtUp(ctx, catchUp) },
	}
	return p.Serve(handlers.Mount)
}
