package store_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure/erasuretest"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/identity/migrations"
)

// linked is a row of operator_links, which need not have a tenant.
const linked = `insert into operator_links (hash, operator_id, purpose, expires_at, tenant_id)
	select sha256(gen_random_uuid()::text::bytea), '00000000-0000-7000-8000-000000000002', 'invite', now(), $1 where $2::boolean is not null`

// The erasure of a tenant covers every table, and leaves other tenants alone.
func TestErasure(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn := owner(t, db)
	if _, err := conn.Exec(t.Context(), granting, ids.New[ids.TenantPrefix]()); err != nil {
		t.Fatal(err)
	}
	erasuretest.Check(t, db, func(tenant ids.Tenant, mode caller.Mode) {
		for _, name := range order {
			if _, err := conn.Exec(t.Context(), fixtures[name].insert, tenant, mode == caller.Live); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if _, err := conn.Exec(t.Context(), linked, tenant, mode == caller.Live); err != nil {
			t.Fatal(err)
		}
	}, "usage_days")
}
