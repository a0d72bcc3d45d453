package store_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/webhooks/internal/domain"
	"holdfast.dev/services/webhooks/internal/store"
	"holdfast.dev/services/webhooks/migrations"
)

const maxWait = 30 * time.Second

// While a dump reads all tables, partitions are created and detached, and no intake or reader waits for that. After the dump, the
// next call completes an interrupted detachment.
func TestPartitionsBlockNoStatement(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t, migrations.FS), time.Now()
	app, worker := withLockTimeout(t, db.AppURL), withLockTimeout(t, db.WorkerURL)
	ensure := func(from, until time.Time) {
		t.Helper()
		err := worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error { return store.EnsurePartitions(ctx, tx, from, until) })
		if err != nil {
			t.Fatal(err)
		}
	}
	const day = 24 * time.Hour
	ensure(now.Add(-60*day), now)
	past := names(t, db, `not inhdetachpending and to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') < date_trunc('week', now() - interval '30 days')`)
	if len(past) < 6 {
		t.Fatalf("past weeks: %v", past)
	}
	endRead := pgtest.LongRead(t, db)
	progress := load(t, app, worker)
	drop := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := store.DropPartitions(ctx, db.OwnerURL, now.Add(-domain.Retention), maxWait)
			done <- err
		}()
		return done
	}
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	cut := drop(first)
	eventually(t, "a week is being detached", func() bool { return len(names(t, db, `inhdetachpending`)) == 1 })
	progress(t)
	ensure(now.Add(-30*day), now.Add(28*day))
	progress(t)
	cancel()
	if err := <-cut; err == nil {
		t.Error("a week was dropped while it was read")
	}
	again := drop(t.Context())
	progress(t)
	endRead()
	if err := <-again; err != nil {
		t.Error(err)
	}
	if left := names(t, db, `true`); slices.ContainsFunc(past, func(p string) bool { return slices.Contains(left, p) }) {
		t.Errorf("past weeks are left: %v", left)
	}
	if n := tables(t, db); n != len(names(t, db, `true`)) {
		t.Errorf("%d tables of partitions", n)
	}
	progress(t)
}

// The server may still process an interrupted call when the next one arrives. The next call waits for the end of the other's
// session.
func TestPartitionsAreDroppedByOneCallAtATime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	other, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select pg_advisory_lock(hashtext('drop_partitions'))`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := store.DropPartitions(t.Context(), db.OwnerURL, time.Now().Add(-domain.Retention), maxWait)
		done <- err
	}()
	eventually(t, "the call waits", func() bool {
		var waits bool
		if err := other.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// withLockTimeout opens a pool whose statements do not wait long for a lock.
func withLockTimeout(t *testing.T, url string) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), url, pg.Options{LockTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// load writes events and reads them until the test ends. The returned function waits until more events were written and read.
func load(t *testing.T, app, worker *pg.DB) (progress func(t *testing.T)) {
	t.Helper()
	ctx := context.WithoutCancel(pgtest.Ctx(t, caller.Test)) // the test stops it
	var count atomic.Int64
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			e := domain.Event{ID: ids.New[ids.EventPrefix](), Tenant: caller.FromContext(ctx).Tenant, Type: "booking.created", ObjectID: "bk_1"}
			err := worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) error {
				_, err := (&store.Queue{Wake: func() {}}).AddEvents(ctx, tx, []store.Intake{{Event: e, Body: []byte(`{}`)}}, time.Now())
				return err
			})
			if err == nil {
				_, err = store.Event(ctx, app.Read(ctx), e.ID, time.Now())
			}
			if err != nil {
				t.Errorf("after %d: %v", count.Load(), err)
				return
			}
			count.Add(1)
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return func(t *testing.T) {
		t.Helper()
		before := count.Load()
		eventually(t, "events are written and read", func() bool { return t.Failed() || count.Load() > before+10 })
	}
}

// names returns the partitions for which a condition is true.
func names(t *testing.T, db *pgtest.DB, where string) []string {
	t.Helper()
	return query[string](t, db, `select inhrelid::regclass::text from pg_inherits
		where inhparent in ('events'::regclass, 'deliveries'::regclass) and `+where)
}

func tables(t *testing.T, db *pgtest.DB) int {
	t.Helper()
	return query[int](t, db, `select count(*)::int from pg_class where relkind = 'r' and relname ~ '^(events|deliveries)_[0-9]+$'`)[0]
}

func query[T any](t *testing.T, db *pgtest.DB, sql string) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(strings.TrimSpace(sql), err)
	}
	return list
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(maxWait); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
