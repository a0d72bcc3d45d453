package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/internal/domain"
	"holdfast.dev/services/identity/internal/store"
	"holdfast.dev/services/identity/migrations"
)

// manyTenants adds 10,000 tenants, each with a word that no other has and the largest texts.
const manyTenants = `insert into tenants (tenant_id, slug, name, timezone, currency, external_id, metadata, created_at, updated_at)
	select lpad(to_hex(n), 32, '0')::uuid, 'slug-' || n, 'Harbor w' || n || ' ' || repeat('ü', 180), 'UTC', 'EUR',
		'crm-' || n || repeat('x', 180), ('{"k":"' || repeat('v', 500) || '"}')::json, now(), '2026-01-01Z'::timestamptz + (n * 7919 % 10000) * interval '1 second'
	from generate_series(1, 10000) n`

// TestTenantListPlans checks that a page of the list reads few of 10,000 tenants, with each filter and in each order, as the worker role.
func TestTenantListPlans(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	for _, sql := range []string{manyTenants, `analyze tenants`} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var middle ids.Tenant
	if err := conn.QueryRow(t.Context(), `select tenant_id from tenants where slug = 'slug-5000'`).Scan(&middle); err != nil {
		t.Fatal(err)
	}
	at := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	for name, c := range map[string]struct {
		filter store.TenantFilter
		index  string
		rows   int
	}{
		"all":            {store.TenantFilter{}, "tenants_pkey", 26},
		"next page":      {store.TenantFilter{After: store.TenantPosition{ID: middle}}, "tenants_pkey", 26},
		"slug":           {store.TenantFilter{Slug: "slug-7"}, "tenants_slug_key", 1},
		"external id":    {store.TenantFilter{ExternalID: "crm-7" + strings.Repeat("x", 180)}, "tenants_external_id_key", 1},
		"rare word":      {store.TenantFilter{Search: "w4711"}, "tenants_search", 1},
		"rare prefix":    {store.TenantFilter{Search: "harbor w471"}, "tenants_search", 11},
		"common word":    {store.TenantFilter{Search: "HÄRBOR"}, "tenants_pkey", 26},
		"no word":        {store.TenantFilter{Search: "nothing"}, "tenants_search", 0},
		"updated":        {store.TenantFilter{Updated: true}, "tenants_updated_at", 26},
		"updated, next":  {store.TenantFilter{Updated: true, After: store.TenantPosition{At: at(5000), ID: middle}}, "tenants_updated_at", 26},
		"updated after":  {store.TenantFilter{Updated: true, UpdatedAfter: new(at(9990))}, "tenants_updated_at", 10},
		"updated, rare":  {store.TenantFilter{Updated: true, Search: "w4711"}, "tenants_search", 1},
		"after, created": {store.TenantFilter{UpdatedAfter: new(at(9990))}, "tenants_updated_at", 10},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // one database
			var list []domain.Tenant
			var plan *pgtest.Explained
			err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
				plan = pgtest.NewExplained(t, tx)
				list, err = store.TenantPage(ctx, plan, c.filter, 26)
				return err
			})
			if err != nil || len(list) != c.rows {
				t.Fatalf("%d tenants, want %d: %v", len(list), c.rows, err)
			}
			most := float64(60)
			if name == "common word" {
				most += page.RareMatches
			}
			if read := plan.Read("tenants"); !strings.Contains(plan.String(), c.index) || read > most {
				t.Errorf("%v tenants read, want at most %v by %s:\n%s", read, most, c.index, &plan.Plan)
			}
		})
	}
}
