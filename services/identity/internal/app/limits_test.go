package app_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/quota"
	"holdfast.dev/proto"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// TestSetLimits checks that a change of limits reaches the gateways as a new version of each key, and that the look-up returns it. A
// change without an effect creates no version.
func TestSetLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	k, secret := w.key(t, tenant.ID, "live")
	_, otherSecret := w.key(t, other.ID, "live")
	if p := w.lookup(t, secret); p.RequestsPerMinute != nil || p.CredentialRequestsPerMinute != nil || len(p.Caps) != 0 {
		t.Errorf("a new tenant has limits %+v", p.Limits)
	}
	in := domain.LimitsPatch{
		RequestsPerMinute: patch.Value(9000), CredentialRequestsPerMinute: patch.Value(900),
		Caps: map[string]patch.Field[int]{"units": patch.Value(3000), "api_keys": patch.Value(0)},
	}
	for range 2 { // the second has no effect
		got, published, err := w.SetLimits(t.Context(), cli, tenant.ID, in)
		if err != nil || !published || got.Version != 2 {
			t.Fatalf("version %d, published %v: %v", got.Version, published, err)
		}
	}
	p := w.lookup(t, secret)
	if p.Version != 3 || *p.RequestsPerMinute != 9000 || *p.CredentialRequestsPerMinute != 900 || !maps.Equal(p.Caps, map[string]int{"units": 3000, "api_keys": 0}) {
		t.Errorf("looked up %+v", p)
	}
	if state := w.state(t, k.ID); state != strconv.FormatInt(p.Version, 10) {
		t.Errorf("Redis says %q, want %d", state, p.Version)
	}
	if p := w.lookup(t, otherSecret); p.RequestsPerMinute != nil || len(p.Caps) != 0 || p.Version != 2 {
		t.Errorf("another tenant: %+v", p)
	}
	got, _, err := w.SetLimits(t.Context(), cli, tenant.ID, domain.LimitsPatch{
		RequestsPerMinute: patch.Null[int](), Caps: map[string]patch.Field[int]{"api_keys": patch.Null[int]()},
	})
	if err != nil || got.RequestsPerMinute != nil || *got.CredentialRequestsPerMinute != 900 || !maps.Equal(got.Caps, map[string]int{"units": 3000}) {
		t.Errorf("after null: %+v: %v", got.Limits, err)
	}
	got, _, err = w.SetLimits(t.Context(), cli, tenant.ID, domain.LimitsPatch{Reset: true, RequestsPerMinute: patch.Value(7)})
	if err != nil || *got.RequestsPerMinute != 7 || got.CredentialRequestsPerMinute != nil || len(got.Caps) != 0 {
		t.Errorf("after the reset: %+v: %v", got.Limits, err)
	}
	w.published(t, tenant.ID, 4)
	w.holds(t, tenant, 5) // creation, key, and three changes
	if n := w.count(t, `select count(*) from audit_log where action = 'tenant.update' and after->'limits'->>'requests_per_minute' = '9000'
		and before->'limits' = '{}'`); n != 1 {
		t.Errorf("%d audit records of the first change", n)
	}
}

func TestSetLimitsRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.tenant(t)
	one := func(name string, most int) domain.LimitsPatch {
		return domain.LimitsPatch{Caps: map[string]patch.Field[int]{name: patch.Value(most)}}
	}
	for field, wrong := range map[string][]domain.LimitsPatch{
		"requests_per_minute":            {{RequestsPerMinute: patch.Value(0)}, {RequestsPerMinute: patch.Value(domain.MaxRequestsPerMinute + 1)}},
		"credential_requests_per_minute": {{CredentialRequestsPerMinute: patch.Value(-1)}, {CredentialRequestsPerMinute: patch.Value(domain.MaxRequestsPerMinute + 1)}},
		"caps.boats":                     {one("boats", 1)},
		"caps.units":                     {one("units", -1), one("units", proto.CapUnits.Highest+1)},
	} {
		for _, in := range wrong {
			_, _, err := w.SetLimits(t.Context(), cli, tenant.ID, in)
			if e := apperr.As(err); e.Kind != apperr.Invalid || len(e.Fields) != 1 || e.Fields[0].Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
	for _, c := range proto.Caps {
		if _, _, err := w.SetLimits(t.Context(), cli, tenant.ID, one(c.Name, c.Highest)); err != nil || c.Default > c.Highest {
			t.Errorf("the highest %s: %v", c.Name, err)
		}
	}
	if _, _, err := w.SetLimits(t.Context(), cli, tenant.ID, domain.LimitsPatch{
		RequestsPerMinute: patch.Value(domain.MaxRequestsPerMinute), CredentialRequestsPerMinute: patch.Value(1),
	}); err != nil {
		t.Error(err)
	}
	w.holds(t, tenant, int64(len(proto.Caps)+2))
}

// TestCapsOfATenant checks that a tenant's own cap is counted under the lock: parallel creations never exceed it.
func TestCapsOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, other := w.tenant(t), w.tenant(t)
	if _, _, err := w.SetLimits(t.Context(), cli, tenant.ID, domain.LimitsPatch{
		Caps: map[string]patch.Field[int]{"api_keys": patch.Value(2), "oauth_apps": patch.Value(1)},
	}); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 6)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, _, errs[i] = w.CreateKey(t.Context(), cli, app.NewKey{Tenant: tenant.ID, Mode: "live", Scopes: "all"})
		})
	}
	group.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
		} else if e := apperr.As(err); !errors.Is(err, quota.ErrReached) || !strings.Contains(e.Fields[0].Message, "At most 2 API keys") {
			t.Error(err)
		}
	}
	if created != 2 {
		t.Errorf("%d keys with a cap of 2", created)
	}
	for range 3 {
		w.key(t, other.ID, "live")
	}
	create := func(of domain.Tenant) error {
		_, err := w.CreateApp(t.Context(), cli, of.ID, app.Registration{
			Name: patch.Value("App"), RedirectURIs: patch.Value([]string{"https://app.test/back"}), Scopes: patch.Value("all"),
		})
		return err
	}
	if err := create(tenant); err != nil {
		t.Fatal(err)
	}
	if err := create(tenant); !errors.Is(err, quota.ErrReached) {
		t.Errorf("the second app: %v", err)
	}
	for range 2 {
		if err := create(other); err != nil {
			t.Errorf("another tenant: %v", err)
		}
	}
}
