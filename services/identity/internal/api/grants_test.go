package api_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/patch"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
)

// granted creates a grant of an operator for an app of the tenant. Its code is exchanged unless unused is true.
func (w *world) granted(tenant domain.Tenant, o domain.Operator, a domain.App, mode caller.Mode, unused bool) domain.Grant {
	w.T.Helper()
	code := sha256.Sum256([]byte(domain.NewCode()))
	by := domain.Origin{Actor: o.ID.String(), Source: "test"}
	g, err := w.app.Grant(w.T.Context(), by, app.Consent{
		Operator: o.ID, App: a, Tenant: tenant.ID, Mode: mode, Scopes: []string{"read:bookings"}, RedirectURI: "https://app.example/", CodeHash: code[:],
	})
	if err != nil {
		w.T.Fatal(err)
	}
	if unused {
		return g
	}
	refresh := domain.NewRefreshToken("")
	err = w.app.Rotate(w.T.Context(), g, store.Exchange{
		Family: domain.FamilyHash(refresh), Refresh: domain.SecretHash(refresh), Access: domain.SecretHash(domain.NewAccessToken()),
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return g
}

// TestGrantsForTheConsole checks that the console lists the grants of the caller's tenant in both modes, newest first, and ends
// one on behalf of its operator. Neither call reaches another tenant's grants.
func TestGrantsForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := domain.Origin{Actor: "cli", Source: "test"}
	ctx, tenant, _ := w.keyed("test", "all")
	otherCtx, other, _ := w.keyed("test", "all")
	dana, erik := w.member(tenant, "dana@example.com", "admin"), w.member(tenant, "erik@example.com", "admin")
	w.member(other, dana.Email, "admin")
	a, err := w.app.CreateApp(t.Context(), by, tenant.ID, app.Registration{
		Name: patch.Value("Till"), Scopes: patch.Value("all"), RedirectURIs: patch.Value([]string{"https://app.example/"}), Published: patch.Value(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := w.granted(tenant, dana, a, caller.Live, false), w.granted(tenant, erik, a, caller.Test, false)
	w.granted(tenant, dana, a, caller.Test, true)
	elsewhere := w.granted(other, dana, a, caller.Test, false)

	as := func(ctx context.Context, o domain.Operator) context.Context {
		return in(ctx, func(c *caller.Caller) { c.Credential, c.Kind = o.ID.String(), "operator" })
	}
	list := func(query string) (found []string) {
		t.Helper()
		for _, g := range decode[internalapi.GrantList](w.from(as(ctx, erik), "console", "GET", "/internal/v1/grants"+query, "").is(200)).Data {
			if g.App != "Till" || g.AppID != a.ID.String() || !slices.Equal(g.Scopes, []string{"read:bookings"}) || g.LastRefreshedAt == nil || g.EndsAt.Before(time.Now()) {
				t.Errorf("%+v", g)
			}
			found = append(found, g.ID+" "+g.Mode+" "+g.Operator)
		}
		return found
	}
	want := []string{second.ID.String() + " test erik@example.com", first.ID.String() + " live dana@example.com"}
	if got := list(""); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := list("?operator_id=" + dana.ID.String()); !slices.Equal(got, want[1:]) {
		t.Errorf("%v, want %v", got, want[1:])
	}
	w.from(as(ctx, erik), "console", "GET", "/internal/v1/grants?operator_id=x", "").is(422, "invalid_request", "operator_id")

	end := "/internal/v1/grants/"
	for _, id := range []string{elsewhere.ID.String(), domain.NewGrantID().String(), "x"} {
		w.from(as(ctx, erik), "console", "DELETE", end+id, "").is(404, "grant_not_found")
	}
	for _, peer := range []string{"", "gateway", "bookings"} {
		w.from(ctx, peer, "GET", "/internal/v1/grants", "").is(401, "invalid_credential")
		w.from(ctx, peer, "DELETE", end+first.ID.String(), "").is(401, "invalid_credential")
	}
	for range 2 {
		w.from(as(ctx, erik), "console", "DELETE", end+second.ID.String(), "").is(204)
	}
	if got := list(""); !slices.Equal(got, want[1:]) {
		t.Errorf("%v, want %v", got, want[1:])
	}
	if found := decode[internalapi.GrantList](w.from(as(otherCtx, dana), "console", "GET", "/internal/v1/grants", "").is(200)).Data; len(found) != 1 || found[0].ID != elsewhere.ID.String() {
		t.Errorf("%+v", found)
	}
	records := 0
	err = w.app.ListAudit(t.Context(), store.AuditFilter{Tenant: tenant.ID}, 100, func(all []domain.Record) error {
		for _, r := range all {
			if r.Action == domain.GrantRevoked && r.Object == second.ID.String() && r.Actor == erik.ID.String() {
				records++
			}
		}
		return nil
	})
	if err != nil || records != 1 {
		t.Errorf("%d records of the end: %v", records, err)
	}
}
