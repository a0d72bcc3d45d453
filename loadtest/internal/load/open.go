package load

import (
	"context"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Schedule is a constant arrival rate of Rate requests per second.
type Schedule struct{ Rate int }

// At returns the time from the start at which the n-th request is due.
func (s Schedule) At(n int) time.Duration {
	return time.Duration(int64(n) * int64(time.Second) / int64(s.Rate))
}

// Count returns how many requests are due within d.
func (s Schedule) Count(d time.Duration) int {
	return int(int64(d) * int64(s.Rate) / int64(time.Second))
}

// openConns limits the number of running requests. A request without a free connection waits, and its time counts.
const openConns = 64

// Open sends requests on schedule for d, whether or not earlier ones have a response, and measures each from the time when it was
// due. A slow response counts for all requests that wait behind it, so there is no coordinated omission. The first error ends it.
func Open(ctx context.Context, t Target, s Schedule, d time.Duration) (Sample, error) {
	return open(ctx, t, s, d, openConns)
}

func open(ctx context.Context, t Target, s Schedule, d time.Duration, conns int) (Sample, error) {
	count := s.Count(d)
	due := make(chan int, count) // never full: pacing does not wait for responses
	times := make([][]time.Duration, conns)
	all, ctx := errgroup.WithContext(ctx)
	ready := make([]*conn, conns)
	for i := range ready {
		c, err := dial(ctx, &t)
		if err != nil {
			return Sample{}, err
		}
		defer func() { _ = c.Close() }()
		ready[i] = c
	}
	start := time.Now()
	for i, c := range ready {
		all.Go(func() error {
			for n := range due {
				if err := c.send(n); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(start)-s.At(n))
			}
			return nil
		})
	}
	all.Go(func() error {
		defer close(due)
		return pace(ctx, s, count, start, due)
	})
	err := all.Wait()
	return newSample(join(times), time.Since(start)), err
}

// pace sends each number when it is due. It sleeps in the kernel on its own thread. While the process is idle, the runtime's
// timers have a resolution of only a millisecond, which is longer than the measured times.
func pace(ctx context.Context, s Schedule, count int, start time.Time, due chan<- int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for n := range count {
		if wait := s.At(n) - time.Since(start); wait > 0 {
			spec := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&spec, nil) // if it wakes up early, the request is sent early by the same time
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		due <- n
	}
	return nil
}
