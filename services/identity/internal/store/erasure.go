package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const erasureColumns = `tenant_id, closed_by, started_at, erased_at, deleted, services`

// DueClosings returns at most limit closing tenants whose erasure is due, after a tenant. q has the worker role.
func DueClosings(ctx context.Context, q pg.Q, now time.Time, after ids.Tenant, limit int) ([]domain.Closing, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Closing], `select tenant_id, erasure_waits_for as waits_for from tenants
		where status = 'closing' and erase_at <= $1 and ($2::uuid is null or tenant_id > $2) order by tenant_id limit $3`, now, after, limit)
}

// UnfinishedClosings counts the closing tenants whose erasure is due and has not begun. tx has the worker role, like that of
// UnfinishedErasures.
func UnfinishedClosings(ctx context.Context, tx pg.Tx, now time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, `select count(*)::int as count,
		coalesce(extract(epoch from $1::timestamptz - min(erase_at)), 0)::float8 as age from tenants where status = 'closing' and erase_at <= $1`, now)
}

// UnfinishedErasures counts the erasures that have begun and not ended. Their age is the time since the beginning.
func UnfinishedErasures(ctx context.Context, tx pg.Tx, now time.Time) (operation.Unfinished, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[operation.Unfinished], nil, `select count(*)::int as count,
		coalesce(extract(epoch from $1::timestamptz - min(started_at)), 0)::float8 as age from tenant_erasures where erased_at is null`, now)
}

// ErasureWaitsFor returns what the erasure of a closing tenant waits for. q has the worker role.
func ErasureWaitsFor(ctx context.Context, q pg.Q, tenant ids.Tenant) (string, error) {
	return pg.One(ctx, q, pgx.RowTo[string], domain.ErrTenantNotFound, `select erasure_waits_for from tenants where tenant_id = $1`, tenant)
}

// SetErasureWaitsFor records what the erasure of the caller's closing tenant waits for. This is no change of the tenant.
func SetErasureWaitsFor(ctx context.Context, tx pg.Tx, wait string) error {
	_, err := tx.Exec(ctx, `update tenants set erasure_waits_for = @wait where tenant_id = @tenant and status = 'closing' and erasure_waits_for <> @wait`,
		pg.Args{"wait": wait})
	return err
}

// InsertErasure begins the erasure of the caller's tenant: once this is committed, it cannot be undone.
func InsertErasure(ctx context.Context, tx pg.Tx, closedBy string) error {
	_, err := tx.Exec(ctx, `insert into tenant_erasures (tenant_id, closed_by) values (@tenant, @by)`, pg.Args{"by": closedBy})
	return err
}

// Erasure returns the erasure of a tenant, or domain.ErrErasureNotFound if it has not begun. q has the worker role.
func Erasure(ctx context.Context, q pg.Q, tenant ids.Tenant) (domain.Erasure, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Erasure], domain.ErrErasureNotFound,
		`select `+erasureColumns+` from tenant_erasures where tenant_id = $1`, tenant)
}

// TakeErasure returns an unfinished erasure that no other process continues, and leases it until a time. It returns
// domain.ErrErasureNotFound if there is none. tx has the worker role.
func TakeErasure(ctx context.Context, tx pg.Tx, now, until time.Time) (domain.Erasure, error) {
	return pg.One(ctx, tx, pgx.RowToStructByName[domain.Erasure], domain.ErrErasureNotFound, `update tenant_erasures set leased_until = $2
		where tenant_id = (
			select tenant_id from tenant_erasures where erased_at is null and leased_until <= $1 order by leased_until limit 1 for update skip locked
		) returning `+erasureColumns, now, until)
}

// RenewErasure changes until when the process continues an erasure. tx has the worker role.
func RenewErasure(ctx context.Context, tx pg.Tx, tenant ids.Tenant, until time.Time) error {
	_, err := tx.Exec(ctx, `update tenant_erasures set leased_until = $2 where tenant_id = $1`, tenant, until)
	return err
}

// ConfirmErasure records that a service has no row of the tenant left. tx has the worker role.
func ConfirmErasure(ctx context.Context, tx pg.Tx, tenant ids.Tenant, service string, deleted int64) error {
	_, err := tx.Exec(ctx, `update tenant_erasures set services = services || jsonb_build_object($2::text, $3::bigint) where tenant_id = $1`,
		tenant, service, deleted)
	return err
}

// EraseMembersOfOnly disables and erases at most 1,000 operators who are or were members of the tenant and are members of no other
// one, and returns their number. tx has the app role.
func EraseMembersOfOnly(ctx context.Context, tx pg.Tx, tenant ids.Tenant, at time.Time) (int, error) {
	list, err := pg.Many(ctx, tx, pgx.RowTo[domain.OperatorID], `select id from members_of_only($1)`, tenant)
	if err != nil {
		return 0, fmt.Errorf("operators of an erased tenant: %w", err)
	}
	for _, id := range list {
		if _, err := tx.Exec(ctx, `update operators set disabled_at = coalesce(disabled_at, $2) where id = $1`, id, at); err != nil {
			return 0, fmt.Errorf("disable an operator of an erased tenant: %w", err)
		}
		if err := EraseOperator(ctx, tx, id, at); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// DeleteApps marks the apps of the caller's tenant as deleted and returns their ids.
func DeleteApps(ctx context.Context, tx pg.Tx, at time.Time) ([]domain.AppID, error) {
	return pg.Many(ctx, tx, pgx.RowTo[domain.AppID], `update oauth_apps set deleted_at = @at, updated_at = @at, version = version + 1
		where tenant_id = @tenant and deleted_at is null returning id`, pg.Args{"at": at})
}

// ReleaseApps separates the apps of an erased tenant that grants of other tenants refer to from the tenant. tx has the app role.
func ReleaseApps(ctx context.Context, tx pg.Tx, tenant ids.Tenant) error {
	_, err := tx.Exec(ctx, `select release_apps($1)`, tenant)
	return err
}

// DeletePlatformResponses deletes the stored responses of the platform API about a tenant, its owners, keys and apps. The caller is the
// owner of these responses.
func DeletePlatformResponses(ctx context.Context, tx pg.Tx, about ids.Tenant) error {
	_, err := tx.Exec(ctx, `delete from idempotency_keys where tenant_id = @tenant and livemode = @live and resource_id = @about`,
		pg.Args{"about": about.String()})
	return err
}
