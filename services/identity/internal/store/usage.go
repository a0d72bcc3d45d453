package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const (
	usageColumns = `tenant_id, livemode, day, requests_read, requests_write, requests_export, requests_stream, requests_rejected,
	bookings, events, deliveries, stored_rows, stored_bytes, payments, measured_at, requests_unauthenticated`
	collectionColumns = `day, cursor, rows, leased_until, completed_at`
)

// UsageCollectionForUpdate locks the day that is not complete. If there is none, it begins the day after the last one; the first is
// today. It returns domain.ErrUsageNotRecorded if another process completes the day meanwhile. tx has the worker role, like that of the
// functions below.
func UsageCollectionForUpdate(ctx context.Context, tx pg.Tx, today time.Time) (domain.UsageCollection, error) {
	_, err := tx.Exec(ctx, `
		insert into usage_collections (day) select coalesce(max(day) + 1, $1::date) from usage_collections
		having count(*) = count(completed_at) on conflict do nothing`, today)
	if err != nil {
		return domain.UsageCollection{}, fmt.Errorf("begin usage: %w", err)
	}
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.UsageCollection], domain.ErrUsageNotRecorded, `
		select `+collectionColumns+` from usage_collections where completed_at is null order by day limit 1 for update`)
}

// LeaseUsageCollection writes until when a process has a day.
func LeaseUsageCollection(ctx context.Context, tx pg.Tx, day, until time.Time) error {
	return pg.Exec(ctx, tx, "lease usage", `update usage_collections set leased_until = $2 where day = $1 and completed_at is null`, day, until)
}

// RenewUsageCollection replaces the end of the lease that a process took or renewed last; nil: the process leaves the day to others. It
// reports whether no other process has taken the day.
func RenewUsageCollection(ctx context.Context, tx pg.Tx, day, from time.Time, until *time.Time) (bool, error) {
	n, err := pg.Affect(ctx, tx, "renew the lease of usage", `
		update usage_collections set leased_until = $3 where day = $1 and (leased_until = $2 or leased_until is null) and completed_at is null`, day, from, until)
	return n == 1, err
}

// AdvanceUsageCollection moves the cursor of a day, and reports whether it still was where the caller read it.
func AdvanceUsageCollection(ctx context.Context, tx pg.Tx, from domain.UsageCollection, to ids.Tenant, rows int, until time.Time) (bool, error) {
	n, err := pg.Affect(ctx, tx, "advance usage", `
		update usage_collections set cursor = $3, rows = rows + $4, leased_until = $5 where day = $1 and cursor = $2 and completed_at is null`,
		from.Day, from.Cursor.UUID(), to, rows, until)
	return n == 1, err
}

// CompleteUsageCollection completes a day, and reports whether it was not complete.
func CompleteUsageCollection(ctx context.Context, tx pg.Tx, c domain.UsageCollection, at time.Time) (bool, error) {
	n, err := pg.Affect(ctx, tx, "complete usage", `
		update usage_collections set completed_at = $3, leased_until = null where day = $1 and cursor = $2 and completed_at is null`,
		c.Day, c.Cursor.UUID(), at)
	return n == 1, err
}

// FirstUnrecordedDay returns the first day that is not complete, or nil if no day has begun yet. Days are completed in order.
func FirstUnrecordedDay(ctx context.Context, q pg.Q) (*time.Time, error) {
	return pg.One(ctx, q, pgx.RowTo[*time.Time], nil, `
		select coalesce(min(day) filter (where completed_at is null), max(day) + 1) from usage_collections`)
}

// UsageTenants returns the ids of at most limit tenants after one that were created before a time.
func UsageTenants(ctx context.Context, q pg.Q, after ids.Tenant, before time.Time, limit int) ([]ids.Tenant, error) {
	return pg.Many(ctx, q, pgx.RowTo[ids.Tenant], `
		select tenant_id from tenants where tenant_id > $1 and created_at < $2 order by tenant_id limit $3`, after.UUID(), before, limit)
}

// InsertUsage adds rows.
func InsertUsage(ctx context.Context, tx pg.Tx, list []domain.Usage) error {
	b := &pgx.Batch{}
	for _, u := range list {
		b.Queue(`insert into usage_days (`+usageColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
			u.TenantID, u.Livemode, u.Day, u.RequestsRead, u.RequestsWrite, u.RequestsExport, u.RequestsStream, u.RequestsRejected,
			u.Bookings, u.Events, u.Deliveries, u.StoredRows, u.StoredBytes, u.Payments, u.MeasuredAt, u.RequestsUnauthenticated)
	}
	return pg.Send(ctx, tx, b, "insert usage")
}

// UsageRecordedThrough returns the last complete day, or nil.
func UsageRecordedThrough(ctx context.Context, q pg.Q) (*time.Time, error) {
	return pg.One(ctx, q, pgx.RowTo[*time.Time], pgx.ErrNoRows, `select max(day) from usage_collections where completed_at is not null`)
}

// TenantUsage returns the rows of a tenant from one day to another, by day and mode. livemode selects a mode; nil: both.
func TenantUsage(ctx context.Context, q pg.Q, tenant ids.Tenant, from, to time.Time, livemode *bool) ([]domain.Usage, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Usage], `select `+usageColumns+` from usage_days
		where tenant_id = $1 and day between $2 and $3 and ($4::boolean is null or livemode = $4) order by day, livemode`, tenant, from, to, livemode)
}

// UsageRow is the place of a row among those of a day.
type UsageRow struct {
	TenantID ids.Tenant
	Livemode bool
}

// UsageOfDay returns at most limit rows of a day after one, by tenant and mode.
func UsageOfDay(ctx context.Context, q pg.Q, day time.Time, after UsageRow, limit int) ([]domain.Usage, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Usage], `select `+usageColumns+` from usage_days
		where day = $1 and (tenant_id, livemode) > ($2, $3) order by tenant_id, livemode limit $4`, day, after.TenantID.UUID(), after.Livemode, limit)
}
