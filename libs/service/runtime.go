package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/command"
	"holdfast.dev/libs/obs"
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
	steadyAfter  = time.Minute // a worker that ran this long starts with the shortest back-off again
)

// Runtime is where Serve registers the parts of the process. Parts start in the order of their registration after Serve returns,
// and stop in reverse order.
type Runtime struct {
	Name    string
	Log     *slog.Logger
	Metrics *prometheus.Registry
	Common  Common

	red      *obs.RED
	restarts *prometheus.CounterVec
	stopping atomic.Bool
	parts    []part
	mu       sync.Mutex // guards checks and addrs
	checks   []check
	addrs    map[string]net.Addr
	failed   chan error

	connections atomic.Int64 // that clients have opened
}

type part struct {
	name  string
	start func() error // nil: nothing to start
	stop  func(context.Context) error
	runs  bool
}

func newRuntime(name string, log *slog.Logger, common Common) *Runtime {
	rt := &Runtime{
		Name: name, Log: log, Metrics: newRegistry(), Common: common,
		addrs: map[string]net.Addr{}, failed: make(chan error, 1),
	}
	rt.red = obs.NewRED(rt.Metrics, name)
	rt.restarts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "worker_restarts_total", Help: "Background worker failures followed by a restart.",
	}, []string{"worker"})
	rt.Metrics.MustRegister(rt.restarts, buildInfo(command.CurrentBuild()))
	return rt
}

// Register adds metrics to GET /metrics. It panics if metrics with the same name and labels are registered.
func (rt *Runtime) Register(metrics prometheus.Collector) { rt.Metrics.MustRegister(metrics) }

// OnStop registers a part that only needs to be stopped, such as a pool of connections.
func (rt *Runtime) OnStop(name string, stop func(ctx context.Context) error) {
	rt.parts = append(rt.parts, part{name: name, stop: stop, runs: true})
}

// Fail stops the process, which then ends with err. Use it for an error of a background worker that no restart can fix.
func (rt *Runtime) Fail(err error) {
	select {
	case rt.failed <- err:
	default:
	}
}

// Go registers a background worker. After an error or a panic, the worker is restarted with back-off, indefinitely. It ends when it
// returns nil. Its context ends when the worker must stop.
func (rt *Runtime) Go(name string, work func(ctx context.Context) error) {
	rt.restarts.WithLabelValues(name) // at 0, so that an alert sees the first restart
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	rt.parts = append(rt.parts, part{
		name: name,
		start: func() error {
			go func() {
				defer close(done)
				rt.supervise(ctx, name, work)
			}()
			return nil
		},
		stop: func(limit context.Context) error {
			cancel()
			select {
			case <-done:
				return nil
			case <-limit.Done():
				return errors.New("still running")
			}
		},
	})
}

// Every runs work immediately and then once per interval, until the shutdown. After an error it retries with the back-off of Go
// instead of the interval.
func (rt *Runtime) Every(name string, interval time.Duration, work func(ctx context.Context) error) {
	rt.Go(name, func(ctx context.Context) error {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			if err := work(ctx); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
}

func (rt *Runtime) supervise(ctx context.Context, name string, work func(ctx context.Context) error) {
	wait := firstBackoff
	for {
		start := time.Now()
		err := recovered(ctx, work)
		if ctx.Err() != nil || err == nil {
			return
		}
		if time.Since(start) > steadyAfter {
			wait = firstBackoff
		}
		rt.restarts.WithLabelValues(name).Inc()
		rt.Log.Error("worker failed; restarting it", slog.String("worker", name),
			slog.Duration("in", wait), slog.Any("error", err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/2 + rand.N(wait/2)): //nolint:gosec // jitter
		}
		wait = min(2*wait, lastBackoff)
	}
}

// recovered turns a panic of work into an error.
func recovered(ctx context.Context, work func(ctx context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work(ctx)
}

// run starts the parts, waits until ctx ends or a server fails, and stops them.
func (rt *Runtime) run(ctx context.Context) error {
	for i := range rt.parts {
		p := &rt.parts[i]
		if p.start == nil {
			continue
		}
		if err := p.start(); err != nil {
			return errors.Join(fmt.Errorf("start %s: %w", p.name, err), rt.stop()) //nolint:contextcheck // the stop happens after ctx has ended
		}
		p.runs = true
	}
	rt.Log.Info("ready to serve")
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-rt.failed:
	}
	rt.stopping.Store(true)
	rt.Log.Info("stopping")
	if failure == nil {
		rt.drain()
	}
	return errors.Join(failure, rt.stop()) //nolint:contextcheck // the stop happens after ctx has ended
}

// stop stops the parts in reverse order. A part that hangs uses up the remaining time, but the others are still stopped.
func (rt *Runtime) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), rt.Common.StopTimeout)
	defer cancel()
	var failures []error
	for _, p := range slices.Backward(rt.parts) {
		if !p.runs {
			continue
		}
		if err := p.stop(ctx); err != nil {
			failures = append(failures, fmt.Errorf("stop %s: %w", p.name, err))
			continue
		}
		rt.Log.Debug("stopped", slog.String("part", p.name))
	}
	return errors.Join(failures...)
}

// trace starts the export of traces if an address is set.
func (rt *Runtime) trace(ctx context.Context) error {
	if rt.Common.OTLPEndpoint == "" {
		return nil
	}
	stop, err := obs.StartTracing(ctx, rt.Name, rt.Common.OTLPEndpoint, rt.Common.TraceRatio)
	if err != nil {
		return fmt.Errorf("start tracing: %w", err)
	}
	rt.OnStop("traces", stop)
	return nil
}
