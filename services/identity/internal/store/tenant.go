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
	tax_behavior, default_taxes, locale, bank_account_holder, bank_account_number, bank_code, bank_name, logo_hash, requests_per_minute, credential_requests_per_minute, caps, clock, status, status_reason, status_changed_at,
	status_changed_by, erase_at, external_id, metadata, version, created_at, updated_at`

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

// InsertTenant adds the caller's tenant with an empty audit chain, and returns it with its times.
func InsertTenant(ctx context.Context, tx pg.Tx, t domain.Tenant) (domain.Tenant, error) {
	args := tenantArgs(t)
	args["slug"], args["version"] = t.Slug, t.Version
	created, err := oneTenant(ctx, tx, `with stamp as materialized (select clock_timestamp() as at)
		insert into tenants (`+tenantColumns+`)
		select @tenant, @slug, @name, @timezone, @currency, @country, @auto_confirm, @hold_ttl_minutes,
			@min_notice_minutes, @max_advance_days, @confirm_on_deposit, @refund_rules, @auto_refund, @refund_late_payments, @invoice_prefix, @invoice_year, @legal_name, @address, @tax_id,
			@tax_behavior, @default_taxes, @locale, @bank_account_holder, @bank_account_number, @bank_code, @bank_name, @logo_hash, @requests_per_minute, @credential_requests_per_minute, @caps, @clock, @status, @status_reason, @status_changed_at,
			@status_changed_by, @erase_at, @external_id, @metadata, @version, at, at from stamp returning `+tenantColumns, args)
	if err != nil {
		return domain.Tenant{}, taken(err, t)
	}
	head := domain.NewHead(t.ID)
	_, err = tx.Exec(ctx, `insert into audit_heads (tenant_id, seq, hash) values (@tenant, @seq, @hash)`,
		pg.Args{"seq": head.Seq, "hash": head.Hash})
	if err != nil {
		return domain.Tenant{}, fmt.Errorf("insert audit head: %w", err)
	}
	return created, nil
}

// taken returns the error of a write that gave a tenant an identifier of another one.
func taken(err error, t domain.Tenant) error {
	switch pg.ConstraintName(err) {
	case "tenants_slug_key":
		return domain.ErrSlugTaken.WithMessage("Another tenant already uses the slug %q.", t.Slug)
	case "tenants_external_id_key":
		return domain.ErrExternalIDTaken.WithMessage("Another tenant already uses the external_id %q.", *t.ExternalID)
	}
	return fmt.Errorf("write tenant: %w", err)
}

// UpdateTenant writes the settings of the caller's tenant, increments its version and returns the row.
func UpdateTenant(ctx context.Context, tx pg.Tx, t domain.Tenant) (domain.Tenant, error) {
	updated, err := oneTenant(ctx, tx, `update tenants set name = @name, timezone = @timezone, currency = @currency, country = @country,
			auto_confirm = @auto_confirm, hold_ttl_minutes = @hold_ttl_minutes, min_notice_minutes = @min_notice_minutes,
			max_advance_days = @max_advance_days, confirm_on_deposit = @confirm_on_deposit,
			refund_rules = @refund_rules, auto_refund = @auto_refund, refund_late_payments = @refund_late_payments,
			invoice_prefix = @invoice_prefix, invoice_year = @invoice_year, legal_name = @legal_name, address = @address,
			tax_id = @tax_id, tax_behavior = @tax_behavior, default_taxes = @default_taxes, locale = @locale,
			bank_account_holder = @bank_account_holder, bank_account_number = @bank_account_number, bank_code = @bank_code, bank_name = @bank_name,
			logo_hash = @logo_hash, logo = case when logo_hash = @logo_hash then logo else @new_logo end,
			requests_per_minute = @requests_per_minute, credential_requests_per_minute = @credential_requests_per_minute, caps = @caps, clock = @clock,
			status = @status, status_reason = @status_reason, status_changed_at = @status_changed_at,
			status_changed_by = @status_changed_by, erase_at = @erase_at, erasure_waits_for = '',
			external_id = @external_id, metadata = @metadata, updated_at = clock_timestamp(), version = version + 1
		where tenant_id = @tenant returning `+tenantColumns, tenantArgs(t))
	if err != nil {
		return domain.Tenant{}, taken(err, t)
	}
	return updated, nil
}

// tenantArgs returns the columns that an update writes.
func tenantArgs(t domain.Tenant) pg.Args {
	return pg.Args{
		"name": t.Name, "timezone": t.Timezone, "currency": t.Currency, "country": t.Country,
		"auto_confirm": t.AutoConfirm, "hold_ttl_minutes": t.HoldTTLMinutes, "min_notice_minutes": t.MinNoticeMinutes,
		"max_advance_days": t.MaxAdvanceDays, "confirm_on_deposit": t.ConfirmOnDeposit, "clock": t.Clock,
		"refund_rules": t.RefundRules, "auto_refund": t.AutoRefund, "refund_late_payments": t.RefundLatePayments,
		"invoice_prefix": t.InvoicePrefix, "invoice_year": t.InvoiceYear, "legal_name": t.LegalName, "address": t.Address, "tax_id": t.TaxID,
		"tax_behavior": t.TaxBehavior, "default_taxes": t.DefaultTaxes, "locale": t.Locale,
		"bank_account_holder": t.BankAccountHolder, "bank_account_number": t.BankAccountNumber, "bank_code": t.BankCode, "bank_name": t.BankName,
		"logo_hash": t.LogoHash, "new_logo": t.NewLogo,
		"status": t.Status, "status_reason": t.StatusReason, "status_changed_at": t.StatusChangedAt,
		"status_changed_by": t.StatusChangedBy, "erase_at": t.EraseAt,
		"requests_per_minute": t.RequestsPerMinute, "credential_requests_per_minute": t.CredentialRequestsPerMinute, "caps": t.Caps,
		"external_id": t.ExternalID, "metadata": pg.JSONText(t.Metadata),
	}
}

// Logo returns the logo of the caller's tenant, or domain.ErrLogoNotFound.
func Logo(ctx context.Context, q pg.Q) (domain.Logo, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Logo], domain.ErrLogoNotFound,
		`select logo_hash, logo from tenants where tenant_id = @tenant and logo is not null`, pg.Args{})
}

func oneTenant(ctx context.Context, q pg.Q, sql string, args ...any) (domain.Tenant, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Tenant], domain.ErrTenantNotFound, sql, args...)
}
