// Package store is the only layer with SQL, and writes invalidations to Redis. Each statement of the app role contains the caller's
// tenant, and the mode if the table has one. Row-level security checks both again.
package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/identity/internal/domain"
)

const tenantColumns = `tenant_id, slug, name, timezone, currency, country, auto_confirm, hold_ttl_minutes,
	min_notice_minutes, max_advance_days, confirm_on_deposit, refund_rules, auto_refund, refund_late_payments, invoice_prefix, invoice_year, legal_name, address, tax_id,
	tax_behavior, default_taxes, requests_per_minute, credential_requests_per_minute, caps, clock, status, status_reason, status_changed_at,
	status_changed_by, erase_at, version, created_at, updated_at`

const callersTenant = `select ` + tenantColumns + ` from tenants where tenant_id = @tenant`

// Tenant returns the caller's tenant, or domain.ErrTenantNotFound.
func Tenant(ctx context.Context, q pg.Q) (domain.Tenant, error) {
	return oneTenant(ctx, q, callersTenant, pg.Args{})
}

// TenantForUpdate locks the caller's tenant until the transaction ends, so all audited writes of one tenant are serialized. The
// lock does not affect foreign keys, which a writer with only the audit head's lock must check.
func TenantForUpdate(ctx context.Context, tx pg.Tx) (domain.Tenant, error) {
	return oneTenant(ctx, tx, callersTenant+` for no key update`, pg.Args{})
}

// FindTenant finds a tenant by its id or slug. q has the worker role.
func FindTenant(ctx context.Context, q pg.Q, ref string) (domain.Tenant, error) {
	if id, err := ids.Parse[ids.TenantPrefix](ref); err == nil {
		return oneTenant(ctx, q, `select `+tenantColumns+` from tenants where tenant_id = $1`, id)
	}
	return oneTenant(ctx, q, `select `+tenantColumns+` from tenants where slug = $1`, ref)
}

// Tenants returns every tenant by slug. q has the worker role.
func Tenants(ctx context.Context, q pg.Q) ([]domain.Tenant, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Tenant], `select `+tenantColumns+` from tenants order by slug`)
}

// TenantFilter selects tenants. An empty field excludes none.
type TenantFilter struct {
	After  ids.Tenant // the last tenant of the previous page
	Status domain.TenantStatus
	Slug   string
}

// TenantPage returns at most limit tenants that match the filter, oldest first. q has the worker role.
func TenantPage(ctx context.Context, q pg.Q, f TenantFilter, limit int) ([]domain.Tenant, error) {
	return pg.Many(ctx, q, pgx.RowToStructByName[domain.Tenant], `select `+tenantColumns+` from tenants
		where ($1::uuid is null or tenant_id > $1) and ($2 = '' or status = $2) and ($3 = '' or slug = $3) order by tenant_id limit $4`,
		f.After, string(f.Status), f.Slug, limit)
}

// InsertTenant adds the caller's tenant with an empty audit chain.
func InsertTenant(ctx context.Context, tx pg.Tx, t domain.Tenant) error {
	args := tenantArgs(t)
	args["slug"], args["version"], args["created_at"] = t.Slug, t.Version, t.CreatedAt
	_, err := tx.Exec(ctx, `insert into tenants (`+tenantColumns+`)
		values (@tenant, @slug, @name, @timezone, @currency, @country, @auto_confirm, @hold_ttl_minutes,
			@min_notice_minutes, @max_advance_days, @confirm_on_deposit, @refund_rules, @auto_refund, @refund_late_payments, @invoice_prefix, @invoice_year, @legal_name, @address, @tax_id,
			@tax_behavior, @default_taxes, @requests_per_minute, @credential_requests_per_minute, @caps, @clock, @status, @status_reason, @status_changed_at,
			@status_changed_by, @erase_at, @version, @created_at, @updated_at)`, args)
	if pg.ConstraintName(err) == "tenants_slug_key" {
		return domain.ErrSlugTaken.WithMessage("Another tenant already uses the slug %q.", t.Slug)
	}
	if err != nil {
		return fmt.Errorf("insert tenant: %w", err)
	}
	head := domain.NewHead(t.ID)
	_, err = tx.Exec(ctx, `insert into audit_heads (tenant_id, seq, hash) values (@tenant, @seq, @hash)`,
		pg.Args{"seq": head.Seq, "hash": head.Hash})
	if err != nil {
		return fmt.Errorf("insert audit head: %w", err)
	}
	return nil
}

// UpdateTenant writes the settings of the caller's tenant, increments its version and returns the row.
func UpdateTenant(ctx context.Context, tx pg.Tx, t domain.Tenant) (domain.Tenant, error) {
	return oneTenant(ctx, tx, `update tenants set name = @name, timezone = @timezone, currency = @currency, country = @country,
			auto_confirm = @auto_confirm, hold_ttl_minutes = @hold_ttl_minutes, min_notice_minutes = @min_notice_minutes,
			max_advance_days = @max_advance_days, confirm_on_deposit = @confirm_on_deposit,
			refund_rules = @refund_rules, auto_refund = @auto_refund, refund_late_payments = @refund_late_payments,
			invoice_prefix = @invoice_prefix, invoice_year = @invoice_year, legal_name = @legal_name, address = @address,
			tax_id = @tax_id, tax_behavior = @tax_behavior, default_taxes = @default_taxes,
			requests_per_minute = @requests_per_minute, credential_requests_per_minute = @credential_requests_per_minute, caps = @caps, clock = @clock,
			status = @status, status_reason = @status_reason, status_changed_at = @status_changed_at,
			status_changed_by = @status_changed_by, erase_at = @erase_at, erasure_waits_for = '',
			updated_at = @updated_at, version = version + 1
		where tenant_id = @tenant returning `+tenantColumns, tenantArgs(t))
}

// tenantArgs returns the columns that an update writes.
func tenantArgs(t domain.Tenant) pg.Args {
	return pg.Args{
		"name": t.Name, "timezone": t.Timezone, "currency": t.Currency, "country": t.Country,
		"auto_confirm": t.AutoConfirm, "hold_ttl_minutes": t.HoldTTLMinutes, "min_notice_minutes": t.MinNoticeMinutes,
		"max_advance_days": t.MaxAdvanceDays, "confirm_on_deposit": t.ConfirmOnDeposit, "clock": t.Clock,
		"refund_rules": t.RefundRules, "auto_refund": t.AutoRefund, "refund_late_payments": t.RefundLatePayments,
		"invoice_prefix": t.InvoicePrefix, "invoice_year": t.InvoiceYear, "legal_name": t.LegalName, "address": t.Address, "tax_id": t.TaxID,
		"tax_behavior": t.TaxBehavior, "default_taxes": t.DefaultTaxes,
		"status": t.Status, "status_reason": t.StatusReason, "status_changed_at": t.StatusChangedAt,
		"status_changed_by": t.StatusChangedBy, "erase_at": t.EraseAt,
		"requests_per_minute": t.RequestsPerMinute, "credential_requests_per_minute": t.CredentialRequestsPerMinute, "caps": t.Caps,
		"updated_at": t.UpdatedAt,
	}
}

func oneTenant(ctx context.Context, q pg.Q, sql string, args ...any) (domain.Tenant, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Tenant], domain.ErrTenantNotFound, sql, args...)
}
