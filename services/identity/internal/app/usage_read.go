package app

import (
	"context"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// TenantUsage returns the recorded usage of a tenant from one day to another, and the last recorded day of all. livemode selects a mode;
// nil: both.
func (a *App) TenantUsage(ctx context.Context, tenant ids.Tenant, from, to time.Time, livemode *bool) (list []domain.Usage, through *time.Time, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if through, err = store.UsageRecordedThrough(ctx, tx); err != nil || through == nil {
			return err
		}
		if to.After(*through) {
			to = *through // later rows are of a day that is not complete
		}
		list, err = store.TenantUsage(ctx, tx, tenant, from, to, livemode)
		return err
	})
	return list, through, err
}

// UsageOfDay returns at most limit rows of a recorded day after one, and whether there are more. It returns
// domain.ErrUsageNotRecorded for any other day.
func (a *App) UsageOfDay(ctx context.Context, day time.Time, after store.UsageRow, limit int) (list []domain.Usage, more bool, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		through, err := store.UsageRecordedThrough(ctx, tx)
		if err != nil {
			return err
		}
		if list, err = store.UsageOfDay(ctx, tx, day, after, limit+1); err != nil {
			return err
		}
		if through == nil || day.After(*through) || len(list) == 0 && after == (store.UsageRow{}) {
			return domain.ErrUsageNotRecorded
		}
		return nil
	})
	more = len(list) > limit
	return list[:min(len(list), limit)], more, err
}
