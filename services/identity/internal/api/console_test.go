package api_test

import (
	"context"
	"slices"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// member makes an operator a member of a tenant and returns the context in which the console asks for it.
func (w *world) member(of domain.Tenant, email, role string, mode caller.Mode) (context.Context, domain.Operator) {
	w.T.Helper()
	o, _, err := w.app.InviteOperator(w.T.Context(), domain.Origin{Actor: "cli", Source: "test"}, app.Invitation{Tenant: of.ID, Email: email, Name: "Dana", Role: role})
	if err != nil {
		w.T.Fatal(err)
	}
	return caller.With(w.T.Context(), caller.Caller{Tenant: of.ID, Mode: mode, Credential: o.ID.String(), Kind: "operator", RequestID: "req_1"}), o
}

// An operator whose role may manage keys makes, sees and ends those of its tenant and mode; no other operator does, and no other service.
func TestKeysForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, tenant, _ := w.keyed("test", "all")
	_, other, _ := w.keyed("test", "all")
	owner, dana := w.member(tenant, "owner@example.com", "owner", caller.Test)
	made := decode[internalapi.APIKeyWithSecret](w.from(owner, "console", "POST", "/internal/v1/api-keys", `{"name":"Till","scopes":["read:bookings","payments:read"]}`).is(201))
	if made.Secret == "" || made.APIKey.Name != "Till" || !slices.Equal(made.APIKey.Scopes, []string{"read:bookings", "payments:read"}) || made.APIKey.RevokedAt != nil {
		t.Errorf("%+v", made)
	}
	list := func(ctx context.Context) (found []string) {
		t.Helper()
		for _, k := range decode[internalapi.APIKeyList](w.from(ctx, "console", "GET", "/internal/v1/api-keys", "").is(200)).Data {
			found = append(found, k.ID)
		}
		return found
	}
	live := in(owner, func(c *caller.Caller) { c.Mode = caller.Live })
	elsewhere, _ := w.member(other, "elsewhere@example.com", "owner", caller.Test)
	if got := list(owner); len(got) != 2 || got[0] != made.APIKey.ID {
		t.Errorf("%v", got)
	}
	if got := list(live); len(got) != 0 {
		t.Errorf("the other mode has %v", got)
	}
	if got := list(elsewhere); slices.Contains(got, made.APIKey.ID) {
		t.Errorf("another tenant has %v", got)
	}

	// Each call is refused where the role, the membership, the tenant or the peer is another one.
	staff, _ := w.member(tenant, "staff@example.com", "staff", caller.Test)
	viewer, _ := w.member(tenant, "viewer@example.com", "viewer", caller.Test)
	admin, _ := w.member(tenant, "admin@example.com", "admin", caller.Test)
	stranger := in(owner, func(c *caller.Caller) { c.Tenant = other.ID })
	key := in(owner, func(c *caller.Caller) { c.Credential = made.APIKey.ID })
	revoke := "/internal/v1/api-keys/" + made.APIKey.ID + "/revoke"
	for _, call := range [][3]string{{"GET", "/internal/v1/api-keys"}, {"POST", "/internal/v1/api-keys", `{"name":"Till","scopes":["read:bookings"]}`}, {"POST", revoke}} {
		for name, ctx := range map[string]context.Context{"staff": staff, "viewer": viewer, "a stranger": stranger, "a key": key} {
			t.Log(name, call)
			w.from(ctx, "console", call[0], call[1], call[2]).is(403, "insufficient_scope")
		}
		w.from(owner, "bookings", call[0], call[1], call[2]).is(401, "invalid_credential")
	}
	w.from(live, "console", "POST", revoke, "").is(404, "key_not_found")
	w.from(elsewhere, "console", "POST", revoke, "").is(404, "key_not_found")
	w.from(owner, "console", "POST", "/internal/v1/api-keys/x/revoke", "").is(404, "key_not_found")
	for body, field := range map[string]string{
		`{"name":"","scopes":["read:everything"]}`: "scopes", `{"name":"Till","scopes":[]}`: "scopes", `{`: "name",
	} {
		w.from(owner, "console", "POST", "/internal/v1/api-keys", body).is(422, "invalid_request", field)
	}
	for range 2 { // the second time changes nothing
		if k := decode[internalapi.APIKey](w.from(admin, "console", "POST", revoke, "").is(200)); k.RevokedAt == nil {
			t.Errorf("%+v", k)
		}
	}

	// Whoever is no member any more, or may not sign in, may nothing.
	by := domain.Origin{Actor: "cli", Source: "test"}
	keeper, _ := w.member(tenant, "keeper@example.com", "owner", caller.Test)
	if _, err := w.app.RemoveOperator(t.Context(), by, tenant.ID, dana.Email); err != nil {
		t.Fatal(err)
	}
	w.from(owner, "console", "GET", "/internal/v1/api-keys", "").is(403, "insufficient_scope")
	if _, _, err := w.app.DisableOperator(t.Context(), by, "admin@example.com"); err != nil {
		t.Fatal(err)
	}
	w.from(admin, "console", "GET", "/internal/v1/api-keys", "").is(403, "insufficient_scope")
	w.from(keeper, "console", "GET", "/internal/v1/api-keys", "").is(200)
}
