package pg

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// briefLock is how long a change of the schema waits for a lock. All that comes behind it waits for it as long, so
	// it gives up, lets them pass and tries again: a dump that reads the table for an hour stops nobody.
	briefLock      = 300 * time.Millisecond
	firstLockPause = 500 * time.Millisecond
	lastLockPause  = 10 * time.Second
	// lockPatience is how long it tries, below the five minutes that helm waits for a hook.
	lockPatience = 4 * time.Minute
)

// Alter calls change with a connection in the owner's role that waits but briefly for each lock, and again when one
// was not free, for at most patience. change is no transaction and must be safe to repeat.
func Alter(ctx context.Context, url string, patience time.Duration, change func(ctx context.Context, conn *pgx.Conn) error) error {
	cfg, err := ownerConfig(url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("reach database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to be done
	return untilLocked(ctx, patience, func() error { return change(ctx, conn) })
}

// ownerConfig is a connection of the owner that waits but briefly for each lock.
func ownerConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	cfg.RuntimeParams["lock_timeout"] = fmt.Sprint(briefLock.Milliseconds())
	return cfg, nil
}

// untilLocked calls try until no lock was in its way, ctx ends or patience is over.
func untilLocked(ctx context.Context, patience time.Duration, try func() error) error {
	pause := firstLockPause
	for limit := time.Now().Add(patience); ; pause = min(2*pause, lastLockPause) {
		err := try()
		if Code(err) != "55P03" {
			return err
		}
		wait := pause/2 + rand.N(pause) //nolint:gosec // jitter
		if time.Now().Add(wait).After(limit) {
			return fmt.Errorf("a table's lock was not free for %v: end the transaction that holds it, such as a dump, and run this again: %w", patience, err)
		}
		slog.WarnContext(ctx, "a table's lock is not free, trying again", slog.Duration("in", wait), slog.Any("error", err))
		select {
		case <-ctx.Done():
			return fmt.Errorf("a table's lock was not free: %w: %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}
