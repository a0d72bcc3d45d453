package domain

import (
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
)

type platformKeyPrefix struct{}

func (platformKeyPrefix) Prefix() string { return "pk" }

// PlatformKeyID is the public id of a platform key. It is not secret.
type PlatformKeyID = ids.ID[platformKeyPrefix]

// PlatformSecret is the prefix of the secret of a platform key.
const PlatformSecret = "svc_platform_" //nolint:gosec // a prefix, not a secret

// The errors of the platform API.
var (
	ErrPlatformKeyNotFound = apperr.New(apperr.NotFound, "key_not_found", "Platform key not found.")
	ErrNoPlatformKey       = apperr.New(apperr.Unauthenticated, "missing_credential", "Send a platform key as Authorization: Bearer svc_platform_….")
	ErrPlatformKeyInvalid  = apperr.New(apperr.Unauthenticated, "invalid_credential", "The credential is not a valid platform key.")
	ErrCursor              = apperr.New(apperr.BadRequest, "invalid_cursor", "The cursor is not valid. Send next_cursor unchanged.")
	ErrPlatformKeyRevoked  = apperr.New(apperr.Unauthenticated, "revoked_credential", "The platform key has been revoked.")
)

// PlatformScopes are the scopes of platform keys, sorted. Each operation of the platform API names the one that it needs.
var PlatformScopes = []string{
	"close:tenants", "create:keys", "invite:owners", "manage:owners", "read:audit", "read:keys", "read:owners", "read:tenants", "read:usage", "revoke:keys", "rotate:keys",
	"suspend:tenants", "verify:apps", "write:limits", "write:tenants",
}

// PlatformKeyPlaces is the maximum number of platform keys that are not revoked.
var PlatformKeyPlaces = quota.Cap{Most: 100, Rows: "platform keys that are not revoked", Field: "name", Remedy: "Revoke one first."}

// PlatformKey is a credential of the platform API. The secret itself is not stored, only its SHA-256.
type PlatformKey struct {
	ID         PlatformKeyID
	Name       string
	Scopes     []string
	CreatedAt  time.Time
	CreatedBy  string     // the actor and the source
	LastUsedAt *time.Time // exact to a minute
	RevokedAt  *time.Time
	RevokedBy  *string
}

// ParsePlatformKeyID parses the public id of a platform key. It returns ErrPlatformKeyNotFound for anything else.
func ParsePlatformKeyID(s string) (PlatformKeyID, error) {
	id, err := ids.Parse[platformKeyPrefix](s)
	if err != nil {
		return PlatformKeyID{}, ErrPlatformKeyNotFound
	}
	return id, nil
}

// NewPlatformKey returns a key with a new id. scopes is "all" or a comma-separated list.
func NewPlatformKey(name, scopes string, by Origin, at time.Time) (PlatformKey, error) {
	list, err := ParseScopes(scopes, PlatformScopes)
	if !isName(name, 1) {
		err = apperr.Join(apperr.Field("name", "Must be one visible line of 1 to 200 characters."), err)
	}
	return PlatformKey{
		ID: ids.New[platformKeyPrefix](), Name: name, Scopes: list, CreatedAt: at, CreatedBy: by.text(),
	}, err
}

// text returns the actor and the source in one line.
func (o Origin) text() string { return strings.TrimSpace(o.Actor + " " + o.Source) }

// Revoked returns the key as it is after its revocation. A key that is already revoked does not change.
func (k PlatformKey) Revoked(by Origin, at time.Time) PlatformKey {
	if k.RevokedAt == nil {
		k.RevokedAt, k.RevokedBy = &at, new(by.text())
	}
	return k
}
