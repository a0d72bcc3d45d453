// Package store is identity's way to Postgres and Redis; it holds all SQL.
package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/services/identity/internal/domain"
)

const tenantColumns = `tenant_id, slug, name, timezone, currency, country, auto_confirm, hold_ttl_minutes,
	min_notice_minutes, max_advance_days, confirm_on_deposit, clock, version, created_at, updated_at`

// Tenant returns the tenant of the caller's scope.
func Tenant(ctx context.Context, q pg.Q, id ids.Tenant) (domain.Tenant, error) {
	rows, err := q.Query(ctx, `select `+tenantColumns+` from tenants where tenant_id = $1`, id)
	return oneTenant(rows, err)
}

// TenantForUpdate locks the tenant until the transaction ends: all audited writes of one tenant take turns. The
// lock leaves foreign keys alone, which a writer that holds only the audit head has to check.
func TenantForUpdate(ctx context.Context, tx pg.Tx, id ids.Tenant) (domain.Tenant, error) {
	rows, err := tx.Query(ctx, `select `+tenantColumns+` from tenants where tenant_id = $1 for no key update`, id)
	return oneTenant(rows, err)
}

// FindTenant finds a tenant by its id or slug; q has the worker role.
func FindTenant(ctx context.Context, q pg.Q, ref string) (domain.Tenant, error) {
	if id, err := ids.Parse[ids.TenantPrefix](ref); err == nil {
		return Tenant(ctx, q, id)
	}
	rows, err := q.Query(ctx, `select `+tenantColumns+` from tenants where slug = $1`, ref)
	return oneTenant(rows, err)
}

// Tenants returns every tenant by slug; q has the worker role.
func Tenants(ctx context.Context, q pg.Q) ([]domain.Tenant, error) {
	rows, err := q.Query(ctx, `select `+tenantColumns+` from tenants order by slug`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[domain.Tenant])
}

// InsertTenant adds a tenant and the empty audit chain it begins with.
func InsertTenant(ctx context.Context, tx pg.Tx, t domain.Tenant) error {
	_, err := tx.Exec(ctx, `insert into tenants (`+tenantColumns+`)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		t.ID, t.Slug, t.Name, t.Timezone, t.Currency, t.Country, t.AutoConfirm, t.HoldTTLMinutes,
		t.MinNoticeMinutes, t.MaxAdvanceDays, t.ConfirmOnDeposit, t.Clock, t.Version, t.CreatedAt, t.UpdatedAt)
	if pg.ConstraintName(err) == "tenants_slug_key" {
		return domain.ErrSlugTaken.WithMessage("Another tenant has the slug %q.", t.Slug)
	}
	if err != nil {
		return err
	}
	head := domain.NewHead(t.ID)
	_, err = tx.Exec(ctx, `insert into audit_heads (tenant_id, seq, hash) values ($1, $2, $3)`, t.ID, head.Seq, head.Hash)
	return err
}

// UpdateTenant writes the tenant's settings, raises its version and returns the row.
func UpdateTenant(ctx context.Context, tx pg.Tx, t domain.Tenant) (domain.Tenant, error) {
	rows, err := tx.Query(ctx, `update tenants set name = $2, timezone = $3, currency = $4, country = $5,
			auto_confirm = $6, hold_ttl_minutes = $7, min_notice_minutes = $8, max_advance_days = $9,
			confirm_on_deposit = $10, clock = $11, updated_at = $12, version = version + 1
		where tenant_id = $1 returning `+tenantColumns,
		t.ID, t.Name, t.Timezone, t.Currency, t.Country, t.AutoConfirm, t.HoldTTLMinutes,
		t.MinNoticeMinutes, t.MaxAdvanceDays, t.ConfirmOnDeposit, t.Clock, t.UpdatedAt)
	return oneTenant(rows, err)
}

func oneTenant(rows pgx.Rows, err error) (domain.Tenant, error) {
	if err != nil {
		return domain.Tenant{}, err
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[domain.Tenant])
	return t, notFound(err, domain.ErrTenantNotFound)
}

// notFound turns "no row" into the error that the caller knows.
func notFound(err, instead error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return instead
	}
	return err
}
