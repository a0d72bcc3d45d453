package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/store"
)

// referred is the table that a column without a foreign key refers to.
var referred = map[string]string{
	"bookings.customer_id": "customers", "bookings.service_id": "services", "bookings.unit_id": "units", "bookings.package_id": "packages",
	"unit_claims.unit_id": "units", "unit_claims.booking_id": "bookings",
}

func TestDanglingReferencesAreFound(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	check := func() []store.Dangling {
		t.Helper()
		found, err := store.FindDangling(t.Context(), db.OwnerURL)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := check(); len(found) != 0 {
		t.Fatalf("found %+v", found)
	}
	for column, table := range referred {
		from, name, _ := strings.Cut(column, ".")
		_, err := conn.Exec(t.Context(), fmt.Sprintf(`delete from %s where id = (select %s from %s where %s is not null limit 1)`, table, name, from, name))
		if pg.Code(err) != "23503" {
			t.Errorf("delete a row to which %s refers: %v", column, err)
		}
		err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `delete from `+table)
			return err
		})
		if pg.Code(err) != "42501" {
			t.Errorf("a serving process deletes %s: %v, want denied", table, err)
		}
	}
	for column := range referred {
		table, name, _ := strings.Cut(column, ".")
		var id string
		err := conn.QueryRow(t.Context(), fmt.Sprintf(`
			update %[1]s set %[2]s = gen_random_uuid() where ctid = (select ctid from %[1]s where %[2]s is not null limit 1) returning %[3]s`,
			table, name, map[bool]string{true: "booking_id", false: "id"}[table == "unit_claims"])).Scan(&id)
		if err != nil {
			t.Fatal(err)
		}
		found := check()
		if !slices.Contains(found, store.Dangling{Column: column, Rows: 1, Example: id}) {
			t.Errorf("%s: found %+v, not %s", column, found, id)
		}
	}
}
