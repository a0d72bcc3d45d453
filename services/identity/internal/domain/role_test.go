package domain

import (
	"maps"
	"slices"
	"testing"

	"holdfast.dev/proto"
)

// TestEveryScopeIsDecidedForEveryRole checks that exactly the scopes of the contract are assigned to roles.
func TestEveryScopeIsDecidedForEveryRole(t *testing.T) {
	t.Parallel()
	want := map[Role][]string{
		Owner: proto.Scopes,
		Admin: proto.Scopes,
		Staff: {
			"read:bookings", "write:bookings", "read:customers", "write:customers", "read:leads", "write:leads", "read:quotes", "write:quotes",
			"read:invoices", "write:invoices", "read:services", "read:units", "payments:read",
		},
		Viewer: {
			"read:bookings", "read:customers", "read:leads", "read:quotes", "read:invoices", "read:services", "read:units", "payments:read",
		},
		"somebody": nil,
	}
	for role, scopes := range want {
		if got := role.Scopes(proto.Scopes); !slices.Equal(got, scopes) {
			t.Errorf("%s has %v, want %v", role, got, scopes)
		}
	}
	for _, scope := range proto.Scopes {
		if !slices.Contains(Roles, lowest[scope]) {
			t.Errorf("nothing says which roles may have %s: add it to lowest", scope)
		}
	}
	for scope := range maps.Keys(lowest) {
		if !slices.Contains(proto.Scopes, scope) {
			t.Errorf("%s is no scope of the contract", scope)
		}
	}
	for _, role := range Roles {
		if got := role.Scopes([]string{"read:everything"}); len(got) != 0 {
			t.Errorf("%s has a scope that is unknown", role)
		}
	}
}
