package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
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

// UsageToday measures the usage of a tenant on the running day until now, and returns a row for each mode, without stored rows. It records
// nothing. It returns apperr.ErrUnavailable if a service does not respond in time, because the sum would lack its part, and
// domain.ErrUsageNotRecorded for a tenant whose rows are being erased.
func (m *Metering) UsageToday(ctx context.Context, t domain.Tenant) (day time.Time, rows []domain.Usage, err error) {
	now := m.now().UTC()
	day = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	if t.Status == domain.TenantErasing {
		return day, nil, domain.ErrUsageNotRecorded.WithMessage("The tenant is being erased, so its usage of today cannot be measured.")
	}
	parts, unavailable := queryServices(ctx, m, t.ID, "usage of the running day", func(s UsageSource, ctx context.Context) ([]domain.Usage, error) {
		return s.Current(ctx, day)
	})
	if unavailable != nil {
		return day, nil, apperr.ErrUnavailable.WithMessage("The usage of today is not complete, because these services did not respond: %s. Retry shortly.",
			strings.Join(unavailable, ", "))
	}
	rows = noUsage(day, []ids.Tenant{t.ID})
	for service, part := range parts {
		if len(part) != len(rows) || part[0].Livemode == part[1].Livemode {
			return day, nil, fmt.Errorf("usage of %s: %w", service, errRows)
		}
		if err := addUsage(rows, part); err != nil {
			return day, nil, fmt.Errorf("usage of %s: %w", service, err)
		}
	}
	finish(rows, now)
	return day, rows, nil
}
