package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/internalapi"
)

// Tables that stay locked, and statements that take too long, are 503 here too.
func TestOverload(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c, tenant, _ := d.keyed("test", "all")
	conn, err := pgx.Connect(t.Context(), d.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table tenants, api_keys in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	const short = 50 * time.Millisecond
	for name, opt := range map[string]pg.Options{
		"lock":      {LockTimeout: short, StatementTimeout: time.Minute},
		"statement": {LockTimeout: time.Minute, StatementTimeout: short},
	} {
		impatient, err := pg.Open(t.Context(), d.db.AppURL, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(impatient.Close)
		db := *d.db
		db.App = impatient
		slow := doorOn(t, &db)
		for _, r := range []struct {
			peer, method, path string
			from               caller.Caller
			body               any
		}{
			{"gateway", http.MethodGet, "/api/v1/me", c, nil},
			{"gateway", http.MethodGet, "/api/v1/tenant", c, nil},
			{"gateway", http.MethodPost, "/internal/v1/credentials/lookup", caller.Service("gateway", ids.Tenant{}, ""), internalapi.Lookup{Hash: strings.Repeat("ab", 32)}},
			{"bookings", http.MethodGet, "/internal/v1/tenants/" + tenant.ID.String(), caller.Service("bookings", tenant.ID, caller.Test), nil},
			{"bookings", http.MethodPut, "/internal/v1/tenants/" + tenant.ID.String() + "/test-clock", caller.Service("bookings", tenant.ID, caller.Test), `{"now":"2030-01-01T00:00:00Z"}`},
		} {
			res, raw := slow.call(r.peer, r.from, r.method, r.path, r.body)
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				t.Errorf("%s, %s: %d %s", name, r.path, res.StatusCode, raw)
			}
		}
	}
}
