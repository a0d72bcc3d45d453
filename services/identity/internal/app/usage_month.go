package app

import (
	"context"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// TenantUsageMonths returns the recorded usage of a tenant in each month from one to another, and the last recorded day of all. livemode
// selects a mode; nil: both.
func (a *App) TenantUsageMonths(
	ctx context.Context, tenant ids.Tenant, from, to time.Time, livemode *bool,
) (list []domain.UsageMonth, through *time.Time, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if through, err = store.UsageRecordedThrough(ctx, tx); err != nil || through == nil {
			return err
		}
		list, err = store.TenantUsageMonths(ctx, tx, tenant, from, earlier(domain.LastDay(to), *through), livemode)
		return err
	})
	return sums(list), through, err
}

// UsageOfMonth returns at most limit rows of a month after one, whether there are more, and the last recorded day. It returns
// domain.ErrUsageNotRecorded if no day of the month is recorded.
func (a *App) UsageOfMonth(
	ctx context.Context, month time.Time, after store.UsageRow, limit int,
) (list []domain.UsageMonth, more bool, through time.Time, err error) {
	err = a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
		last, err := store.UsageRecordedThrough(ctx, tx)
		if err != nil {
			return err
		}
		if last == nil || last.Before(month) {
			return domain.ErrUsageNotRecorded.WithMessage("No day of this month is recorded yet.")
		}
		through = *last
		list, err = store.UsageOfMonth(ctx, tx, month, earlier(domain.LastDay(month), through), after, limit+1)
		if err == nil && len(list) == 0 && after == (store.UsageRow{}) {
			return domain.ErrUsageNotRecorded.WithMessage("No day of this month is recorded.")
		}
		return err
	})
	more = len(list) > limit
	return sums(list[:min(len(list), limit)]), more, through, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func sums(list []domain.UsageMonth) []domain.UsageMonth {
	for i, m := range list {
		list[i] = m.Sum()
	}
	return list
}
