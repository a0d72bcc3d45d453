package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// SessionPrefix is the prefix of session ids.
type SessionPrefix struct{}

// Prefix implements ids.Prefix.
func (SessionPrefix) Prefix() string { return "ses" }

// SessionID is the public id of a session. It differs from the cookie's token.
type SessionID = ids.ID[SessionPrefix]

// NewSessionID creates a new id.
func NewSessionID() SessionID { return ids.New[SessionPrefix]() }

// ErrSessionNotFound reports that a session is not signed in.
var ErrSessionNotFound = apperr.New(apperr.NotFound, "session_not_found", "Session not found.")

// The lifetimes of a session.
const (
	SessionIdle     = 12 * time.Hour
	SessionLifetime = 7 * 24 * time.Hour
	// FactorTime is how long an operator has after the password to enter their second factor.
	FactorTime = 15 * time.Minute
)

// MaxSessions is the maximum number of sessions of an operator. One more ends the oldest.
const MaxSessions = 50

// Session is an operator's session in one browser.
type Session struct {
	ID         SessionID
	OperatorID *OperatorID // nil before the second factor
	Version    int64       // version of the operator when the password was entered
	Address    string
	Agent      string // User-Agent, at most 200 characters
	CreatedAt  time.Time
	SeenAt     time.Time
	ExpiresAt  time.Time
}

// SessionRow is a session with its operator and one of the operator's tenants. If there is no tenant, the tenant's columns are
// null.
type SessionRow struct {
	SeenAt     time.Time
	CreatedAt  time.Time // when the operator signed in
	ID         SessionID
	Operator   OperatorID
	Email      string
	Name       string
	Factor     bool
	Tenant     *ids.Tenant
	Slug       *string
	TenantName *string
	Role       *Role
	Timezone   *string
	Currency   *string
	Country    *string
	Version    *int64
	Clock      *time.Time
	Status     *TenantStatus
	Reason     *string        // of the tenant's status
	EraseAt    *time.Time     // when the data of a closing tenant is erased
	Caps       map[string]int // of the tenant's limits
}
