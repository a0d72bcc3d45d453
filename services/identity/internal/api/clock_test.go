package api_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"
)

func TestSetTestClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, tenant, _ := w.keyed("test", "all")
	path := "/internal/v1/tenants/" + tenant.ID.String() + "/test-clock"
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	now := func(at time.Time) string { return fmt.Sprintf(`{"now":%q}`, at.Format(time.RFC3339Nano)) }
	for range 2 {
		got := decode[internalapi.Tenant](w.from(ctx, "bookings", "PUT", path, now(at)).is(200))
		if got.Clock == nil || !got.Clock.Equal(at) || got.PolicyVersion != 2 || got.ID != tenant.ID.String() {
			t.Errorf("%+v", got)
		}
	}
	w.from(ctx, "bookings", "PUT", path, now(at.Add(-time.Second))).is(422, "invalid_request", "now")
	for _, bad := range []string{"{}", `{"now":1}`, `{"now":"2030-01-01"}`, `{"now":"2030-01-01T00:00:00"}`} {
		w.from(ctx, "bookings", "PUT", path, bad).is(422, "invalid_request", "now")
	}
	w.from(ctx, "bookings", "PUT", path, "").is(400, "missing_content_type")
	w.from(ctx, "bookings", "PUT", path, "[]").is(400, "malformed_json")
	for _, peer := range []string{"", "gateway", "customers"} {
		w.from(ctx, peer, "PUT", path, now(at)).is(401, "invalid_credential")
	}
	w.from(pg.OtherMode(ctx), "bookings", "PUT", path, now(at)).is(403, "mode_mismatch")
	otherTenant := in(ctx, func(c *caller.Caller) { c.Tenant = ids.New[ids.TenantPrefix]() })
	w.from(otherTenant, "bookings", "PUT", path, now(at)).is(404, "tenant_not_found")
	w.from(ctx, "bookings", "PUT", "/internal/v1/tenants/tn_x/test-clock", now(at)).is(404, "tenant_not_found")
	if got := decode[internalapi.Tenant](w.from(ctx, "bookings", "PUT", path, `{"now":null}`).is(200)); got.Clock != nil || got.PolicyVersion != 3 {
		t.Errorf("%+v", got)
	}
	if events := w.Events(); len(events) != 2 || events[1].GetType() != "tenant.updated" || events[1].GetObjectId() != tenant.ID.String() {
		t.Errorf("events %v", events)
	}
	if got := w.audited(); got != caller.FromContext(ctx).Credential {
		t.Errorf("the audit log names %q", got)
	}
}

// audited returns the actor of the last change.
func (w *world) audited() (actor string) {
	w.T.Helper()
	if err := w.Owner().QueryRow(w.T.Context(), `select actor from audit_log order by seq desc limit 1`).Scan(&actor); err != nil {
		w.T.Fatal(err)
	}
	return actor
}
