// Package domain contains the console's own rules: which workspaces an operator can enter, what pages show of each resource, and
// how forms become requests. Pure: no I/O, no clock.
package domain

import (
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
)

// Errors of the console's pages.
var (
	ErrNoSession = apperr.New(apperr.Unauthenticated, "missing_credential", "Sign in first.")
	ErrNotFound  = apperr.New(apperr.NotFound, "not_found", "There is nothing at this address.")
	ErrChanged   = apperr.New(apperr.PreconditionFailed, "version_mismatch", "Somebody has changed this in the meantime.")
	ErrForbidden = apperr.New(apperr.Forbidden, "insufficient_scope", "Your role does not allow this.")
)

// ErrStaleForm reports that a form belongs to another session. Only pages show it.
var ErrStaleForm = errors.New("the form is not of this session")

// Recently is how long after entering the password an operator can run dangerous actions.
const Recently = 15 * time.Minute

// Operator is the signed-in operator.
type Operator struct {
	ID, Email, Name string
	SecondFactor    bool
}

// Tenant is a tenant from the view of an operator who is a member of it.
type Tenant struct {
	ID            ids.Tenant
	Slug, Name    string
	Role          string
	Scopes        []string // of the API, granted by the role
	Permissions   []string // other permissions of the role
	Timezone      string   // IANA name
	Currency      string   // ISO 4217
	Country       string
	PolicyVersion int64
	Clock         *time.Time     // of its test mode
	Suspended     bool           // also while its data is being erased
	Closing       bool           // its data can only be read
	EraseAt       time.Time      // when the data of a closing tenant is erased
	StatusReason  string         // why it is suspended or closing
	Caps          map[string]int // that the platform has set for it, by name
}

// Session is a browser that has signed in.
type Session struct {
	ID         string
	SignedInAt time.Time // when the password was last entered
	FormProof  string    // proves to identity that a form is from a page of this operator
	Operator   Operator
	Tenants    []Tenant // in the order in which the operator joined them
}

// Workspace is where an operator works: one mode of one tenant.
type Workspace struct {
	Session *Session
	Tenant  Tenant
	Mode    caller.Mode
}

// Enter returns the workspace of a tenant's slug and a mode. A tenant is unknown if the operator is not a member of it.
func (s *Session) Enter(slug, mode string) (Workspace, error) {
	i := slices.IndexFunc(s.Tenants, func(t Tenant) bool { return t.Slug == slug })
	if i < 0 || mode != string(caller.Live) && mode != string(caller.Test) {
		return Workspace{}, ErrNotFound
	}
	return Workspace{Session: s, Tenant: s.Tenants[i], Mode: caller.Mode(mode)}, nil
}

// FirstActive returns the operator's first tenant that is not suspended, and whether there is one.
func (s *Session) FirstActive() (Tenant, bool) {
	i := slices.IndexFunc(s.Tenants, func(t Tenant) bool { return !t.Suspended })
	if i < 0 {
		return Tenant{}, false
	}
	return s.Tenants[i], true
}

// Live reports whether the workspace has live data.
func (w Workspace) Live() bool { return w.Mode == caller.Live }

// Path returns the address of a page of the workspace: "bookings", "customers/cu_…".
func (w Workspace) Path(page string) string {
	return "/admin/" + w.Tenant.Slug + "/" + string(w.Mode) + "/" + page
}

// Has reports whether the role has all the scopes.
func (w Workspace) Has(scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(w.Tenant.Scopes, s) })
}

// Can reports whether the role can make a call.
func (w Workspace) Can(op *Operation) bool {
	return op != nil && w.Has(op.Scopes) && (op.Permission == "" || w.HasPermission(op.Permission))
}

// HasPermission reports whether the role has a permission.
func (w Workspace) HasPermission(permission string) bool {
	return slices.Contains(w.Tenant.Permissions, permission)
}

// Recent reports whether the operator entered their password recently.
func (w Workspace) Recent(now time.Time) bool { return now.Sub(w.Session.SignedInAt) < Recently }

// Zone returns the tenant's time zone; UTC if the name is unknown.
func (w Workspace) Zone() *time.Location {
	zone, err := time.LoadLocation(w.Tenant.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// Now returns the tenant's time in its zone: the time of the test clock if it is set.
func (w Workspace) Now(real time.Time) time.Time {
	return w.Caller("").Now(real).In(w.Zone())
}

// Caller returns the caller for whom the services act.
func (w Workspace) Caller(requestID string) caller.Caller {
	t := w.Tenant
	c := caller.Caller{
		Tenant: t.ID, Timezone: t.Timezone, Currency: t.Currency, PolicyVersion: t.PolicyVersion, Mode: w.Mode,
		Credential: w.Session.Operator.ID, Kind: "operator", Scopes: t.Scopes, RequestID: requestID, Caps: t.Caps,
	}
	if w.Mode == caller.Test {
		c.Clock = t.Clock
	}
	return c
}
