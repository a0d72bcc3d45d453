package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"holdfast.dev/libs/obs"
)

// checkTimeout is the deadline of all readiness checks together.
const checkTimeout = 2 * time.Second

type check struct {
	name string
	run  func(ctx context.Context) error
}

// Ready registers a check of GET /readyz, such as a ping of the database.
func (rt *Runtime) Ready(name string, run func(ctx context.Context) error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.checks = append(rt.checks, check{name, run})
}

// HTTP registers a server with the limits of Common.HTTP. It serves GET /healthz and /readyz itself and passes everything else to h
// inside obs.Handler, so that each request has its line, trace and metrics.
func (rt *Runtime) HTTP(addr string, h http.Handler) {
	rt.serve(addr, obs.Handler(rt.Log, rt.red, h))
}

// Observed adds a log line, a trace and metrics to each request of h. Use it for requests that do not arrive through a server.
func (rt *Runtime) Observed(h http.Handler) http.Handler { return obs.Handler(rt.Log, rt.red, h) }

// PublicHTTP is HTTP for a server on the public internet. Each request starts a new trace unless continueTraces is true, because a
// client's traceparent could force sampling of every request, or join unrelated requests.
func (rt *Runtime) PublicHTTP(addr string, continueTraces bool, h http.Handler) {
	seen := rt.Observed(h)
	rt.serve(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !continueTraces {
			r.Header.Del("Traceparent")
			r.Header.Del("Tracestate")
		}
		seen.ServeHTTP(w, r)
	}))
}

func (rt *Runtime) serve(addr string, h http.Handler) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", rt.ready)
	// The mux cleans paths and redirects, so it handles only the two health paths.
	rt.server("http "+addr, addr, rt.Common.HTTP, rt.closing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz") {
			mux.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})), rt.countConnection)
}

// Addr returns the address on which the server registered for addr listens, once it runs. It differs from addr if addr has port 0.
func (rt *Runtime) Addr(addr string) net.Addr {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.addrs[addr]
}

// serveMetrics registers the server of /metrics and profiles, on an address that clients cannot reach.
func (rt *Runtime) serveMetrics() {
	if rt.Common.MetricsAddr == "" {
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(rt.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	limits := rt.Common.HTTP
	limits.WriteTimeout = 2 * time.Minute // a profile takes as long as the request specifies
	limits.MaxConnections = 100
	rt.server("metrics", rt.Common.MetricsAddr, limits, mux, nil)
}

func (rt *Runtime) server(name, addr string, limits HTTPLimits, h http.Handler, connState func(net.Conn, http.ConnState)) {
	srv := &http.Server{
		Handler: h, ConnState: connState, DisableGeneralOptionsHandler: true, ReadHeaderTimeout: limits.ReadHeaderTimeout, ReadTimeout: limits.ReadTimeout,
		WriteTimeout: limits.WriteTimeout, IdleTimeout: limits.IdleTimeout, MaxHeaderBytes: limits.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(rt.Log.Handler(), slog.LevelDebug),
	}
	rt.parts = append(rt.parts, part{
		name: name,
		start: func() error {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
			if err != nil {
				return fmt.Errorf("listen: %w", err)
			}
			rt.mu.Lock()
			rt.addrs[addr] = l.Addr()
			rt.mu.Unlock()
			go rt.accept(name, srv, netutil.LimitListener(l, limits.MaxConnections))
			return nil
		},
		stop: func(ctx context.Context) error {
			if err := srv.Shutdown(ctx); err != nil {
				return errors.Join(err, srv.Close())
			}
			return nil
		},
	})
}

func (rt *Runtime) accept(name string, srv *http.Server, l net.Listener) {
	rt.Log.Info("listening", slog.String("server", name), slog.String("addr", l.Addr().String()))
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		rt.Fail(fmt.Errorf("%s: %w", name, err))
	}
}

// ready returns 200 if every check passes within the deadline and the shutdown has not begun. Otherwise it returns 503 with the
// name of the failed check. The cause is only logged, because the path is public.
func (rt *Runtime) ready(w http.ResponseWriter, r *http.Request) {
	if rt.stopping.Load() {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	rt.mu.Lock()
	checks := rt.checks
	rt.mu.Unlock()
	results := make(chan error, len(checks))
	for _, c := range checks {
		go func() {
			err := recovered(ctx, c.run)
			if err != nil {
				rt.Log.Warn("not ready", slog.String("check", c.name), slog.Any("error", err))
				err = fmt.Errorf("not ready: %s", c.name)
			}
			results <- err
		}()
	}
	for range checks {
		select {
		case err := <-results:
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		case <-ctx.Done():
			http.Error(w, "not ready: a check timed out", http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}
