// Package load sends HTTP requests, as fast as the responses arrive or on a fixed schedule, and records the time of
// each.
package load

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Pace specifies how the generator calls.
type Pace struct {
	Conns int // calls at the same time
	// Rate is a constant arrival rate per second (open model): calls are due on schedule, whether or not earlier ones have
	// ended, and the time of each is measured from the time when it was due. A slow call counts for all calls that wait
	// behind it, so there is no coordinated omission. 0: a call begins when the previous one of its connection has ended
	// (closed model), which measures the throughput and not how long a client waits.
	Rate int
}

// due returns the time from the start at which the n-th call is due.
func (p Pace) due(n int) time.Duration {
	return time.Duration(int64(n) * int64(time.Second) / int64(p.Rate))
}

// Each calls do for d. n counts the calls of all connections, and conn is the number of the calling connection. The
// first error ends it.
func Each(
	ctx context.Context, p Pace, d time.Duration, do func(ctx context.Context, conn, n int) error,
) (Sample, error) {
	times := make([][]time.Duration, p.Conns)
	all, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	var sent atomic.Int64
	next := func() (n int, at time.Time, ok bool) {
		at = time.Now()
		if at.Sub(start) >= d || ctx.Err() != nil {
			return 0, at, false
		}
		return int(sent.Add(1) - 1), at, true
	}
	if p.Rate > 0 {
		count := int(int64(d) * int64(p.Rate) / int64(time.Second))
		ready := make(chan int, count) // never full: the schedule does not wait for responses
		all.Go(func() error {
			defer close(ready)
			return p.schedule(ctx, start, count, ready)
		})
		next = func() (int, time.Time, bool) {
			n, ok := <-ready
			return n, start.Add(p.due(n)), ok && ctx.Err() == nil
		}
	}
	for i := range p.Conns {
		all.Go(func() error {
			for n, at, ok := next(); ok; n, at, ok = next() {
				if err := do(ctx, i, n); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(at))
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	return newSample(slices.Concat(times...), time.Since(start)), err
}

// schedule sends each number when it is due. It sleeps in the kernel on its own thread. While the process is idle, the
// runtime's timers have a resolution of only a millisecond, which is longer than the measured times.
func (p Pace) schedule(ctx context.Context, start time.Time, count int, ready chan<- int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for n := range count {
		if wait := p.due(n) - time.Since(start); wait > 0 {
			spec := syscall.NsecToTimespec(int64(wait))
			_ = syscall.Nanosleep(&spec, nil) // if it wakes up early, the call begins early by the same time
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ready <- n
	}
	return nil
}

// Sample is the result of one run.
type Sample struct {
	Requests int
	Elapsed  time.Duration
	times    []time.Duration // ascending
}

func newSample(times []time.Duration, elapsed time.Duration) Sample {
	slices.Sort(times)
	return Sample{Requests: len(times), Elapsed: elapsed, times: times}
}

// Join returns the results of two runs as one.
func (s Sample) Join(more Sample) Sample {
	return newSample(slices.Concat(s.times, more.times), s.Elapsed+more.Elapsed)
}

// Rate returns the number of completed requests per second.
func (s Sample) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Requests) / s.Elapsed.Seconds()
}

// Percentile returns the time within which p percent of the requests were completed, by nearest rank, so it is always a
// measured value. It is 0 without requests.
func (s Sample) Percentile(p float64) time.Duration {
	n := len(s.times)
	if n == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(n)))
	return s.times[min(max(rank, 1), n)-1]
}
