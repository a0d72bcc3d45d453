package pg

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Runtime is what a process registers its parts with; *service.Runtime is one.
type Runtime interface {
	OnStop(name string, stop func(ctx context.Context) error)
	Ready(name string, run func(ctx context.Context) error)
}

// OpenManaged opens a traced pool, without which rt's process is not ready, and closes it at the stop. A server that is
// away is waited for, as it would be later on; one that refuses the login or lacks the database is an error.
func OpenManaged(ctx context.Context, rt Runtime, name, url string, opt Options) (*DB, error) {
	opt.Tracer = newTracer()
	db, err := open(ctx, url, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := db.Ping(ctx); err != nil {
		if !away(err) {
			db.Close()
			return nil, fmt.Errorf("%s: reach database: %w", name, err)
		}
		slog.WarnContext(ctx, "the database is away: not ready until it answers", slog.String("database", name), slog.Any("error", err))
	}
	rt.OnStop(name, func(context.Context) error { db.Close(); return nil })
	rt.Ready(name, db.Ping)
	return db, nil
}

// away reports whether err says that no server answered, or that it is starting, stopping or full.
func away(err error) bool {
	code := Code(err)
	return Down(err) && (code == "" || code == "53300" || strings.HasPrefix(code, "57P"))
}
