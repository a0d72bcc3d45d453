package view

import (
	"bytes"
	"encoding/json"
	"time"

	"holdfast.dev/libs/money"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

// AdminTenant is a tenant in the form of the command line.
type AdminTenant struct {
	TenantRecord

	ExternalID *string         `json:"external_id"`
	Metadata   json.RawMessage `json:"metadata"`
}

// TenantRecord is a tenant in the form of the audit log, which its operators can read. It contains no values of the platform's own system.
type TenantRecord struct {
	ID            string                    `json:"id"`
	Slug          string                    `json:"slug"`
	Name          string                    `json:"name"`
	Timezone      string                    `json:"timezone"`
	Currency      string                    `json:"currency"`
	Country       *string                   `json:"country"`
	BookingPolicy internalapi.BookingPolicy `json:"booking_policy"`
	InvoicePrefix string                    `json:"invoice_prefix"`
	InvoiceYear   bool                      `json:"invoice_year"`
	LegalName     string                    `json:"legal_name"`
	Address       string                    `json:"address"`
	TaxID         string                    `json:"tax_id"`
	TaxBehavior   string                    `json:"tax_behavior"`
	DefaultTaxes  []money.Tax               `json:"default_taxes"`
	Locale        *string                   `json:"locale"`
	AccountHolder string                    `json:"bank_account_holder"`
	AccountNumber string                    `json:"bank_account_number"`
	BankCode      string                    `json:"bank_code"`
	BankName      string                    `json:"bank_name"`
	LogoHash      string                    `json:"logo_hash"`
	Limits        internalapi.TenantLimits  `json:"limits"`     // that differ from the defaults
	TestClock     *time.Time                `json:"test_clock"` // null: real time
	Status        string                    `json:"status"`
	StatusReason  string                    `json:"status_reason"`     // empty before the first change
	StatusChanged *time.Time                `json:"status_changed_at"` // null before the first change
	EraseAt       *time.Time                `json:"erase_at"`          // null unless the tenant is closing
	Version       int64                     `json:"version"`
	CreatedAt     time.Time                 `json:"created_at"`
	UpdatedAt     time.Time                 `json:"updated_at"`

	PlatformFields []string `json:"changed_platform_fields,omitempty"` // names of changed fields without their values
}

// TenantForAdmin renders a tenant for the command line, which manages all of them.
func TenantForAdmin(t domain.Tenant) AdminTenant {
	return AdminTenant{TenantRecord: AuditedTenant(t), ExternalID: t.ExternalID, Metadata: orEmpty(t.Metadata)}
}

// CreatedTenant renders a new tenant for the audit log.
func CreatedTenant(t domain.Tenant) TenantRecord { return ChangedTenant(domain.Tenant{}, t) }

// ChangedTenant renders a tenant after a change for the audit log.
func ChangedTenant(before, t domain.Tenant) TenantRecord {
	out := AuditedTenant(t)
	if !equal(before.ExternalID, t.ExternalID) {
		out.PlatformFields = append(out.PlatformFields, "external_id")
	}
	if !bytes.Equal(before.Metadata, t.Metadata) {
		out.PlatformFields = append(out.PlatformFields, "metadata")
	}
	return out
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// orEmpty renders metadata. Empty metadata is an object.
func orEmpty(metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 {
		return json.RawMessage(`{}`)
	}
	return metadata
}

// AuditedTenant renders a tenant for the audit log.
func AuditedTenant(t domain.Tenant) TenantRecord {
	return TenantRecord{
		ID: t.ID.String(), Slug: t.Slug, Name: t.Name, Timezone: t.Timezone, Currency: t.Currency, Country: t.Country,
		BookingPolicy: internalPolicy(t.Policy),
		InvoicePrefix: t.InvoicePrefix, InvoiceYear: t.InvoiceYear, LegalName: t.LegalName, Address: t.Address, TaxID: t.TaxID,
		TaxBehavior: string(t.TaxBehavior), DefaultTaxes: t.DefaultTaxes, Locale: t.Locale,
		AccountHolder: t.BankAccountHolder, AccountNumber: t.BankAccountNumber, BankCode: t.BankCode, BankName: t.BankName, LogoHash: t.LogoHash, Limits: TenantLimits(t.Limits),
		TestClock: utc(t.Clock), Status: string(t.Status), StatusReason: t.StatusReason, StatusChanged: utc(t.StatusChangedAt), EraseAt: utc(t.EraseAt),
		Version: t.Version, CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
	}
}

// AdminKey is an API key in the form of the command line and the audit log, without its secret.
type AdminKey struct {
	ID         string     `json:"id"`
	TenantID   string     `json:"tenant_id"`
	Mode       string     `json:"mode"`
	Name       string     `json:"name"`
	Scopes     []string   `json:"scopes"`
	Version    int64      `json:"version"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

// RotatedKey is a rotated key in the form of the audit log.
type RotatedKey struct {
	AdminKey

	Successor string `json:"successor"` // id of the key that replaces it
}

// KeyForAdmin renders a key for the command line, which manages all tenants.
func KeyForAdmin(k domain.Key) AdminKey {
	return AdminKey{
		ID: k.ID.String(), TenantID: k.TenantID.String(), Mode: string(k.Mode()), Name: k.Name, Scopes: k.Scopes,
		Version: k.Version, CreatedAt: k.CreatedAt.UTC(), LastUsedAt: k.LastUsedAt, ExpiresAt: utc(k.ExpiresAt), RevokedAt: k.RevokedAt,
	}
}
