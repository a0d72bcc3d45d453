package oauth_test

import (
	"maps"
	"testing"

	"holdfast.dev/libs/patch"

	"holdfast.dev/services/identity/internal/domain"
)

// TestLimitsOfAToken checks that the look-up of an access token returns the limits of the tenant, and a new version after a change.
func TestLimitsOfAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.granted().Access
	before := w.principal(token)
	if before.RequestsPerMinute != nil || len(before.Caps) != 0 {
		t.Errorf("limits of a new tenant: %+v", before.Limits)
	}
	if _, _, err := w.app.SetLimits(t.Context(), domain.Origin{}, before.TenantID, domain.LimitsPatch{
		RequestsPerMinute: patch.Value(9), Caps: map[string]patch.Field[int]{"units": patch.Value(3)},
	}); err != nil {
		t.Fatal(err)
	}
	after := w.principal(token)
	if after.Version != before.Version+1 || *after.RequestsPerMinute != 9 || !maps.Equal(after.Caps, map[string]int{"units": 3}) {
		t.Errorf("%+v", after)
	}
}
