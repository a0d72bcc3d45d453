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
	invalidationBatch = 500
	invalidationPoll  = time.Second
)

// publish publishes a tenant's invalidations and reports whether that succeeded. A failure is logged and not returned, because
// the change itself is committed and RetryPublish retries.
func (a *App) publish(ctx context.Context, tenant ids.Tenant) (published bool) {
	if err := a.PublishInvalidations(ctx, tenant); err != nil {
		a.Log.WarnContext(ctx, "cache invalidation not written to Redis; trying again", slog.String("tenant", tenant.String()), slog.Any("error", err))
		return false
	}
	return true
}

// PublishInvalidations writes all invalidations of one tenant or, for the zero id, of all tenants to Redis and deletes them. It
// writes to Redis outside any transaction. After a crash in between, the write is repeated, which changes nothing.
func (a *App) PublishInvalidations(ctx context.Context, tenant ids.Tenant) error {
	var after domain.Invalidation
	for {
		list, err := a.invalidations(ctx, tenant, after)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := a.Redis.Publish(ctx, list); err != nil {
			return err
		}
		err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.DeleteInvalidations(ctx, tx, list) })
		if err != nil || len(list) < invalidationBatch {
			return err
		}
		after = list[len(list)-1]
	}
}

func (a *App) invalidations(ctx context.Context, tenant ids.Tenant, after domain.Invalidation) (list []domain.Invalidation, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		list, err = store.Invalidations(ctx, tx, tenant, after, invalidationBatch)
		return err
	})
	return list, err
}

// RetryPublish publishes the invalidations that failed before, until ctx ends.
func (a *App) RetryPublish(ctx context.Context) error {
	tick := time.NewTicker(invalidationPoll)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := a.PublishInvalidations(ctx, ids.Tenant{})
		if err != nil && !failing && !errors.Is(err, context.Canceled) {
			a.Log.WarnContext(ctx, "cache invalidations not written to Redis; trying again", slog.Any("error", err))
		}
		failing = err != nil
	}
}
