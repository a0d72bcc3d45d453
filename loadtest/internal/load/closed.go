package load

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Closed keeps conns requests running for d: a connection sends its next request after it receives the response. It measures the
// throughput of a system, not how long a client waits. The first error ends it.
func Closed(ctx context.Context, t Target, conns int, d time.Duration) (Sample, error) {
	open := make([]*conn, conns)
	defer func() {
		for _, c := range open {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	return Each(ctx, conns, d, func(ctx context.Context, i, n int) (err error) {
		if open[i] == nil {
			if open[i], err = dial(ctx, &t); err != nil {
				return err
			}
		}
		return open[i].send(n)
	})
}

// Each keeps conns calls of do running for d, as Closed does with requests. n counts the calls of all connections, and conn is
// the number of the calling connection. The first error ends it.
func Each(ctx context.Context, conns int, d time.Duration, do func(ctx context.Context, conn, n int) error) (Sample, error) {
	var next atomic.Int64
	times := make([][]time.Duration, conns)
	all, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	end := start.Add(d)
	for i := range conns {
		all.Go(func() error {
			for at := time.Now(); at.Before(end) && ctx.Err() == nil; {
				if err := do(ctx, i, int(next.Add(1)-1)); err != nil {
					return err
				}
				now := time.Now()
				times[i] = append(times[i], now.Sub(at))
				at = now
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	return newSample(join(times), time.Since(start)), err
}

func join(parts [][]time.Duration) []time.Duration {
	var all []time.Duration
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
