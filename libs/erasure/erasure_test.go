package erasure_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/erasure"
	"holdfast.dev/libs/erasure/erasuretest"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	eventsv1 "holdfast.dev/proto/events/v1"
)

// migrations have a table that another one references, with a trigger instead of a foreign key, as bookings has, and one that only
// grows.
var migrations = fstest.MapFS{"00001_notes.sql": {Data: []byte(`-- +goose Up
create table a_parents (
    tenant_id uuid not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        integer not null,
    primary key (tenant_id, livemode, id)
);
create table b_children (
    tenant_id uuid not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
    livemode  boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
    id        integer not null,
    primary key (tenant_id, livemode, id),
    foreign key (tenant_id, livemode, id) references a_parents
);
select protect(t) from unnest(array['a_parents', 'b_children']::regclass[]) t;
-- +goose StatementBegin
create function keep() returns trigger language plpgsql as $$
begin
    if exists (select from b_children c where c.tenant_id = old.tenant_id and c.livemode = old.livemode and c.id = old.id) then
        raise foreign_key_violation;
    end if;
    return old;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create function only_grows() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and is_erasing(tg_relid) then
        return null;
    end if;
    raise exception 'append only' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
alter table b_children drop constraint b_children_tenant_id_livemode_id_fkey;
create trigger keep before delete on a_parents for each row execute function keep();
create trigger only_grows before update or delete or truncate on b_children for each statement execute function only_grows();
-- +goose Down
drop table b_children, a_parents;
drop function keep, only_grows;
`)}}

var rows = []pgtest.Row{{"a_parents", "id", "1"}, {"b_children", "id", "1"}}

func open(t *testing.T) (*pgtest.DB, *pgx.Conn) {
	t.Helper()
	db := pgtest.New(t, migrations)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return db, conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, conn *pgx.Conn, table string, tenant ids.Tenant) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `select count(*) from `+table+` where tenant_id = $1`, tenant.UUID()).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func finish(t *testing.T, e *erasure.Eraser, tenant ids.Tenant) erasure.Progress {
	t.Helper()
	for range 20 {
		p, err := e.Step(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		if p.Erased {
			return p
		}
	}
	t.Fatal("the erasure does not end")
	return erasure.Progress{}
}

func TestErasure(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	erasuretest.Check(t, db, func(tenant ids.Tenant, mode caller.Mode) { pgtest.Insert(t, db, rows, tenant, mode) })
}

// Many rows are deleted in several transactions, by several processes, and each is counted once.
func TestManyRows(t *testing.T) {
	t.Parallel()
	db, conn := open(t)
	tenant := ids.New[ids.TenantPrefix]()
	const many = 9000
	for _, table := range []string{"a_parents", "b_children"} {
		execute(t, conn, `insert into `+table+` (tenant_id, livemode, id) select $1, true, n from generate_series(1, $2) n`, tenant.UUID(), many)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			e := &erasure.Eraser{Worker: db.Worker}
			for range 20 {
				if p, err := e.Step(t.Context(), tenant); err != nil || p.Erased {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	all.Wait()
	if p := finish(t, &erasure.Eraser{Worker: db.Worker}, tenant); p.Deleted != 2*many || count(t, conn, "a_parents", tenant)+count(t, conn, "b_children", tenant) != 0 {
		t.Errorf("%+v", p)
	}
}

// A transaction that began before the mark can still write. The erasure is not confirmed before it has ended, and then its rows are
// deleted too.
func TestTransactionsInProgress(t *testing.T) {
	t.Parallel()
	db, conn := open(t)
	tenant, e := ids.New[ids.TenantPrefix](), &erasure.Eraser{Worker: db.Worker}
	began, resume, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.App.Tx(pgtest.CtxOf(t, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
			if _, err := tx.Exec(ctx, `insert into a_parents (id) values (1)`); err != nil {
				return err
			}
			close(began)
			<-resume
			_, err := tx.Exec(ctx, `insert into a_parents (id) values (2)`)
			return err
		})
	}()
	<-began
	if p, err := e.Step(t.Context(), tenant); err != nil || p.Erased {
		t.Fatalf("%+v, %v while a transaction runs", p, err)
	}
	close(resume)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if p := finish(t, e, tenant); p.Deleted != 2 || count(t, conn, "a_parents", tenant) != 0 {
		t.Errorf("%+v", p)
	}
}

// Only erase_tenant deletes from a table that only grows, and only rows of a tenant with a mark.
func TestTheOnlyWay(t *testing.T) {
	t.Parallel()
	db, conn := open(t)
	tenant := ids.New[ids.TenantPrefix]()
	pgtest.Insert(t, db, rows, tenant, caller.Live)
	for _, sql := range []string{`delete from b_children`, `update b_children set id = 2`, `truncate b_children`} {
		if _, err := conn.Exec(t.Context(), sql); pg.Code(err) != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	err := db.App.Tx(pgtest.CtxOf(t, tenant, caller.Live), func(ctx context.Context, tx pg.Tx) error {
		_, err := tx.Exec(ctx, `select set_config('app.erasing', 'on', true)`)
		if err == nil {
			_, err = tx.Exec(ctx, `delete from b_children`)
		}
		return err
	})
	if pg.Code(err) != "42501" {
		t.Errorf("the app deletes: %v", err)
	}
	for _, role := range []*pg.DB{db.App, db.Worker} {
		err := role.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			_, err := tx.Exec(ctx, `select erase_tenant($1, 10)`, tenant)
			return err
		})
		if err == nil {
			t.Error("rows of a tenant without a mark are deleted")
		}
	}
	if count(t, conn, "b_children", tenant) != 1 {
		t.Error("the row is gone")
	}
}

// Consumers drop the events of erased tenants, and a batch that was read before the mark leaves nothing for long.
func TestLateEvents(t *testing.T) {
	t.Parallel()
	db, conn := open(t)
	gone, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	e, marks := &erasure.Eraser{Worker: db.Worker}, &erasure.Marks{Worker: db.Worker}
	finish(t, e, gone)
	event := func(tenant ids.Tenant) kafkax.Message {
		raw, err := proto.Marshal(&eventsv1.Event{Id: ids.New[ids.EventPrefix]().String(), TenantId: tenant.String()})
		if err != nil {
			t.Fatal(err)
		}
		return kafkax.Message{Value: raw}
	}
	another, unreadable := event(other), kafkax.Message{Value: []byte("nonsense")}
	list, err := marks.Filter(t.Context(), []kafkax.Message{event(gone), another, unreadable, event(gone)})
	if err != nil || len(list) != 2 || string(list[0].Value) != string(another.Value) || string(list[1].Value) != "nonsense" {
		t.Errorf("%d messages, %v", len(list), err)
	}
	execute(t, conn, `grant insert on inbox to holdfast_test_worker`)
	events := []inbox.Event{{Tenant: gone, ID: ids.New[ids.EventPrefix]()}, {Tenant: other, ID: ids.New[ids.EventPrefix]()}}
	err = db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		fresh, err := inbox.OnceEach(ctx, tx, "tests", events)
		if len(fresh) != 1 || !fresh[events[1]] {
			t.Errorf("new events %v", fresh)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	execute(t, conn, `insert into a_parents (tenant_id, livemode, id) values ($1, true, 1), ($2, true, 1)`, gone.UUID(), other.UUID())
	if err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count(t, conn, "a_parents", gone) != 0 || count(t, conn, "a_parents", other) != 1 {
		t.Error("rows that came back are left, or others are gone")
	}
	later := ids.New[ids.TenantPrefix]()
	finish(t, e, later)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		erased, err := marks.Erased(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("a new mark is not seen: %v", err)
		}
		if erased[later] && erased[gone] && !erased[other] {
			return
		}
	}
}

// What a service waits for is passed on.
func TestReady(t *testing.T) {
	t.Parallel()
	tenant, failure := ids.New[ids.TenantPrefix](), errors.New("no answer")
	if wait, err := (&erasure.Eraser{}).Ready(t.Context(), tenant); wait != "" || err != nil {
		t.Errorf("%q, %v", wait, err)
	}
	e := &erasure.Eraser{Prepare: func(_ context.Context, got ids.Tenant) (string, error) {
		return got.String(), failure
	}}
	if wait, err := e.Ready(t.Context(), tenant); wait != tenant.String() || !errors.Is(err, failure) {
		t.Errorf("%q, %v", wait, err)
	}
}
