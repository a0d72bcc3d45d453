package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast.dev/libs/secret"
)

// Runtime is where a process registers its parts. *service.Runtime implements it.
type Runtime interface {
	OnStop(name string, stop func(ctx context.Context) error)
	Ready(name string, run func(ctx context.Context) error)
	Register(metrics prometheus.Collector)
}

// OpenManaged opens a traced pool, registers its metrics, and closes it when the process stops. The process is ready only while the pool's
// server responds.
// If the URL's file changes, the pool switches to the new URL. An unreachable server is not an error, because it may recover. A rejected login,
// a missing database, a standby, or an owner that cannot see all rows is an error.
func OpenManaged(ctx context.Context, rt Runtime, name string, url secret.Setting, opt Options) (*DB, error) {
	opt.Tracer = newTracer()
	db, err := open(ctx, url, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	err = db.Ping(ctx)
	if err == nil {
		err = db.checkServer(ctx)
	}
	if err != nil {
		if !unreachable(err) && (!opt.Pooler || Code(err) != poolerError) {
			db.Close()
			return nil, fmt.Errorf("%s: reach database: %w", name, explain(err, opt))
		}
		slog.WarnContext(ctx, "database unreachable; not ready until it responds", slog.String("database", name), slog.Any("error", err))
	}
	rt.OnStop(name, func(context.Context) error { db.Close(); return nil })
	rt.Ready(name, db.Ping)
	rt.Register(newPoolMetrics(db, opt))
	return db, nil
}

// unreachable reports whether err means that no server responded, or that the server is starting, stopping or full.
func unreachable(err error) bool {
	code := Code(err)
	return !errors.Is(err, errStandby) && Down(err) && (code == "" || code == "53300" || strings.HasPrefix(code, "57P"))
}
