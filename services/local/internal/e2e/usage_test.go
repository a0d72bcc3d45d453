package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/ids"
)

// platformTenant is the object of events that belong to no tenant.
var platformTenant = ids.FromUUID[ids.TenantPrefix]([16]byte{15: 1}).String()

// number returns the value of an integer column.
func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// usageRow is a row of bin/identity usage.
type usageRow struct {
	TenantID         string `json:"tenant_id"`
	Mode             string `json:"mode"`
	RequestsRead     int    `json:"requests_read"`
	RequestsWrite    int    `json:"requests_write"`
	RequestsExport   int    `json:"requests_export"`
	RequestsRejected int    `json:"requests_rejected"`
	Unauthenticated  int    `json:"requests_unauthenticated"`
	Bookings         int    `json:"bookings"`
	Events           int    `json:"events"`
	StoredRows       int    `json:"stored_rows"`
	StoredBytes      int    `json:"stored_bytes"`
}

// TestUsageDespiteKills checks that the recorded usage of a day equals the databases although the services are killed during the load
// and during the recording, that each request is counted once, and that one event is emitted. The rows of today are moved to yesterday,
// because a day is recorded after its end.
func TestUsageDespiteKills(t *testing.T) {
	onMachine(t)
	a := shared.newAccount(t)
	logs, identity := shared.database(t, "logs"), shared.database(t, "identity")
	sent := usageRow{}
	load := func() {
		for i := range 12 {
			if i%4 == 2 { // at once after a response
				killed := shared.pid("gateway")
				shared.kill(t, "gateway")
				await(t, "another gateway responds", func() bool {
					res, err := httpClient.Get(strings.TrimSuffix(a.base, "/api/v1") + "/healthz")
					if err == nil {
						_ = res.Body.Close()
					}
					return err == nil && !slices.Contains([]int{0, killed}, shared.pid("gateway"))
				})
			}
			got := a.do(t, http.MethodPost, "/customers", `{"first_name":"U","email":"u@example.com"}`, unique("usage"))
			if got.Status != http.StatusCreated {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			sent.RequestsWrite++
			if i%3 == 0 {
				a.do(t, http.MethodGet, "/customers?limit=1", "", "")
				sent.RequestsRead++
			}
		}
	}
	load()
	shared.kill(t, "logs")
	load()
	shared.kill(t, "logs")
	a.do(t, http.MethodGet, "/tenant", "", "")
	sent.RequestsRead++
	tenant := a.uuid(t)
	await(t, "all requests are counted", func() bool {
		return number(t, logs, `select coalesce(sum(requests), 0)::int from request_counts where tenant_id = $1`, tenant) >= sent.RequestsRead+sent.RequestsWrite
	})
	yesterday := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	webhooks := shared.database(t, "webhooks")
	await(t, "the events are recorded", func() bool {
		return number(t, webhooks, `select count(*)::int from events where tenant_id = $1`, tenant) == sent.RequestsWrite
	})
	execute(t, logs, `update request_counts set day = $2 where tenant_id = $1`, tenant, yesterday)
	execute(t, webhooks, `update events set updated_at = updated_at - interval '1 day' where tenant_id = $1`, tenant)
	execute(t, identity, `update tenants set created_at = created_at - interval '1 day' where tenant_id = $1`, tenant)
	execute(t, identity, `delete from usage_collections`)
	execute(t, identity, `delete from usage_days`)
	execute(t, identity, `insert into usage_collections (day) values ($1)`, yesterday)
	for _, service := range []string{"identity", "webhooks", "identity", "logs"} {
		shared.kill(t, service)
	}
	await(t, "the day is recorded", func() bool {
		execute(t, identity, `update usage_collections set leased_until = null where completed_at is null`) // do not wait for the lease of a killed process
		return number(t, identity, `select count(*)::int from usage_collections where day = $1 and completed_at is not null`, yesterday) == 1
	})
	await(t, "the event is published", func() bool { return ofType(shared.events(t, "identity")[platformTenant], "usage.recorded") > 0 })
	if n := ofType(shared.events(t, "identity")[platformTenant], "usage.recorded"); n != 1 {
		t.Errorf("%d events", n)
	}
	var list []usageRow
	shared.identity(t, &list, "usage", "--day", yesterday.Format(time.DateOnly), "--json")
	found := 0
	for _, row := range list {
		if row.TenantID != a.id {
			continue
		}
		found++
		want := usageRow{TenantID: a.id, Mode: row.Mode, StoredRows: row.StoredRows, StoredBytes: row.StoredBytes}
		if row.Mode == "test" {
			want.RequestsRead, want.RequestsWrite, want.Events = sent.RequestsRead, sent.RequestsWrite, sent.RequestsWrite
		}
		if row != want || (row.StoredRows == 0) != (row.StoredBytes == 0) || row.Mode == "test" && row.StoredRows < 2*sent.RequestsWrite {
			t.Errorf("%+v, want %+v", row, want)
		}
	}
	if total := number(t, identity, `select 2 * count(*)::int from tenants where created_at < $1`, yesterday.AddDate(0, 0, 1)); found != 2 || len(list) != total {
		t.Errorf("%d rows of the tenant, %d in total, want %d", found, len(list), total)
	}
}
