package pg_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/secret"
)

func connectOwner(t *testing.T, db *pgtest.DB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The owner sees all rows without an attribute of its role.
func TestOwnerSeesAllRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	for _, mode := range []caller.Mode{caller.Live, caller.Test} {
		if err := db.App.Tx(pgtest.Ctx(t, mode), func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, 1, "x") }); err != nil {
			t.Fatal(err)
		}
	}
	conn := connectOwner(t, db)
	var attributes bool
	var rows int
	err := conn.QueryRow(t.Context(), `select (select rolsuper or rolbypassrls or rolcreaterole from pg_roles where rolname = current_user), count(*) from notes`).Scan(&attributes, &rows)
	if err != nil || attributes || rows != 2 {
		t.Errorf("the owner with attributes %v sees %d rows of 2: %v", attributes, rows, err)
	}
}

// Without the owner's policy, nothing continues that relies on it: the checks of the owner's commands, a service that starts, and an
// erasure. migrate adds a missing policy, and fails on a policy that restricts the owner.
func TestHiddenRowsAreAnError(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	conn := connectOwner(t, db)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	roles := pg.Roles{App: roleOf(t, db.AppURL), Worker: roleOf(t, db.WorkerURL)}
	start := func(url string) error {
		_, err := pg.OpenManaged(t.Context(), &process{}, "postgres", secret.New(url), pg.Options{MaxConns: 1})
		return err
	}
	broken := func() {
		t.Helper()
		for name, err := range map[string]error{
			"check": pg.CheckOwner(t.Context(), conn), "app": start(db.AppURL), "worker": start(db.WorkerURL),
		} {
			if !errors.Is(err, pg.ErrHidden) || !strings.Contains(err.Error(), "notes") {
				t.Errorf("%s: %v", name, err)
			}
		}
		err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `with mark as (insert into tenant_erasures (tenant_id) values (gen_random_uuid()) returning tenant_id) select 1 from mark`)
			if err == nil {
				_, err = tx.Exec(ctx, `select erase_tenant(tenant_id, 10) from tenant_erasures`)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "notes") {
			t.Errorf("an erasure: %v", err)
		}
	}
	exec(`drop policy owner on notes`)
	broken()
	if err := pg.Migrate(t.Context(), db.OwnerURL, notes, roles); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"check": pg.CheckOwner(t.Context(), conn), "app": start(db.AppURL)} {
		if err != nil {
			t.Errorf("%s after migrate: %v", name, err)
		}
	}
	exec(`create policy half on notes as restrictive using (livemode)`)
	broken()
	if err := pg.Migrate(t.Context(), db.OwnerURL, notes, roles); !errors.Is(err, pg.ErrHidden) {
		t.Errorf("migrate: %v", err)
	}
}

// A command of the owner fails in the URL of another role.
func TestCheckOwnerInAnotherRole(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t, notes).WorkerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := pg.CheckOwner(t.Context(), conn); !errors.Is(err, pg.ErrHidden) {
		t.Errorf("as the worker: %v", err)
	}
}

// A new table needs no policy of its own migration, even if it does not call protect. The same applies to a partition under row-level
// security.
func TestMigrateAddsTheOwnersPolicy(t *testing.T) {
	t.Parallel()
	conn := connectOwner(t, pgtest.New(t, fstest.MapFS{"00001_parts.sql": {Data: []byte(`-- +goose Up
create table parts (id integer not null) partition by range (id);
create table parts_1 partition of parts for values from (0) to (9);
alter table parts enable row level security;
alter table parts force row level security;
alter table parts_1 enable row level security;
alter table parts_1 force row level security;
`)}}))
	for _, table := range []string{"parts", "parts_1"} {
		var rows int
		err := conn.QueryRow(t.Context(), `with added as (insert into parts values (1) returning id) select count(*) from added`).Scan(&rows)
		if err == nil {
			err = conn.QueryRow(t.Context(), `select count(*) from `+table).Scan(&rows)
		}
		if err != nil || rows == 0 {
			t.Errorf("%s: %d rows, %v", table, rows, err)
		}
	}
}

// A pool refuses a standby with an error that names the cause, unless the URL selects the server that accepts writes.
func TestStandbyIsRefused(t *testing.T) {
	pair := pgtest.StartPair(t, true)
	t.Setenv("TEST_POSTGRES_URL", pair.URL)
	db := pgtest.New(t, nil)
	u, err := url.Parse(db.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	_, port, _ := strings.Cut(q.Get("port"), ",")
	u.RawQuery = url.Values{"host": {"127.0.0.1"}, "port": {port}, "sslmode": {"disable"}}.Encode()
	replayed(t, u.String())
	for name, opt := range map[string]pg.Options{"direct": {MaxConns: 1}, "as behind a pooler": {MaxConns: 1, Pooler: true}} {
		_, err := pg.OpenManaged(t.Context(), &process{}, "postgres", secret.New(u.String()), opt)
		if err == nil || !strings.Contains(err.Error(), "reader endpoint") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pg.OpenManaged(t.Context(), &process{}, "postgres", secret.New(db.AppURL), pg.Options{MaxConns: 1}); err != nil {
		t.Errorf("both servers: %v", err)
	}
}

// replayed returns when the standby has the database.
func replayed(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_ = conn.Close(t.Context())
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
