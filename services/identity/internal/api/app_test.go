package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

const apps = "/internal/v1/apps"

// TestAppsForTheConsole checks that the console registers, changes, and deletes the apps of its own tenant. It cannot reach
// another tenant's app, published or not.
func TestAppsForTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, stranger := w.newTenant()
	ctx := w.as(owner, tenant, caller.Test)
	const sent = `{"name":"Till","redirect_uris":["https://app.example/cb","http://127.0.0.1/cb"],"scopes":["read:bookings","read:units"],"published":true,
		"reuse_leeway_seconds":5,"browser_origins":["https://app.example"]}`
	a := w.from(ctx, "console", "POST", apps, sent).is(201)
	apitest.Written[internalapi.AppRegistration](t, sent, a.Body, "id", "created_at", "updated_at")
	newApp := decode[internalapi.App](a)
	path := apps + "/" + newApp.ID
	list := func(ctx context.Context) (found []string) {
		t.Helper()
		for _, a := range decode[internalapi.AppList](w.from(ctx, "console", "GET", apps, "").is(200)).Data {
			found = append(found, a.ID)
		}
		return found
	}
	second := decode[internalapi.App](w.from(ctx, "console", "POST", apps, `{"name":"B","redirect_uris":["https://b.example/"],"scopes":["read:units"]}`).is(201))
	if second.Published || len(second.BrowserOrigins) != 0 || !slices.Equal(list(w.as(owner, tenant, caller.Live)), []string{second.ID, newApp.ID}) {
		t.Errorf("%+v", second)
	}
	for name, ctx := range map[string]context.Context{"another tenant": w.as(stranger, other, caller.Test)} {
		t.Log(name)
		w.from(ctx, "console", "PATCH", path, `{"name":"Stolen"}`).is(404, "app_not_found")
		w.from(ctx, "console", "DELETE", path, "").is(404, "app_not_found")
		if found := list(ctx); len(found) != 0 {
			t.Errorf("%v", found)
		}
	}
	const patched = `{"name":"New","redirect_uris":["https://new.example/"],"scopes":["write:bookings"],"published":false,"reuse_leeway_seconds":0,"browser_origins":[]}`
	apitest.Written[internalapi.AppRegistration](t, patched, w.from(ctx, "console", "PATCH", path, patched).is(200).Body, "id", "created_at", "updated_at")
	if got := decode[internalapi.App](w.from(ctx, "console", "PATCH", path, `{"name":"Newer"}`).is(200)); got.Name != "Newer" || got.RedirectURIs[0] != "https://new.example/" || got.Scopes[0] != "write:bookings" {
		t.Errorf("%+v", got)
	}
	w.from(ctx, "console", "DELETE", path, "").is(204)
	w.from(ctx, "console", "DELETE", path, "").is(404, "app_not_found")
	w.from(ctx, "console", "PATCH", path, `{"name":"x"}`).is(404, "app_not_found")
	w.from(ctx, "console", "PATCH", apps+"/x", `{"name":"x"}`).is(404, "app_not_found")
	if found := list(ctx); !slices.Equal(found, []string{second.ID}) {
		t.Errorf("%v", found)
	}
	for _, action := range []string{domain.AppCreated, domain.AppUpdated, domain.AppDeleted} {
		if r := w.records(tenant, action)[0]; r.Actor != owner.ID.String() || r.Object != newApp.ID || r.Source != "console:"+caller.FromContext(ctx).RequestID {
			t.Errorf("%s: %+v", action, r)
		}
	}
}

// TestWrongApps checks that each invalid field of an app is named as in the body.
func TestWrongApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	app := func(name, redirect, scope, rest string) string {
		return fmt.Sprintf(`{"name":%q,"redirect_uris":[%q],"scopes":[%q]%s}`, name, redirect, scope, rest)
	}
	const uri, scope = "https://app.example/", "read:units"
	for body, field := range map[string]string{
		app("", uri, scope, ""): "name", app("x", "http://app.example/", scope, ""): "redirect_uris", app("x", uri, "x", ""): "scopes", app("x", uri, "all", ""): "scopes",
		app("x", uri, scope, `,"browser_origins":["x"]`): "browser_origins", app("x", uri, scope, `,"reuse_leeway_seconds":11`): "reuse_leeway_seconds",
		`{"name":"x","redirect_uris":[],"scopes":["read:units"]}`: "redirect_uris", `{"name":"x","redirect_uris":["https://app.example/"]}`: "scopes",
		`{"name":"x","redirect_uris":["https://app.example/"],"scopes":[]}`: "scopes", app("x", uri, scope, `,"id":"x"`): "id",
		app("x", uri, scope, `,"browser_origins":["`+strings.Repeat("x", 70_000)+`"]`): "browser_origins",
	} {
		w.from(ctx, "console", "POST", apps, body, strict).is(422, "invalid_request", field)
	}
	if n := w.Count(`select count(*) from oauth_apps`); n != 0 {
		t.Errorf("%d apps", n)
	}
	for i := range 100 {
		w.from(ctx, "console", "POST", apps, app(fmt.Sprint("x", i), uri, scope, "")).is(201)
	}
	w.from(ctx, "console", "POST", apps, app("x", uri, scope, "")).is(422, "limit_reached", "name")
}
