package api_test

import (
	"strings"
	"testing"

	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

// After the erasure of a tenant, no column of the database contains a value that the platform API stored about it: no name, no address, no external
// id, no metadata, and no sealed response, in which the address of an owner and their link cannot be found by their text. Its usage remains, and another
// tenant keeps its responses.
func TestPlatformErasureLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.app.ClosingPeriod = 0
	values := map[string]string{
		"slug": "quillharbor", "tenant": "Quillmoor Charters", "owner's address": "quilla.owner@example.com", "owner's name": "Quilla Brandt",
		"reason": "Quillmoor has left", "key": "Quilltill", "app": "Quillsync",
		"external id": "quillcrm-4711", "metadata": "quilla.contact@example.com",
	}
	post := func(path, body string) string {
		t.Helper()
		return p.call("POST", path, body, "Idempotency-Key", "about "+path).Body.String()
	}
	created := read[platformapi.Tenant](p.call("POST", "/tenants", `{"slug":"quillharbor","name":"Quillmoor Charters","timezone":"UTC","currency":"EUR",
		"external_id":"quillcrm-4711","metadata":{"contact":"quilla.contact@example.com"}}`, "Idempotency-Key", "c").is(201))
	neighbor := read[platformapi.Tenant](p.call("POST", "/tenants", newTenant, "Idempotency-Key", "k").is(201))
	tenant, err := ids.Parse[ids.TenantPrefix](created.ID)
	if err != nil {
		t.Fatal(err)
	}
	at := "/tenants/" + created.ID
	post(at+"/owners", `{"email":"quilla.owner@example.com","name":"Quilla Brandt"}`)
	p.call("PUT", at+"/limits", `{"requests_per_minute":9000}`, "Idempotency-Key", "l").is(200)
	k, _, err := p.app.CreateKey(t.Context(), platformTeam, app.NewKey{Tenant: tenant, Mode: "live", Name: "Quilltill", Scopes: "all"})
	if err != nil {
		t.Fatal(err)
	}
	post(at+"/api-keys/"+k.ID.String()+"/revoke", "")
	till, err := p.app.CreateApp(t.Context(), platformTeam, tenant, app.Registration{
		Name: patch.Value("Quillsync"), RedirectURIs: patch.Value([]string{"https://quill.example.com/back"}), Scopes: patch.Value("read:customers"),
	})
	if err != nil {
		t.Fatal(err)
	}
	post("/apps/"+till.ID.String()+"/verify", "")
	if _, err := p.Owner().Exec(t.Context(), `insert into usage_days (tenant_id, livemode, day, requests_read, requests_write, requests_export, requests_stream, requests_rejected,
		bookings, events, deliveries, payments, measured_at) values ($1, true, '2026-11-02', 7, 0, 0, 0, 0, 0, 0, 0, '[]', now())`, tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Owner().Exec(t.Context(), `insert into usage_collections (day, completed_at) values ('2026-11-02', now())`); err != nil {
		t.Fatal(err)
	}
	post(at+"/close", `{"reason":"Quillmoor has left"}`)
	for what, value := range values {
		if found := pgtest.Find(t, p.Owner(), value); len(found) == 0 {
			t.Errorf("the test writes no %s", what)
		}
	}
	erasures := &app.Erasures{
		App: p.app, Own: &erasure.Eraser{Worker: p.DB.Worker}, Platform: domain.PlatformTenant, Services: map[string]app.ErasureService{"one": other{}},
	}
	if err := erasures.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, value := range values {
		if found := pgtest.Find(t, p.Owner(), value); len(found) != 0 {
			t.Errorf("%s %q is left in %q", what, value, found)
		}
	}
	var left []string
	if err := p.Owner().QueryRow(t.Context(), `select array_agg(key order by key) from idempotency_keys`).Scan(&left); err != nil || strings.Join(left, ",") != "k" {
		t.Errorf("stored responses of %q, %v", left, err)
	}
	usage := read[platformapi.UsageList](p.call("GET", at+"/usage?from=2026-11-01&to=2026-11-30", "").is(200))
	if len(usage.Data) != 1 || usage.Data[0].RequestsRead != 7 {
		t.Errorf("usage of the erased tenant %+v", usage)
	}
	if list := read[platformapi.UsagePage](p.call("GET", "/usage?day=2026-11-02", "").is(200)); len(list.Data) != 1 {
		t.Errorf("usage of the day %+v", list)
	}
	p.call("PATCH", "/tenants/"+neighbor.ID, `{"external_id":"quillcrm-4711"}`).is(200) // the external id is free
	p.call("GET", "/tenants/tn_00000000000000000000000000/usage?from=2026-11-01&to=2026-11-30", "").is(404, "tenant_not_found")
}
