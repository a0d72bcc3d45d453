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
	// lockTry is how long a schema change waits for a lock. Later statements wait behind it for the same time, so it gives up
	// early, lets them pass and tries again. A dump that reads the table for an hour therefore does not block requests.
	lockTry        = 300 * time.Millisecond
	firstLockPause = 500 * time.Millisecond
	lastLockPause  = 10 * time.Second
	// lockLimit is how long it tries in total. It is below the five minutes that Helm waits for a hook.
	lockLimit = 4 * time.Minute
)

// Alter calls change with a connection in the owner role that waits only briefly for each lock, and calls it again if a lock was
// not free, for at most limit. change is not a transaction and must be safe to repeat.
func Alter(ctx context.Context, url string, limit time.Duration, change func(ctx context.Context, conn *pgx.Conn) error) error {
	cfg, err := ownerConfig(url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("reach database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return retryLocked(ctx, limit, func() error { return change(ctx, conn) })
}

// ownerConfig returns the configuration of a connection in the owner role that waits only briefly for each lock.
func ownerConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	cfg.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTry.Milliseconds())
	return cfg, nil
}

// retryLocked calls try until it gets its locks, ctx ends or limit has passed.
func retryLocked(ctx context.Context, limit time.Duration, try func() error) error {
	pause := firstLockPause
	for end := time.Now().Add(limit); ; pause = min(2*pause, lastLockPause) {
		err := try()
		if Code(err) != "55P03" {
			return err
		}
		wait := pause/2 + rand.N(pause) //nolint:gosec // jitter
		if time.Now().Add(wait).After(end) {
			return fmt.Errorf("a table's lock was not free for %v: end the transaction that holds it, such as a dump, and run this again: %w", limit, err)
		}
		slog.WarnContext(ctx, "table locked by another transaction; trying again", slog.Duration("in", wait), slog.Any("error", err))
		select {
		case <-ctx.Done():
			return fmt.Errorf("a table's lock was not free: %w: %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}
