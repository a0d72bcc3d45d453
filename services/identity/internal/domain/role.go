package domain

import (
	"slices"

	"holdfast.dev/libs/apperr"
)

// Role determines what an operator may do at one tenant.
type Role string

// The roles, in descending order of permissions.
const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Staff  Role = "staff"
	Viewer Role = "viewer"
)

// Roles lists all roles.
var Roles = []Role{Owner, Admin, Staff, Viewer}

// Permission is a permission that a role can have in addition to the API's scopes.
type Permission string

// The permissions.
const (
	ManageOwners    Permission = "manage owners"    // add and remove owners
	ManageOperators Permission = "manage operators" // invite others, change their roles, end their membership
	ManageApps      Permission = "manage apps"
	ManageKeys      Permission = "manage keys"
	ManageSettings  Permission = "manage settings"
	ReadAudit       Permission = "read audit"
	RevokeGrants    Permission = "revoke grants" // of other operators; each operator may revoke their own
)

// Permissions lists all permissions.
var Permissions = []Permission{ManageOwners, ManageOperators, ManageApps, ManageKeys, ManageSettings, ReadAudit, RevokeGrants}

// permissions contains the permissions of each role. It is their only definition.
var permissions = map[Role][]Permission{
	Owner: Permissions,
	Admin: {ManageOperators, ManageApps, ManageKeys, ManageSettings, ReadAudit, RevokeGrants},
}

// lowest maps each scope to the last role in Roles that may have it or grant it to an app. The roles before it may do the same. It
// contains every scope of the contract and is their only definition.
var lowest = map[string]Role{
	"read:bookings": Viewer, "write:bookings": Staff,
	"read:customers": Viewer, "write:customers": Staff,
	"read:leads": Viewer, "write:leads": Staff,
	"read:quotes": Viewer, "write:quotes": Staff,
	"read:invoices": Viewer, "write:invoices": Staff,
	"read:services": Viewer, "write:services": Admin,
	"read:units": Viewer, "write:units": Admin,
	"read:webhooks": Admin, "write:webhooks": Admin,
	"payments:read": Viewer, "payments:write": Admin,
}

// Intersect returns the elements of both lists, in the order of the first.
func Intersect(list, other []string) []string {
	out := []string{}
	for _, s := range list {
		if slices.Contains(other, s) {
			out = append(out, s)
		}
	}
	return out
}

// Scopes returns the given scopes that the role may have, in the same order. An unknown role has no scopes, and no role has an
// unknown scope.
func (r Role) Scopes(scopes []string) []string {
	out, rank := []string{}, slices.Index(Roles, r)
	for _, s := range scopes {
		if rank >= 0 && rank <= slices.Index(Roles, lowest[s]) {
			out = append(out, s)
		}
	}
	return out
}

// Can reports whether the role has the permission.
func (r Role) Can(p Permission) bool { return slices.Contains(permissions[r], p) }

// CanChange reports whether an operator with the role may change a membership from one role to another. "" means no membership.
func (r Role) CanChange(from, to Role) bool {
	return r.Can(ManageOperators) && (from != Owner && to != Owner || r.Can(ManageOwners))
}

// Permissions returns the permissions of the role in addition to scopes. An unknown role has none.
func (r Role) Permissions() []Permission { return permissions[r] }

// ParseRole parses a role's name.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles, r) {
		return r, nil
	}
	return "", apperr.Field("role", "Must be one of: owner, admin, staff, viewer.")
}
