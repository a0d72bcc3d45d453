package app

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const (
	lastUsePoll = 5 * time.Second
	lastUseMax  = 10_000 // keys noted between two writes; further ones are noted at their next look-up
)

// LastUse gathers which keys were used and writes it now and then, so that a look-up never waits for it.
type LastUse struct {
	Worker *pg.DB
	Log    *slog.Logger

	mu   sync.Mutex
	used map[domain.KeyID]time.Time
}

// Note remembers that a key was used.
func (l *LastUse) Note(id domain.KeyID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == nil {
		l.used = map[domain.KeyID]time.Time{}
	}
	if _, known := l.used[id]; known || len(l.used) < lastUseMax {
		l.used[id] = at
	}
}

// Write writes what was noted since the last write; after a failure it is kept for the next.
func (l *LastUse) Write(ctx context.Context) error {
	l.mu.Lock()
	used := l.used
	l.used = nil
	l.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	err := l.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.TouchKeys(ctx, tx, used) })
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		maps.Copy(used, l.used) // what came meanwhile is newer
		l.used = used
	}
	return err
}

// Run writes every few seconds until ctx ends, and once more then.
func (l *LastUse) Run(ctx context.Context) error {
	tick := time.NewTicker(lastUsePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			return l.Write(last)
		case <-tick.C:
			if err := l.Write(ctx); err != nil {
				l.Log.WarnContext(ctx, "last use of keys waits", slog.Any("error", err))
			}
		}
	}
}
