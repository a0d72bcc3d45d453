package api_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// TestEndedCredentials checks that bookings receives which keys, grants, and operators have ended or were rotated, and none of
// another tenant.
func TestEndedCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := domain.Origin{Actor: "cli", Source: "test"}
	tenant, _ := w.newTenant()
	other, _ := w.newTenant()
	key := func(name string) domain.Key {
		k, _, err := w.app.CreateKey(t.Context(), by, app.NewKey{Tenant: tenant.ID, Mode: "test", Name: name, Scopes: "all"})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	active, revoked, rotated, replaced := key("a"), key("b"), key("c"), key("d")
	tenantMode := store.TenantMode{TenantID: tenant.ID}
	if _, _, err := w.app.RevokeKeyAt(t.Context(), by, tenantMode, revoked.ID); err != nil {
		t.Fatal(err)
	}
	next, _, _, err := w.app.RotateKey(t.Context(), by, tenantMode, rotated.ID, app.Rotation{Overlap: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	after, _, _, err := w.app.RotateKey(t.Context(), by, tenantMode, replaced.ID, app.Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	stays, leaves, disabled := w.member(tenant, "a@example.com", "admin"), w.member(tenant, "b@example.com", "admin"), w.member(tenant, "c@example.com", "admin")
	till, err := w.app.CreateApp(t.Context(), by, tenant.ID, app.Registration{
		Name: patch.Value("Till"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{"https://app.example/"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	grant, ended, left := w.granted(tenant, stays, till, caller.Live, false), w.granted(tenant, stays, till, caller.Test, false), w.granted(tenant, leaves, till, caller.Live, false)
	if _, err := w.app.RevokeGrant(t.Context(), by, ended.ID, domain.ByOperator); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.RemoveOperator(t.Context(), by, app.MemberRef{Tenant: tenant.ID, Email: leaves.Email}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.app.DisableOperator(t.Context(), by, disabled.Email); err != nil {
		t.Fatal(err)
	}
	var in internalapi.CredentialList
	for _, id := range []string{
		active.ID.String(), revoked.ID.String(), rotated.ID.String(), replaced.ID.String(), next.ID.String(), after.ID.String(), domain.NewKeyID().String(),
		stays.ID.String(), leaves.ID.String(), disabled.ID.String(), grant.ID.String(), ended.ID.String(), left.ID.String(), "svc:console",
	} {
		in.Credentials = append(in.Credentials, internalapi.CredentialRef{TenantID: tenant.ID.String(), ID: id})
	}
	in.Credentials = append(in.Credentials, internalapi.CredentialRef{TenantID: other.ID.String(), ID: active.ID.String()})
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	bookings := w.service("bookings", ids.Tenant{}, "")
	got := map[string]string{}
	for _, e := range decode[internalapi.EndedCredentials](w.from(bookings, "bookings", "POST", "/internal/v1/credentials/ended", string(body)).is(200)).Data {
		successor := ""
		if e.Successor != nil {
			successor = *e.Successor
		}
		got[e.TenantID+" "+e.ID] = successor
	}
	want := map[string]string{other.ID.String() + " " + active.ID.String(): ""}
	for _, id := range []string{
		revoked.ID.String(), in.Credentials[6].ID, leaves.ID.String(), disabled.ID.String(), ended.ID.String(), left.ID.String(), "svc:console",
	} {
		want[tenant.ID.String()+" "+id] = ""
	}
	want[tenant.ID.String()+" "+rotated.ID.String()] = next.ID.String()
	want[tenant.ID.String()+" "+replaced.ID.String()] = after.ID.String()
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	checkEndpointGrants(t, w.app, tenant.ID, []domain.Grant{grant, ended, left})
	w.from(bookings, "webhooks", "POST", "/internal/v1/credentials/ended", `{"credentials":[]}`).is(401)
	w.from(bookings, "bookings", "POST", "/internal/v1/credentials/ended", `{"credentials":[{"tenant_id":"x","id":"y"}]}`).is(422)
}

// endpointHolders replaces webhooks: it has one grant on each page.
type endpointHolders struct {
	grants []domain.EndpointGrant
	ended  []string
}

// List implements app.EndpointHolders.
func (h *endpointHolders) List(_ context.Context, after string) ([]domain.EndpointGrant, error) {
	for i, g := range h.grants {
		if after == "" || i > 0 && h.grants[i-1].ID == after {
			return []domain.EndpointGrant{g}, nil
		}
	}
	return nil, nil
}

// End implements app.EndpointHolders.
func (h *endpointHolders) End(_ context.Context, ended []domain.EndpointGrant) error {
	for _, g := range ended {
		h.ended = append(h.ended, g.ID)
	}
	return nil
}

// checkEndpointGrants checks that the worker ends all grants but the first.
func checkEndpointGrants(t *testing.T, identity *app.App, tenant ids.Tenant, grants []domain.Grant) {
	t.Helper()
	h := &endpointHolders{}
	var want []string
	for i, g := range grants {
		h.grants = append(h.grants, domain.EndpointGrant{TenantID: tenant, Mode: caller.ModeOf(g.Livemode), ID: g.ID.String()})
		if i > 0 {
			want = append(want, g.ID.String())
		}
	}
	worker := &app.EndpointGrants{DB: identity.DB, Holders: h, Now: identity.Now}
	if err := worker.Run(t.Context()); err != nil || !slices.Equal(h.ended, want) {
		t.Errorf("ended %v, want %v: %v", h.ended, want, err)
	}
}
