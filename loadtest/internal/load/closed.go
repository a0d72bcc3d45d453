package load

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Closed keeps conns requests running for d: a connection sends its next request when it has its answer. It measures how
// much a system can do, not how long a client waits. The first error ends it.
func Closed(ctx context.Context, t Target, conns int, d time.Duration) (Sample, error) {
	var next atomic.Int64
	times := make([][]time.Duration, conns)
	all, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	end := start.Add(d)
	for i := range conns {
		all.Go(func() error {
			c, err := dial(ctx, &t)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			for at := time.Now(); at.Before(end) && ctx.Err() == nil; {
				if err := c.send(int(next.Add(1) - 1)); err != nil {
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
