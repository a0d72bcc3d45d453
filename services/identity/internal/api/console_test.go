package api_test

import (
	"context"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// as returns a context in which the console calls on behalf of an operator.
func (w *world) as(o domain.Operator, at domain.Tenant, mode caller.Mode) context.Context {
	w.T.Helper()
	return caller.With(w.T.Context(), caller.Caller{
		Tenant: at.ID, Timezone: at.Timezone, Currency: at.Currency, PolicyVersion: at.Version, Mode: mode,
		Credential: o.ID.String(), Kind: "operator", RequestID: ids.New[ids.RequestPrefix]().String(),
	})
}

// member creates an operator with a role at a tenant. A member of another tenant verifies its address.
func (w *world) member(of domain.Tenant, email, role string) domain.Operator {
	w.T.Helper()
	o, token, err := w.app.InviteOperator(w.T.Context(), domain.Origin{Actor: "cli", Source: "test"}, app.Invitation{Tenant: of.ID, Email: email, Name: "Dana", Role: role})
	if err != nil {
		w.T.Fatal(err)
	}
	if all, err := store.Places(w.T.Context(), w.DB.App.Read(w.T.Context()), o.ID); err != nil {
		w.T.Fatal(err)
	} else if len(all) > 1 && token != "" {
		return w.uses(token)
	}
	return o
}

// uses sets the password with a one-time link.
func (w *world) uses(token string) domain.Operator {
	w.T.Helper()
	o, err := w.app.UseLink(w.T.Context(), domain.Origin{Source: "test"}, token, "a long enough password")
	if err != nil {
		w.T.Fatal(err)
	}
	return o
}

// newTenant creates a tenant with an owner.
func (w *world) newTenant() (domain.Tenant, domain.Operator) {
	w.T.Helper()
	_, tenant, _ := w.keyed("live", "all")
	return tenant, w.member(tenant, "owner@"+tenant.Slug+".example", "owner")
}

// consoleCalls are the calls of the console, with the permission that each requires. The ids do not exist.
var consoleCalls = []struct {
	method, path, body string
	needs              domain.Permission
}{
	{"GET", "/internal/v1/api-keys", "", domain.ManageKeys},
	{"POST", "/internal/v1/api-keys", `{"name":"x","scopes":["read:units"]}`, domain.ManageKeys},
	{"POST", "/internal/v1/api-keys/key_x/rotate", `{"overlap_seconds":0}`, domain.ManageKeys},
	{"POST", "/internal/v1/api-keys/key_x/revoke", "", domain.ManageKeys},
	{"GET", "/internal/v1/audit", "", domain.ReadAudit},
	{"GET", "/internal/v1/audit?actor=op_x&action=key.create&from=2026-01-01T00:00:00Z", "", domain.ReadAudit},
	{"GET", "/internal/v1/audit?object=", "", domain.ReadAudit},
	{"GET", "/internal/v1/audit?object=bk_x", "", ""},
	{"POST", "/internal/v1/audit/verify", "", domain.ReadAudit},
	{"GET", "/internal/v1/views?list=bookings", "", ""},
	{"POST", "/internal/v1/views", `{"list":"bookings","name":"x","query":"q=x"}`, ""},
	{"DELETE", "/internal/v1/views/view_x", "", ""},
	{"GET", "/internal/v1/members", "", domain.ManageOperators},
	{"POST", "/internal/v1/members", `{"email":"x","name":"X","role":"staff"}`, domain.ManageOperators},
	{"PATCH", "/internal/v1/members/op_x", `{"role":"staff"}`, domain.ManageOperators},
	{"DELETE", "/internal/v1/members/op_x", "", domain.ManageOperators},
	{"GET", "/internal/v1/apps", "", domain.ManageApps},
	{"POST", "/internal/v1/apps", `{"name":"Till"}`, domain.ManageApps},
	{"PATCH", "/internal/v1/apps/app_x", `{"name":"Till"}`, domain.ManageApps},
	{"DELETE", "/internal/v1/apps/app_x", "", domain.ManageApps},
	{"GET", "/internal/v1/grants", "", domain.RevokeGrants},
	{"DELETE", "/internal/v1/grants/gr_x", "", domain.RevokeGrants},
	{"PATCH", "/internal/v1/tenant", `{"name":"New"}`, domain.ManageSettings},
}

// TestConsolePermissions checks that each call succeeds exactly for the roles that have its permission.
func TestConsolePermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.newTenant()
	for _, role := range domain.Roles {
		o := w.member(tenant, string(role)+"@example.com", string(role))
		for _, call := range consoleCalls {
			a := w.from(w.as(o, tenant, caller.Test), "console", call.method, call.path, call.body)
			allowed := call.needs == "" || role.Can(call.needs)
			if forbidden := a.Status == 403; forbidden == allowed || a.Status >= 500 || a.Status == 401 {
				t.Errorf("%s %s as %s: %d %s", call.method, call.path, role, a.Status, a.Body)
			}
			if !allowed {
				a.is(403, "insufficient_permission")
			}
		}
	}
}

// TestConsoleCallsOfUnauthorizedCallers checks that no call succeeds for an operator who is not a member of the tenant now, for a caller that
// is not an operator, or for another service.
func TestConsoleCallsOfUnauthorizedCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := domain.Origin{Actor: "cli", Source: "test"}
	tenant, owner := w.newTenant()
	_, stranger := w.newTenant()
	left, disabled := w.member(tenant, "left@example.com", "owner"), w.member(tenant, "disabled@example.com", "owner")
	if _, err := w.app.RemoveOperator(t.Context(), by, app.MemberRef{Tenant: tenant.ID, Email: left.Email}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.app.DisableOperator(t.Context(), by, disabled.Email); err != nil {
		t.Fatal(err)
	}
	asOwner := w.as(owner, tenant, caller.Live)
	for name, ctx := range map[string]context.Context{
		"an owner of another tenant": w.as(stranger, tenant, caller.Live),
		"an ended member":            w.as(left, tenant, caller.Live),
		"a disabled member":          w.as(disabled, tenant, caller.Live),
		"nobody":                     w.as(domain.Operator{ID: domain.NewOperatorID()}, tenant, caller.Live),
		"no tenant":                  in(asOwner, func(c *caller.Caller) { c.Tenant = ids.Tenant{} }),
		"a key":                      in(asOwner, func(c *caller.Caller) { c.Credential = domain.NewKeyID().String() }),
		"the kind of a key":          in(asOwner, func(c *caller.Caller) { c.Kind = "api_key" }),
		"the service itself":         w.service("console", tenant.ID, caller.Live),
	} {
		for _, call := range consoleCalls {
			if a := w.from(ctx, "console", call.method, call.path, call.body); a.Status != 403 || !strings.Contains(string(a.Body), "insufficient_permission") {
				t.Errorf("%s: %s %s: %d %s", name, call.method, call.path, a.Status, a.Body)
			}
		}
	}
	for _, peer := range []string{"", "gateway", "bookings", "customers"} {
		for _, call := range consoleCalls {
			w.from(asOwner, peer, call.method, call.path, call.body).is(401, "invalid_credential")
		}
	}
}
