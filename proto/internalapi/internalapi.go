// Package internalapi holds the bodies of the internal HTTP calls, as proto/internal/identity.yaml states
// them. Both ends of a call use these types.
package internalapi

import "time"

// Lookup is the body of POST /internal/v1/credentials/lookup. Hash is the SHA-256 of the credential in
// lower-case hex: the credential itself never travels.
type Lookup struct {
	Hash string `json:"hash"`
}

// Principal is what a credential stands for: the answer to a look-up.
type Principal struct {
	ID            string     `json:"id"`   // key_…, or a grant's id
	Kind          string     `json:"kind"` // api_key or oauth
	Name          string     `json:"name"`
	Mode          string     `json:"mode"` // live or test
	Scopes        []string   `json:"scopes"`
	TenantID      string     `json:"tenant_id"` // tn_…
	Timezone      string     `json:"timezone"`  // IANA name
	Currency      string     `json:"currency"`  // ISO 4217
	PolicyVersion int64      `json:"policy_version"`
	Version       int64      `json:"version"` // raised by each change of the credential or its tenant
	Clock         *time.Time `json:"clock"`   // the tenant's test clock, null when real time holds
	Revoked       bool       `json:"revoked"`
}

// Tenant is the answer of GET /internal/v1/tenants/{id}: what other services need of a tenant.
type Tenant struct {
	ID            string        `json:"id"`
	Slug          string        `json:"slug"`
	Name          string        `json:"name"`
	Timezone      string        `json:"timezone"`
	Currency      string        `json:"currency"`
	Country       *string       `json:"country"`
	PolicyVersion int64         `json:"policy_version"`
	BookingPolicy BookingPolicy `json:"booking_policy"`
	Clock         *time.Time    `json:"clock"` // the test clock; it holds in test mode only
}

// TestClockSet is the body of PUT /internal/v1/tenants/{id}/test-clock; null returns to real time.
type TestClockSet struct {
	Now *time.Time `json:"now"`
}

// BookingPolicy is a tenant's rules for bookings; a null number means that nothing is checked.
type BookingPolicy struct {
	AutoConfirm      bool `json:"auto_confirm"`
	HoldTTLMinutes   *int `json:"hold_ttl_minutes"`
	MinNoticeMinutes *int `json:"min_notice_minutes"`
	MaxAdvanceDays   *int `json:"max_advance_days"`
	ConfirmOnDeposit bool `json:"confirm_on_deposit"`
}
