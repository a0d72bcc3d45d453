package store_test

import (
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure/erasuretest"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/migrations"
)

// The erasure of a tenant covers every table, and leaves other tenants alone.
func TestErasure(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	erasuretest.Check(t, db, func(tenant ids.Tenant, mode caller.Mode) { pgtest.Insert(t, db, rows, tenant, mode) })
}
