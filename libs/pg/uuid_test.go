package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

// An id is read as it was written: alone, as NULL and in an array, on a connection of this package and on another.
func TestIDsAreStoredAsUUIDs(t *testing.T) {
	t.Parallel()
	db, ctx := pgtest.New(t, nil), pgtest.Ctx(t, caller.Test)
	type row struct{ A, None, Text, Read, Other ids.Tenant }
	a, b := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	const sql = `select $1::uuid a, $2::uuid "none", $1::uuid::text::uuid "text", ($3::uuid[])[1] "read", ($3::uuid[])[2] other`
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	for name, query := range map[string]func() (pgx.Rows, error){
		"pool":  func() (pgx.Rows, error) { return db.App.Read(ctx).Query(ctx, sql, a, ids.Tenant{}, []ids.Tenant{a, b}) },
		"plain": func() (pgx.Rows, error) { return owner.Query(ctx, sql, a, ids.Tenant{}, []ids.Tenant{a, b}) },
	} {
		rows, err := query()
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
		if err != nil || got != (row{A: a, Text: a, Read: a, Other: b}) {
			t.Errorf("%s: %+v, %v, want %s and %s", name, got, err, a, b)
		}
	}
}
