package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/logs/internal/domain"
)

// MaxInsert is the maximum number of rows of one call of InsertRequestLogs.
const MaxInsert = 5000

// InsertRequestLogs writes requests that are not stored yet and counts them by tenant, mode and day. It returns their number. tx has
// the worker role.
func InsertRequestLogs(ctx context.Context, tx pg.Tx, list []domain.RequestLog) (int, error) {
	n, err := pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `
		with
		-- added: the rows that were not there
		added as (
			insert into request_logs (tenant_id, livemode, id, status, status_class, method, route, path, query_names, code, param,
				credential_id, credential_type, object_id, duration_ms, client_network, user_agent, sdk_version, idempotency_key_hash, replayed)
			select tenant_id, livemode, id, status, status / 100, method, route, path, query_names, code, param,
				credential_id, credential_type, object_id, duration_ms, client_network, user_agent, sdk_version, idempotency_key_hash, replayed
			from unnest(@tenants::uuid[], @modes::boolean[], @ids::uuid[], @statuses::integer[], @methods::text[], @routes::text[],
				@paths::text[], @names::text[], @codes::text[], @params::text[], @credentials::text[], @types::text[], @objects::text[],
				@durations::bigint[], @networks::text[], @agents::text[], @sdks::text[], @hashes::bytea[], @replayed::boolean[])
				as l(tenant_id, livemode, id, status, method, route, path, query_names, code, param, credential_id, credential_type, object_id,
					duration_ms, client_network, user_agent, sdk_version, idempotency_key_hash, replayed)
			on conflict (tenant_id, livemode, id) do nothing
			returning tenant_id, livemode, id
		),
		-- counted: the counts, in one order, so that processes that write the same tenants do not deadlock
		counted as (
			insert into request_log_counts as c (tenant_id, livemode, day, rows)
			select tenant_id, livemode, uuid_day(id), count(*) from added group by 1, 2, 3 order by 1, 2, 3
			on conflict (tenant_id, livemode, day) do update set rows = c.rows + excluded.rows
		)
		select count(*)::int from added`, insertArgs(list))
	if err != nil {
		return 0, fmt.Errorf("insert request logs: %w", err)
	}
	return n, nil
}

func insertArgs(list []domain.RequestLog) pg.Args {
	return pg.Args{
		"tenants": column(list, func(l *domain.RequestLog) [16]byte { return l.TenantID.UUID() }),
		"modes":   column(list, func(l *domain.RequestLog) bool { return l.Livemode }),
		"ids":     column(list, func(l *domain.RequestLog) [16]byte { return l.ID.UUID() }),

		"statuses":    column(list, func(l *domain.RequestLog) int { return l.Status }),
		"methods":     column(list, func(l *domain.RequestLog) string { return l.Method }),
		"routes":      column(list, func(l *domain.RequestLog) string { return l.Route }),
		"paths":       column(list, func(l *domain.RequestLog) string { return l.Path }),
		"names":       column(list, func(l *domain.RequestLog) string { return strings.Join(l.QueryNames, ",") }),
		"codes":       column(list, func(l *domain.RequestLog) *string { return l.Code }),
		"params":      column(list, func(l *domain.RequestLog) *string { return l.Param }),
		"credentials": column(list, func(l *domain.RequestLog) string { return l.CredentialID }),
		"types":       column(list, func(l *domain.RequestLog) string { return l.CredentialType }),
		"objects":     column(list, func(l *domain.RequestLog) *string { return l.ObjectID }),
		"durations":   column(list, func(l *domain.RequestLog) int64 { return l.DurationMS }),
		"networks":    column(list, func(l *domain.RequestLog) *string { return l.ClientNetwork }),
		"agents":      column(list, func(l *domain.RequestLog) *string { return l.UserAgent }),
		"sdks":        column(list, func(l *domain.RequestLog) *string { return l.SDKVersion }),
		"hashes":      column(list, func(l *domain.RequestLog) []byte { return l.IdempotencyKeyHash }),
		"replayed":    column(list, func(l *domain.RequestLog) bool { return l.Replayed }),
	}
}

// column returns one value of each row, as an array for unnest.
func column[V any](list []domain.RequestLog, value func(l *domain.RequestLog) V) []V {
	out := make([]V, len(list))
	for i := range list {
		out[i] = value(&list[i])
	}
	return out
}

// MaxTrim is the maximum number of rows of a tenant and mode that one call of TrimRequestLogs deletes.
const MaxTrim = 10_000

// refusedShare is the part of the log of a tenant and mode, 1/refusedShare, that refused requests (401 and 429) cannot exceed while the
// log is full. The rest is for other requests.
const refusedShare = 10

// TrimRequestLogs deletes rows of each tenant and mode in list that has more than most rows, and returns the number of deleted rows: first
// the oldest refused requests beyond their share, then the oldest of all. tx has the worker role, and has inserted list.
func TrimRequestLogs(ctx context.Context, tx pg.Tx, list []domain.RequestLog, most int) (int, error) {
	n, err := pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `
		with
		-- surplus: the tenants and modes with too many rows, and how many
		surplus as (
			select c.tenant_id, c.livemode, least(sum(c.rows) - @most, @trim)::bigint as rows
			from (select distinct * from unnest(@tenants::uuid[], @modes::boolean[]) as l(tenant_id, livemode)) l
			join request_log_counts c using (tenant_id, livemode)
			group by 1, 2 having sum(c.rows) > @most
		),
		-- oldest: the ids to delete. As an array, they are looked up one by one; a join would read all rows of the tenant.
		oldest as materialized (
			select s.tenant_id, s.livemode, array(
				with refused as (
					select r.id from request_logs r where r.tenant_id = s.tenant_id and r.livemode = s.livemode and r.status in (401, 429)
					order by r.id desc offset @refused
				), oldest as (
					select o.id from request_logs o where o.tenant_id = s.tenant_id and o.livemode = s.livemode order by o.id limit s.rows
				)
				select id from (
					select id, 1 as turn from refused union all select id, 2 from oldest where id not in (select id from refused)
				) surplus order by turn, id limit s.rows
			) as ids
			from surplus s
		),
		deleted as (
			delete from request_logs l using oldest o cross join lateral unnest(o.ids) as x(id)
			where l.tenant_id = o.tenant_id and l.livemode = o.livemode and l.id = x.id
			returning l.tenant_id, l.livemode, l.id
		),
		counted as (
			update request_log_counts c set rows = c.rows - d.rows
			from (select tenant_id, livemode, uuid_day(id) as day, count(*) as rows from deleted group by 1, 2, 3) d
			where c.tenant_id = d.tenant_id and c.livemode = d.livemode and c.day = d.day
		)
		select count(*)::int from deleted`, pg.Args{
		"tenants": column(list, func(l *domain.RequestLog) [16]byte { return l.TenantID.UUID() }),
		"modes":   column(list, func(l *domain.RequestLog) bool { return l.Livemode }),
		"most":    most, "trim": MaxTrim, "refused": most / refusedShare,
	})
	if err != nil {
		return 0, fmt.Errorf("trim request logs: %w", err)
	}
	return n, nil
}

// MaintainPartitions creates the partitions of the days between from and until, and drops those of earlier days. It returns the number
// of partitions that are still to be dropped, because a transaction reads them. tx has the worker role.
func MaintainPartitions(ctx context.Context, tx pg.Tx, from, until time.Time) (remaining int, err error) {
	remaining, err = pg.One(ctx, tx, pgx.RowTo[int], pgx.ErrNoRows, `select keep_partitions(@from, @until)`, pg.Args{"from": from, "until": until})
	if err != nil {
		return 0, fmt.Errorf("maintain partitions: %w", err)
	}
	return remaining, nil
}
