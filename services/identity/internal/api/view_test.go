package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

const savedViews = "/internal/v1/views"

func viewOf(list, name, query string) string {
	return fmt.Sprintf(`{"list":%q,"name":%q,"query":%q}`, list, name, query)
}

// viewNames returns the views of an operator as "list/name?query".
func (w *world) viewNames(ctx context.Context, query string) []string {
	w.T.Helper()
	names := []string{}
	for _, v := range decode[internalapi.ViewList](w.from(ctx, "console", "GET", savedViews+query, "").is(200)).Data {
		names = append(names, v.List+"/"+v.Name+"?"+v.Query)
	}
	return names
}

// TestSavedViews checks that an operator saves, replaces, and deletes their own views of a tenant, which apply to both modes. No
// other operator sees them, and they are not visible at another tenant of the same operator.
func TestSavedViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, _ := w.newTenant()
	dana := w.member(tenant, "dana@example.com", "viewer")
	w.member(other, dana.Email, "viewer")
	ctx, elsewhere := w.as(dana, tenant, caller.Live), w.as(dana, other, caller.Live)
	save := func(ctx context.Context, body string) internalapi.View {
		t.Helper()
		return decode[internalapi.View](w.from(ctx, "console", "POST", savedViews, body).is(201))
	}
	late := save(ctx, viewOf("bookings", "Late", "status=pending"))
	if !strings.HasPrefix(late.ID, "view_") || late.List != "bookings" || late.Name != "Late" || late.Query != "status=pending" {
		t.Errorf("%+v", late)
	}
	save(ctx, viewOf("customers", "Late", ""))
	save(ctx, viewOf("bookings", "All", ""))
	save(elsewhere, viewOf("bookings", "Elsewhere", ""))
	save(w.as(owner, tenant, caller.Live), viewOf("bookings", "The owner's", ""))
	if again := save(w.as(dana, tenant, caller.Test), viewOf("bookings", "Late", "q=%F0%9F%9A%A4")); again.ID != late.ID || again.Query != "q=%F0%9F%9A%A4" {
		t.Errorf("%+v", again)
	}
	for query, want := range map[string][]string{
		"?list=bookings": {"bookings/All?", "bookings/Late?q=%F0%9F%9A%A4"},
		"":               {"bookings/All?", "bookings/Late?q=%F0%9F%9A%A4", "customers/Late?"},
		"?list=nothing":  {},
	} {
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			if got := w.viewNames(w.as(dana, tenant, mode), query); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", query, got, want)
			}
		}
	}
	for _, ctx := range []context.Context{elsewhere, w.as(owner, tenant, caller.Live)} {
		w.from(ctx, "console", "DELETE", savedViews+"/"+late.ID, "").is(404, "view_not_found")
		if got := w.viewNames(ctx, ""); len(got) != 1 {
			t.Errorf("%v", got)
		}
	}
	w.from(ctx, "console", "DELETE", savedViews+"/"+late.ID, "").is(204)
	w.from(ctx, "console", "DELETE", savedViews+"/"+late.ID, "").is(404, "view_not_found")
	w.from(ctx, "console", "DELETE", savedViews+"/x", "").is(404, "view_not_found")
	if got := w.viewNames(ctx, "?list=bookings"); len(got) != 1 {
		t.Errorf("%v", got)
	}
	for body, field := range map[string]string{
		viewOf("", "x", ""): "list", viewOf("Bookings", "x", ""): "list", viewOf("bookings", "", ""): "name", viewOf("bookings", strings.Repeat("é", 101), ""): "name",
		viewOf("bookings", "x", strings.Repeat("x", 2001)): "query", `{"list":"bookings","name":"a\u0000","query":""}`: "name",
	} {
		w.from(ctx, "console", "POST", savedViews, body).is(422, "invalid_request", field)
	}
	w.from(ctx, "console", "POST", savedViews, "{").is(400, "malformed_json")
	save(ctx, viewOf("bookings", strings.Repeat("é", 100), strings.Repeat("é", 2000)))
}

// TestRoomForViews checks that there are at most 50 views of a list and 500 in total, even with parallel requests. Existing views
// can be replaced.
func TestRoomForViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	w.Exec(`insert into saved_views (tenant_id, operator_id, id, list, name, query, created_at)
		select $1, $2, gen_random_uuid(), 'bookings', 'v' || n, '', now() from generate_series(1, 47) n`, tenant.ID, owner.ID)
	var wait sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wait.Go(func() {
			statuses[i] = w.from(ctx, "console", "POST", savedViews, viewOf("bookings", fmt.Sprint("new", i), "")).Status
		})
	}
	wait.Wait()
	slices.Sort(statuses)
	if want := []int{201, 201, 201, 422, 422, 422, 422, 422}; !slices.Equal(statuses, want) {
		t.Errorf("%v", statuses)
	}
	w.from(ctx, "console", "POST", savedViews, viewOf("bookings", "one more", "")).is(422, "limit_reached", "name")
	w.from(ctx, "console", "POST", savedViews, viewOf("bookings", "v1", "new")).is(201)
	w.from(ctx, "console", "POST", savedViews, viewOf("customers", "one", "")).is(201)
	w.Exec(`insert into saved_views (tenant_id, operator_id, id, list, name, query, created_at)
		select $1, $2, gen_random_uuid(), 'l' || n, 'v', '', now() from generate_series(1, 449) n`, tenant.ID, owner.ID)
	w.from(ctx, "console", "POST", savedViews, viewOf("quotes", "one", "")).is(422, "limit_reached", "name")
}

// The views of an operator end with its membership, and with the operator.
func TestViewsEndWithTheMembership(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := domain.Origin{Actor: "cli", Source: "test"}
	tenant, owner := w.newTenant()
	other, _ := w.newTenant()
	erik := w.member(tenant, "erik@example.com", "staff")
	w.member(other, erik.Email, "staff")
	for _, ctx := range []context.Context{w.as(erik, tenant, caller.Live), w.as(erik, other, caller.Test), w.as(owner, tenant, caller.Live)} {
		w.from(ctx, "console", "POST", savedViews, viewOf("bookings", "Late", "q=Ms%20Smith")).is(201)
	}
	held := func() int { return w.Count(`select count(*) from saved_views where operator_id = $1`, erik.ID) }
	if _, err := w.app.RemoveOperator(t.Context(), by, app.MemberRef{Tenant: tenant.ID, Email: erik.Email}); err != nil || held() != 1 {
		t.Errorf("%d views of a member that has left: %v", held(), err)
	}
	if _, err := w.app.SaveView(t.Context(), tenant.ID, erik.ID, domain.SavedView{List: "bookings", Name: "x"}); err == nil || held() != 1 {
		t.Errorf("%v: somebody who has left saved a view", err)
	}
	if _, _, err := w.app.EraseOperator(t.Context(), by, erik.Email); err != nil || held() != 0 {
		t.Errorf("%d views of an erased operator: %v", held(), err)
	}
	if w.Count(`select count(*) from saved_views`) != 1 {
		t.Error("views of others are gone")
	}
}
