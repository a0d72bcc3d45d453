package api_test

import (
	"slices"
	"testing"
	"time"

	"holdfast.dev/proto/platformapi"

	"holdfast.dev/services/identity/internal/domain"
)

// The usage of a tenant on the running day is measured for the request, by mode, and is not among the recorded days. If a service does not
// respond, there is none.
func TestPlatformTenantUsageToday(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	tenant := p.old("harbor")
	at := "/tenants/" + tenant.ID + "/usage/today"
	p.metering.Sources["one"] = fixed{domain.Usage{RequestsRead: 1, RequestsWrite: 2, RequestsRejected: 5, RequestsUnauthenticated: 3, Bookings: 6}}
	p.metering.Sources["two"] = fixed{domain.Usage{Events: 7, Deliveries: 8, Payments: []domain.Volume{{Currency: "USD", Charged: 11}}}}
	p.app.Now = func() time.Time { return time.Date(2026, 11, 29, 23, 59, 59, 0, time.UTC) }
	got := read[platformapi.UsageToday](p.call("GET", at, "").is(200))
	if got.Day != "2026-11-29" || len(got.Data) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, mode := range []platformapi.Mode{platformapi.ModeTest, platformapi.ModeLive} {
		u := got.Data[i]
		if u.Mode != mode || u.TenantID != tenant.ID || u.Day != got.Day || u.RequestsRead != 1 || u.RequestsWrite != 2 || u.RequestsRejected != 5 || u.RequestsUnauthenticated != 3 ||
			u.Bookings != 6 || u.Events != 7 || u.Deliveries != 8 || !u.StoredRows.IsNull() || !u.StoredBytes.IsNull() || !slices.Equal(u.Payments, []platformapi.PaymentVolume{{Currency: "USD", Charged: 11}}) {
			t.Errorf("%+v", u)
		}
	}
	if live := read[platformapi.UsageToday](p.call("GET", at+"?mode=live", "").is(200)); len(live.Data) != 1 || live.Data[0].Mode != platformapi.ModeLive {
		t.Errorf("live %+v", live)
	}
	if days := read[platformapi.UsageList](p.call("GET", "/tenants/"+tenant.ID+"/usage?from=2026-11-29&to=2026-11-29", "").is(200)); len(days.Data) != 0 {
		t.Errorf("recorded %+v", days)
	}
	p.call("GET", at+"?mode=both", "").is(422, "invalid_request", "mode")
	p.call("GET", "/tenants/tn_00000000000000000000000000/usage/today", "").is(404, "tenant_not_found")
	p.metering.Sources["three"] = gone{}
	p.call("GET", at, "").is(503, "unavailable")
	p.owned(`update tenants set status = 'erasing'`)
	p.call("GET", at, "").is(404, "usage_not_recorded")
	p.key = p.newKey("read:tenants")
	p.call("GET", at, "").is(403, "insufficient_scope")
}
