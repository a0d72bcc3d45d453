package main

import (
	"context"
	"time"

	"holdfast.dev/loadtest/internal/report"
)

const (
	calmTime = 10 * time.Second // after the start, which leaves statistics to collect and code to compile
	idleTime = 20 * time.Second
	idleAim  = 0.1 // cores
)

// idle measures the processor time of the platform without requests. Kafka's JVM is listed in the note only.
func (b *bench) idle(ctx context.Context) error {
	if err := b.platform.Drain(ctx); err != nil {
		return err
	}
	if err := pause(ctx, calmTime); err != nil {
		return err
	}
	before := b.processors()
	if err := pause(ctx, idleTime); err != nil {
		return err
	}
	used := b.processors().since(before)
	cores := report.Quantity{Value: used.platform("kafka", "kafka-embedded").Seconds() / idleTime.Seconds(), Unit: "cores"}
	b.table.Add(report.Row{
		Figure: "idle platform besides Kafka: CPU time of all processes", Value: cores, Aim: report.AtMost(cores, idleAim), Show: "idle",
	})
	b.table.Note("idle platform, CPU µs per second: %s", used.per(idleTime.Seconds()))
	return nil
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
