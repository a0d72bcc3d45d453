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

var (
	tenantWrites  = tenantFields(domain.Tenant{})
	tenantColumns = `tenant_id, slug, version, created_at, updated_at, ` + tenantWrites.Names("%s")
	callersTenant = `select ` + tenantColumns + ` from tenants where tenant_id = @tenant`

	insertTenant = `with stamp as materialized (select clock_timestamp() as at) insert into tenants (` + tenantColumns + `)
		values (@tenant, @slug, @version, (select at from stamp), (select at from stamp), ` + tenantWrites.Names("@%s") + `) returning ` + tenantColumns
	updateTenant = `update tenants set ` + tenantWrites.Set() + `, logo = case when logo_hash = @logo_hash then logo else @new_logo end,
		erasure_waits_for = '', updated_at = clock_timestamp(), version = version + 1 where tenant_id = @tenant returning ` + tenantColumns
)

// tenantFields are the columns that an update writes.
func tenantFields(t domain.Tenant) pg.F {
	return pg.F{
		"name", t.Name, "timezone", t.Timezone, "currency", t.Currency, "country", t.Country,
		"auto_confirm", t.AutoConfirm, "hold_ttl_minutes", t.HoldTTLMinutes, "min_notice_minutes", t.MinNoticeMinutes,
		"max_advance_days", t.MaxAdvanceDays, "confirm_on_deposit", t.ConfirmOnDeposit, "clock", t.Clock,
		"refund_rules", t.RefundRules, "auto_refund", t.AutoRefund, "refund_late_payments", t.RefundLatePayments,
		"invoice_prefix", t.InvoicePrefix, "invoice_year", t.InvoiceYear, "legal_name", t.LegalName, "address", t.Address, "tax_id", t.TaxID,
		"tax_behavior", t.TaxBehavior, "default_taxes", t.DefaultTaxes, "locale", t.Locale,
		"bank_account_holder", t.BankAccountHolder, "bank_account_number", t.BankAccountNumber, "bank_code", t.BankCode, "bank_name", t.BankName,
		"logo_hash", t.LogoHash,
		"status", t.Status, "status_reason", t.StatusReason, "status_changed_at", t.StatusChangedAt,
		"status_changed_by", t.StatusChangedBy, "erase_at", t.EraseAt,
		"requests_per_minute", t.RequestsPerMinute, "credential_requests_per_minute", t.CredentialRequestsPerMinute, "caps", t.Caps,
		"external_id", t.ExternalID, "metadata", pg.JSONText(t.Metadata),
	}
}

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
	args := tenantFields(t).Args()
	args["slug"], args["version"] = t.Slug, t.Version
	created, err := oneTenant(ctx, tx, insertTenant, args)
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
	args := tenantFields(t).Args()
	args["new_logo"] = t.NewLogo
	updated, err := oneTenant(ctx, tx, updateTenant, args)
	if err != nil {
		return domain.Tenant{}, taken(err, t)
	}
	return updated, nil
}

// Logo returns the logo of the caller's tenant, or domain.ErrLogoNotFound.
func Logo(ctx context.Context, q pg.Q) (domain.Logo, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Logo], domain.ErrLogoNotFound,
		`select logo_hash, logo from tenants where tenant_id = @tenant and logo is not null`, pg.Args{})
}

func oneTenant(ctx context.Context, q pg.Q, sql string, args ...any) (domain.Tenant, error) {
	return pg.One(ctx, q, pgx.RowToStructByName[domain.Tenant], domain.ErrTenantNotFound, sql, args...)
}
