package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/proto/internalapi"
)

func TestSetTestClock(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c, tenant, _ := d.keyed("test", "all")
	path := "/internal/v1/tenants/" + tenant.ID.String() + "/test-clock"
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	body := internalapi.TestClockSet{Now: &at}
	for range 2 {
		got := want[internalapi.Tenant](d, 200, "bookings", c, "PUT", path, body)
		if got.Clock == nil || !got.Clock.Equal(at) || got.PolicyVersion != 2 || got.ID != tenant.ID.String() {
			t.Errorf("%+v", got)
		}
	}
	back := want[failure](d, 422, "bookings", c, "PUT", path, internalapi.TestClockSet{Now: new(at.Add(-time.Second))})
	if back.Error.Code != "invalid_request" || back.Error.Param != "now" {
		t.Errorf("%+v", back)
	}
	for _, bad := range []string{"", "x", "{}", `{"now":1}`, `{"now":"2030-01-01"}`, `{"now":"2030-01-01T00:00:00"}`, `[]`} {
		d.fails(422, "invalid_request", "bookings", c, "PUT", path, bad)
	}
	for _, peer := range []string{"", "gateway", "customers"} {
		d.fails(401, "invalid_credential", peer, c, "PUT", path, body)
	}
	live, stranger := c, c
	live.Mode, stranger.Tenant = caller.Live, ids.New[ids.TenantPrefix]()
	d.fails(403, "mode_mismatch", "bookings", live, "PUT", path, body)
	d.fails(404, "tenant_not_found", "bookings", stranger, "PUT", path, body)
	d.fails(404, "tenant_not_found", "bookings", c, "PUT", "/internal/v1/tenants/tn_x/test-clock", body)
	if got := want[internalapi.Tenant](d, 200, "bookings", c, "PUT", path, `{"now":null}`); got.Clock != nil || got.PolicyVersion != 3 {
		t.Errorf("%+v", got)
	}
	if got := d.audited(); got != c.Credential {
		t.Errorf("the audit log names %q", got)
	}
}

// audited is who made the last change.
func (d *door) audited() (actor string) {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.db.OwnerURL)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(d.t.Context(), `select actor from audit_log order by seq desc limit 1`).Scan(&actor); err != nil {
		d.t.Fatal(err)
	}
	return actor
}
