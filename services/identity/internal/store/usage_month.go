package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

// monthColumns are the columns of domain.UsageMonth, for rows of usage_days that are grouped by tenant, mode and month.
const monthColumns = `tenant_id, livemode, date_trunc('month', day::timestamp)::date as day, count(*)::int as days,
	sum(requests_read)::bigint as requests_read, sum(requests_write)::bigint as requests_write, sum(requests_export)::bigint as requests_export,
	sum(requests_stream)::bigint as requests_stream, sum(requests_rejected)::bigint as requests_rejected,
	sum(requests_unauthenticated)::bigint as requests_unauthenticated, sum(bookings)::bigint as bookings, sum(events)::bigint as events,
	sum(deliveries)::bigint as deliveries, (array_agg(stored_rows order by day desc))[1] as stored_rows,
	(array_agg(stored_bytes order by day desc))[1] as stored_bytes, '[]'::jsonb as payments, jsonb_agg(payments) as all_payments,
	max(measured_at) as measured_at`

// TenantUsageMonths returns the sums of the days of a tenant from one day to another, by month and mode. livemode selects a mode; nil:
// both.
func TenantUsageMonths(ctx context.Context, q pg.Q, tenant ids.Tenant, from, to time.Time, livemode *bool) ([]domain.UsageMonth, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.UsageMonth], `select `+monthColumns+` from usage_days
		where tenant_id = $1 and day between $2 and $3 and ($4::boolean is null or livemode = $4)
		group by tenant_id, livemode, date_trunc('month', day::timestamp) order by 3, livemode`, tenant, from, to, livemode)
}

// UsageOfMonth returns at most limit sums of the days from one day to another of a month after a row, by tenant and mode. It finds the
// tenants of the page one after the other in the primary key, and then reads their days.
func UsageOfMonth(ctx context.Context, q pg.Q, from, to time.Time, after UsageRow, limit int) ([]domain.UsageMonth, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.UsageMonth], `with recursive found as (
			(select tenant_id, livemode from usage_days where (tenant_id, livemode) > ($3, $4) and day between $1 and $2
				order by tenant_id, livemode limit 1)
			union all
			select n.* from found f cross join lateral (
				select tenant_id, livemode from usage_days d where (d.tenant_id, d.livemode) > (f.tenant_id, f.livemode) and d.day between $1 and $2
				order by tenant_id, livemode limit 1) n),
		page as materialized (select * from found limit $5)
		select m.* from page p cross join lateral (select `+monthColumns+` from usage_days d
			where d.tenant_id = p.tenant_id and d.livemode = p.livemode and d.day between $1 and $2
			group by tenant_id, livemode, date_trunc('month', day::timestamp)) m
		order by m.tenant_id, m.livemode`, from, to, after.TenantID.UUID(), after.Livemode, limit)
}
