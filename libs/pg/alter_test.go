package pg_test

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

const maxWait = 30 * time.Second

// altered returns the schema of notes with one more migration, which locks the whole table.
func altered() fstest.MapFS {
	files := maps.Clone(notes)
	files["00002_tag.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nalter table notes add column tag text;\n")}
	return files
}

// A migration that waits for a long read, such as a dump, lets all requests pass in the meantime, and completes when the read ends.
func TestNoRequestQueuesBehindAMigration(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	app, err := pg.Open(t.Context(), db.AppURL, pg.Options{LockTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	endRead := pgtest.LongRead(t, db)
	ctx, stop := context.WithCancel(pgtest.Ctx(t, caller.Test))
	var done atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			err := app.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return insert(ctx, tx, i, "a") })
			if err != nil && ctx.Err() == nil {
				t.Errorf("request %d: %v", i, err)
			}
			done.Add(1)
		}
	}()
	migrated := make(chan error, 1)
	go func() { migrated <- pg.Migrate(t.Context(), db.OwnerURL, altered(), pgtest.Roles()) }()
	for range 2 { // it tries, gives up, and tries again
		eventually(t, "the migration requests the table", func() bool { return waits(t, db) })
		eventually(t, "the migration lets requests pass", func() bool { return !waits(t, db) })
		before := done.Load()
		eventually(t, "requests are served", func() bool { return done.Load() > before+10 })
	}
	endRead()
	select {
	case err := <-migrated:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(maxWait):
		t.Error("the migration is not done")
	}
	stop()
	<-ended
	if there := scan(t, db, `select count(*) = 1 from information_schema.columns where table_name = 'notes' and column_name = 'tag'`); !there {
		t.Error("the column is not there")
	}
}

// indexed is an index that is built concurrently, in the form of docs/adding.md.
const indexed = `-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists notes_body;
create index concurrently notes_body on notes (tenant_id, livemode, body);
`

// An attempt that gave up leaves an invalid index, which the next one replaces.
func TestAnIndexBuiltConcurrently(t *testing.T) {
	t.Parallel()
	files := maps.Clone(notes)
	files["00002_grant.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\ngrant create on schema public to current_user;\n")}
	db := pgtest.New(t, files)
	files["00003_index.sql"] = &fstest.MapFile{Data: []byte(indexed)}
	endRead := pgtest.LongRead(t, db)
	migrated := make(chan error, 1)
	go func() { migrated <- pg.Migrate(t.Context(), db.OwnerURL, files, pgtest.Roles()) }()
	gaveUp := `select exists (select from pg_index where indexrelid = to_regclass('notes_body') and not indisvalid)
		and not exists (select from pg_stat_progress_create_index where index_relid = to_regclass('notes_body'))`
	eventually(t, "an attempt gives up", func() bool { return scan(t, db, gaveUp) })
	endRead()
	if err := <-migrated; err != nil {
		t.Error(err)
	}
	if valid := `select indisvalid from pg_index where indexrelid = 'notes_body'::regclass`; !scan(t, db, valid) {
		t.Error("the index is invalid")
	}
}

// A migration that never gets its lock gives up with the reason and changes nothing.
func TestAMigrationGivesUpOnALock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, notes)
	endRead := pgtest.LongRead(t, db)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	tries := 0
	err := pg.Alter(ctx, db.OwnerURL, 3*time.Second, func(ctx context.Context, conn *pgx.Conn) error {
		tries++
		_, err := conn.Exec(ctx, `alter table notes add column tag text`)
		return err
	})
	if pg.Code(err) != "55P03" || !strings.Contains(err.Error(), "run this again") || tries < 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	endRead()
	if err := pg.Migrate(t.Context(), db.OwnerURL, altered(), pgtest.Roles()); err != nil {
		t.Error(err)
	}
}

// waits reports whether a connection waits for a lock on the whole table notes.
func waits(t *testing.T, db *pgtest.DB) bool {
	t.Helper()
	return scan(t, db, `select exists (select from pg_locks where relation = 'notes'::regclass and mode = 'AccessExclusiveLock' and not granted
		and database = (select oid from pg_database where datname = current_database()))`)
}

func scan(t *testing.T, db *pgtest.DB, sql string) (yes bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&yes); err != nil {
		t.Fatal(err)
	}
	return yes
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(maxWait); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
