package api_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	publicapi "holdfast.dev/proto/api"

	"holdfast.dev/services/identity/internal/domain"
)

func TestGetTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, mode := range []string{"live", "test"} {
		ctx, tenant, _ := w.keyed(mode, "all")
		got := decode[publicapi.Tenant](w.do(ctx, "GET", "/tenant").is(200))
		if got.Id != tenant.ID.String() || got.Slug != tenant.Slug || got.Name != "Demo & <Co>" || string(got.Mode) != mode ||
			got.Timezone != "Europe/Berlin" || got.Currency != "EUR" || !got.Country.IsNull() ||
			got.BookingPolicy.AutoConfirm || !got.BookingPolicy.ConfirmOnDeposit || !got.BookingPolicy.HoldTtlMinutes.IsNull() ||
			got.Payments.Configured || !got.Payments.Provider.IsNull() {
			t.Errorf("%s: %+v", mode, got)
		}
		_, _, err := w.app.UpdateTenant(t.Context(), domain.Origin{}, tenant.ID,
			domain.TenantPatch{HoldTTLMinutes: patch.Value(15), Country: patch.Value("DE")})
		if err != nil {
			t.Fatal(err)
		}
		got = decode[publicapi.Tenant](w.do(ctx, "GET", "/tenant").is(200))
		if got.BookingPolicy.HoldTtlMinutes.MustGet() != 15 || got.Country.MustGet() != "DE" {
			t.Errorf("%s after the update: %+v", mode, got)
		}
	}
}

func TestGetMe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, tenant, _ := w.keyed("test", "read:bookings,write:bookings")
	c := caller.FromContext(ctx)
	got := decode[publicapi.Me](w.do(ctx, "GET", "/me").is(200))
	if got.Id != c.Credential || got.Type != publicapi.ApiKey || got.Name.MustGet() != "Till" || got.Mode != "test" ||
		!slices.Equal(got.Scopes, c.Scopes) || got.TenantId != tenant.ID.String() || got.RateLimit.Limit != 77 || got.RateLimit.WindowSeconds != 60 {
		t.Errorf("%+v", got)
	}
	if _, _, err := w.app.SetLimits(t.Context(), domain.Origin{}, tenant.ID, domain.LimitsPatch{CredentialRequestsPerMinute: patch.Value(900)}); err != nil {
		t.Fatal(err)
	}
	if got = decode[publicapi.Me](w.do(ctx, "GET", "/me").is(200)); got.RateLimit.Limit != 900 {
		t.Errorf("a tenant with its own limit: %+v", got.RateLimit)
	}
}

func TestPublicOperationsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, _, _ := w.keyed("test", "all")
	otherTenants, _, _ := w.keyed("test", "all")
	for _, path := range []string{"/tenant", "/me"} {
		w.do(ctx, "GET", path, unsigned).is(401, "invalid_credential")
		w.do(ctx, "GET", path+"?expand=x").is(422, "invalid_request")
		w.do(ctx, "DELETE", path).is(405, "method_not_allowed")
		unknown := in(ctx, func(c *caller.Caller) {
			c.Tenant, c.Credential = ids.New[ids.TenantPrefix](), domain.NewKeyID().String()
		})
		w.do(unknown, "GET", path).is(401, "invalid_credential")
	}
	w.do(ctx, "GET", "/nothing").is(404, "not_found")
	for name, wrong := range map[string]func(*caller.Caller){
		"another tenant's key": func(c *caller.Caller) { c.Credential = caller.FromContext(otherTenants).Credential },
		"the other mode":       func(c *caller.Caller) { c.Mode = caller.Live },
		"no key":               func(c *caller.Caller) { c.Credential = "svc:bookings" },
	} {
		t.Log(name)
		w.do(in(ctx, wrong), "GET", "/me").is(401, "invalid_credential")
	}
}

func TestBrokenDatabaseIsAnInternalError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, _, _ := w.keyed("test", "all")
	w.Exec(`drop table tenants, api_keys cascade`)
	for _, path := range []string{"/tenant", "/me"} {
		if a := w.do(ctx, "GET", path).is(500, "internal_error"); strings.Contains(string(a.Body), "relation") {
			t.Errorf("the cause is shown: %s", a.Body)
		}
	}
}

// TestOverload checks that locked tables, statements that take too long, and a pool without a free connection return 503.
func TestOverload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, _, _ := w.keyed("test", "all")
	w.Overloaded(ctx, w.serve, []apitest.Request{{Method: "GET", Path: "/me"}, {Method: "GET", Path: "/tenant"}})
}

// TestContractHasNoInternalPath checks that the internal paths are not under the public base, so the gateway has no route to
// them.
func TestContractHasNoInternalPath(t *testing.T) {
	t.Parallel()
	c, err := contract.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range c.Operations() {
		if strings.Contains(op.Path, "internal") {
			t.Errorf("%s is public at %s", op.ID, op.Path)
		}
	}
}
