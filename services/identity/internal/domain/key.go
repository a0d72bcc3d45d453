// Package domain contains identity's types and rules: tenants with their booking policy, API keys, and the audit chain. It is pure:
// no I/O and no clock.
package domain

import (
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"
)

type keyPrefix struct{}

func (keyPrefix) Prefix() string { return "key" }

// KeyID is the public id of an API key. It is not secret.
type KeyID = ids.ID[keyPrefix]

// NewKeyID creates a new id.
func NewKeyID() KeyID { return ids.New[keyPrefix]() }

// ParseKeyID parses a key's public id. It returns ErrKeyNotFound for anything else.
func ParseKeyID(s string) (KeyID, error) {
	id, err := ids.Parse[keyPrefix](s)
	if err != nil {
		return KeyID{}, ErrKeyNotFound
	}
	return id, nil
}

// Errors about keys and look-ups.
var (
	ErrKeyNotFound        = apperr.New(apperr.NotFound, "key_not_found", "API key not found.")
	ErrCredentialNotFound = apperr.New(apperr.NotFound, "credential_not_found", "No credential has this hash.")
	ErrKeyEnded           = apperr.New(apperr.Invalid, "invalid_status_transition", "The key has ended or was already rotated. Rotate the newer key.")
	ErrCredentialGone     = apperr.New(apperr.Unauthenticated, "invalid_credential", "The credential is not valid.")
)

// KeyPlaces is the maximum number of keys that are not revoked of a tenant in one mode. The platform can set another number for a tenant.
var KeyPlaces = quota.Cap{Name: proto.CapKeys.Name, Most: proto.CapKeys.Default, Rows: "API keys that are not revoked", Field: "name", Remedy: "Revoke one first."}

// Key is an API key of one tenant and mode. The secret itself is not stored, only its SHA-256.
type Key struct {
	ID         KeyID
	TenantID   ids.Tenant
	Livemode   bool
	Name       string
	Scopes     []string
	Version    int64 // incremented by each change except the last use
	CreatedAt  time.Time
	LastUsedAt *time.Time // exact to about a minute
	ExpiresAt  *time.Time // when it expires, or the overlap of its rotation ends
	RevokedAt  *time.Time

	Replaced bool // another key has replaced it
}

// MaxOverlap is how long a rotated key can work in parallel with the new one.
const MaxOverlap = 7 * 24 * time.Hour

// CheckOverlap returns a 422 if the overlap is too long, otherwise nil.
func CheckOverlap(d time.Duration) error {
	if d < 0 || d > MaxOverlap {
		return apperr.Field("overlap_seconds", "Must be 0 to 604800 seconds (7 days).")
	}
	return nil
}

// MaxKeyLifetime is how long after its creation a key can expire: 10 years.
const MaxKeyLifetime = 3653 * 24 * time.Hour

// CheckKeyExpiry returns a 422 if a key cannot expire at a time, otherwise nil. nil: it does not expire.
func CheckKeyExpiry(at *time.Time, now time.Time) error {
	if at != nil && (!at.After(now) || at.Sub(now) > MaxKeyLifetime) {
		return apperr.Field("expires_at", "Must be in the future and at most 10 years from now, or null.")
	}
	return nil
}

// Rotated returns the key that ends after the overlap, when a new one replaces it, or ErrKeyEnded. A rotation does not prolong a key.
func (k Key) Rotated(now time.Time, overlap time.Duration) (Key, error) {
	if k.Replaced || k.Status(now) != "active" {
		return Key{}, ErrKeyEnded
	}
	k.Replaced = true
	if overlap == 0 {
		k.RevokedAt = &now
		return k, nil
	}
	if end := now.Add(overlap); k.ExpiresAt == nil || end.Before(*k.ExpiresAt) {
		k.ExpiresAt = &end
	}
	return k, nil
}

// NextExpiry returns when a key expires that replaces this one and has the same lifetime, or nil.
func (k Key) NextExpiry(now time.Time) *time.Time {
	if k.ExpiresAt == nil {
		return nil
	}
	return new(now.Add(k.ExpiresAt.Sub(k.CreatedAt)))
}

// Status returns active, rotated, expired or revoked. A rotated key counts as revoked after its end.
func (k Key) Status(now time.Time) string {
	ended := k.ExpiresAt != nil && !now.Before(*k.ExpiresAt)
	switch {
	case k.RevokedAt != nil, k.Replaced && ended:
		return "revoked"
	case ended:
		return "expired"
	case k.Replaced:
		return "rotated"
	}
	return "active"
}

// Mode returns the mode of the key.
func (k Key) Mode() caller.Mode { return caller.ModeOf(k.Livemode) }

// ParseMode parses "live" or "test".
func ParseMode(s string) (caller.Mode, error) {
	if m := caller.Mode(s); m == caller.Live || m == caller.Test {
		return m, nil
	}
	return "", apperr.Field("mode", "Must be one of: live, test.")
}

// ParseScopes parses "all" or a comma-separated list of ids from the catalogue, and returns them in the catalogue's order.
func ParseScopes(s string, catalogue []string) ([]string, error) {
	if s == "all" {
		return slices.Clone(catalogue), nil
	}
	var requested []string
	for scope := range strings.SplitSeq(s, ",") {
		scope = strings.TrimSpace(scope)
		if !slices.Contains(catalogue, scope) {
			return nil, apperr.Field("scopes", "Unknown scope %q. Must be all, or a list of: %s.", scope, strings.Join(catalogue, ", "))
		}
		requested = append(requested, scope)
	}
	var scopes []string
	for _, scope := range catalogue {
		if slices.Contains(requested, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// CheckKeyName returns a 422 if the name is too long or not one visible line, otherwise nil. The name can be empty.
func CheckKeyName(name string) error {
	if !isName(name, 0) {
		return apperr.Field("name", "Must be one visible line of at most 200 characters.")
	}
	return nil
}

// Principal is the principal of an API key, which the gateway caches. Its Version is the sum of the key's and the tenant's
// versions. Both only increase, so a change of either increases it.
type Principal struct {
	KeyID         KeyID
	TenantID      ids.Tenant
	Livemode      bool
	Name          string
	Scopes        []string
	Version       int64
	Timezone      string
	Currency      string
	PolicyVersion int64
	Clock         *time.Time // the tenant's test clock
	ExpiresAt     *time.Time // when the key expires, or the overlap of its rotation ends
	Replaced      bool       // another key has replaced it
	Revoked       bool
	TenantStatus  TenantStatus
	EraseAt       *time.Time // when the data of a closing tenant is erased
	Limits                   // of the tenant
}

// Ended reports whether the key was revoked, has expired, or ended after its rotation.
func (p Principal) Ended(now time.Time) bool {
	return p.Revoked || p.ExpiresAt != nil && !now.Before(*p.ExpiresAt)
}

// Revoked is the value of a revoked credential's invalidation. Any other value is a principal's version.
const Revoked = "revoked"

// Invalidation makes the gateways, through Redis, read a cached credential again: an API key or a grant.
type Invalidation struct {
	TenantID ids.Tenant
	Livemode bool
	KeyID    KeyID   // zero for a grant
	GrantID  GrantID // zero for a key
	Value    string  // Revoked, or the newest version of the principal
}

// Credential returns the public id of the credential.
func (s Invalidation) Credential() string { return s.KeyID.String() + s.GrantID.String() }

// Lifetime returns how long an invalidation must be stored: far longer than any gateway caches a principal.
func (s Invalidation) Lifetime() time.Duration {
	if s.Value == Revoked {
		return 24 * time.Hour
	}
	return time.Hour
}
