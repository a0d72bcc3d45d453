package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"holdfast.dev/loadtest/internal/load"
	"holdfast.dev/loadtest/internal/report"
)

const (
	idleClients   = 10_000
	idleClientAim = 16 // KiB
	// otherFiles is how many files this process and the gateway may have open in addition to the connections.
	otherFiles = 500
)

// idleConnections measures the memory that the gateway uses for each keep-alive connection that has been served and waits for its
// next request. The run fails unless every connection is served twice.
func (b *bench) idleConnections(ctx context.Context, one route) error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	if files.Max < idleClients+otherFiles { // both processes raise their own limit up to this one
		return fmt.Errorf("%w: at most %d open files are allowed, and %d are needed: raise ulimit -Hn", errResult, files.Max, idleClients+otherFiles)
	}
	if _, err := load.Closed(ctx, one.target, connections, warmUp); err != nil {
		return err
	}
	before, err := held(ctx, one.profiles)
	if err != nil {
		return err
	}
	var after int64
	err = load.Idle(ctx, one.target, idleClients, func() (err error) {
		b.say("%d connections are open", idleClients)
		after, err = held(ctx, one.profiles)
		return err
	})
	if err != nil {
		return err
	}
	each := report.Quantity{Value: float64(after-before) / idleClients / 1024, Unit: "KiB"}
	b.table.Add(report.Row{
		Figure: fmt.Sprintf("gateway: memory per idle client connection, %d open and all of them served", idleClients), Value: each,
		Aim: report.AtMost(each, idleClientAim), Show: "connections",
	})
	return nil
}

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
