package pgtest

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/pg"
)

// Roles returns the roles in every test's database.
func Roles() pg.Roles { return pg.Roles{App: appRole, Worker: workerRole} }

// LongRead behaves like a dump: one transaction takes a snapshot and reads every table, until end is called or the test
// ends.
func LongRead(t testing.TB, db *DB) (end func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	must(t, conn, `begin isolation level repeatable read`)
	must(t, conn, `do $$ declare t regclass; begin
		for t in select oid from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') loop
			execute format('lock table %s in access share mode', t);
		end loop;
	end $$`)
	end = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	t.Cleanup(end)
	return end
}
