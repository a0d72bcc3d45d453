package domain

import (
	"slices"

	"holdfast.dev/libs/apperr"
)

// Role is what an operator may do at one tenant.
type Role string

// The roles, the mightiest first.
const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Staff  Role = "staff"
	Viewer Role = "viewer"
)

// Roles lists them.
var Roles = []Role{Owner, Admin, Staff, Viewer}

// Permission is something besides the API's scopes that a role may allow.
type Permission string

// The permissions.
const (
	ManageOwners    Permission = "manage owners"    // make and unmake owners
	ManageOperators Permission = "manage operators" // invite others, change their roles, end their membership
	ManageApps      Permission = "manage apps"
	ManageKeys      Permission = "manage keys"
	ManageSettings  Permission = "manage settings"
	ReadAudit       Permission = "read audit"
	RevokeGrants    Permission = "revoke grants" // of other operators; each may revoke its own
)

// Permissions lists them.
var Permissions = []Permission{ManageOwners, ManageOperators, ManageApps, ManageKeys, ManageSettings, ReadAudit, RevokeGrants}

// allows says what each role may do: the scopes of the API that it may have or give to an app, and the permissions. It is the only
// place that says so.
var allows = map[Role]struct {
	scopes      func(catalogue []string) []string
	permissions []Permission
}{
	Owner: {every, Permissions},
	Admin: {every, []Permission{ManageOperators, ManageApps, ManageKeys, ManageSettings, ReadAudit, RevokeGrants}},
	Staff: {only(
		"read:bookings", "write:bookings", "read:customers", "write:customers", "read:leads", "write:leads", "read:quotes", "write:quotes",
		"read:invoices", "write:invoices", "read:services", "read:units", "payments:read",
	), nil},
	Viewer: {only(
		"read:bookings", "read:customers", "read:leads", "read:quotes", "read:invoices", "read:services", "read:units", "payments:read",
	), nil},
}

func every(catalogue []string) []string { return catalogue }

func only(scopes ...string) func([]string) []string {
	return func(catalogue []string) []string {
		return Intersect(catalogue, scopes)
	}
}

// Intersect returns what both lists hold, in the order of the first.
func Intersect(list, other []string) []string {
	out := []string{}
	for _, s := range list {
		if slices.Contains(other, s) {
			out = append(out, s)
		}
	}
	return out
}

// Scopes returns those of the scopes that the role may have, in their order. An unknown role has none.
func (r Role) Scopes(scopes []string) []string {
	rule, ok := allows[r]
	if !ok {
		return []string{}
	}
	return Intersect(scopes, rule.scopes(scopes))
}

// May reports whether the role has the permission.
func (r Role) May(p Permission) bool { return slices.Contains(allows[r].permissions, p) }

// MayChange reports whether somebody with the role may change a membership from one role to another; "" is no membership.
func (r Role) MayChange(from, to Role) bool {
	return r.May(ManageOperators) && (from != Owner && to != Owner || r.May(ManageOwners))
}

// Permissions returns what the role allows besides scopes. An unknown role has none.
func (r Role) Permissions() []Permission { return allows[r].permissions }

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles, r) {
		return r, nil
	}
	return "", apperr.Field("role", "Must be one of: owner, admin, staff, viewer.")
}
