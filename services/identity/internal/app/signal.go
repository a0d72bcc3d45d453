package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

const (
	signalBatch = 500
	signalPoll  = time.Second
)

// tell tries to tell Redis of a tenant's signals now. A failure is logged here and not returned, because the
// change itself is committed and KeepTelling goes on.
func (a *App) tell(ctx context.Context, tenant ids.Tenant) (told bool) {
	if err := a.TellSignals(ctx, tenant); err != nil {
		a.Log.WarnContext(ctx, "signal to the gateways is late", slog.String("tenant", tenant.String()), slog.Any("error", err))
		return false
	}
	return true
}

// TellSignals tells Redis of all signals of one tenant or, for the zero id, of all tenants, and forgets them.
// Redis is told outside any transaction; a crash in between tells it again, which changes nothing.
func (a *App) TellSignals(ctx context.Context, tenant ids.Tenant) error {
	var after domain.KeyID
	for {
		signals, err := a.signals(ctx, tenant, after)
		if err != nil || len(signals) == 0 {
			return err
		}
		if err := a.Redis.Tell(ctx, signals); err != nil {
			return err
		}
		err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.DeleteSignals(ctx, tx, signals) })
		if err != nil || len(signals) < signalBatch {
			return err
		}
		after = signals[len(signals)-1].KeyID
	}
}

func (a *App) signals(ctx context.Context, tenant ids.Tenant, after domain.KeyID) (signals []domain.Signal, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		signals, err = store.Signals(ctx, tx, tenant, after, signalBatch)
		return err
	})
	return signals, err
}

// KeepTelling repeats what could not be told at once, until ctx ends.
func (a *App) KeepTelling(ctx context.Context) error {
	tick := time.NewTicker(signalPoll)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := a.TellSignals(ctx, ids.Tenant{})
		if err != nil && !failing && !errors.Is(err, context.Canceled) {
			a.Log.WarnContext(ctx, "signals to the gateways wait", slog.Any("error", err))
		}
		failing = err != nil
	}
}
