package pg

import (
	"context"
	"fmt"

	"holdfast.dev/libs/obs"
)

// Runtime is what a process registers its parts with; *service.Runtime is one.
type Runtime interface {
	OnStop(name string, stop func(ctx context.Context) error)
	Ready(name string, run func(ctx context.Context) error)
}

// OpenIn opens a traced pool, without which rt's process is not ready, and closes it at the stop.
func OpenIn(ctx context.Context, rt Runtime, name, url string, opt Options) (*DB, error) {
	opt.Tracer = obs.NewPostgres()
	db, err := Open(ctx, url, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	rt.OnStop(name, func(context.Context) error { db.Close(); return nil })
	rt.Ready(name, db.Ping)
	return db, nil
}
