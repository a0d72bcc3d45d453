package usage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
	"holdfast.dev/libs/usage"
	"holdfast.dev/proto/internalapi"
)

var things = fstest.MapFS{"00001_things.sql": {Data: []byte(`-- +goose Up
create table things (
	tenant_id uuid not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
	livemode boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
	id integer not null, text text, created_at timestamptz not null default clock_timestamp(), primary key (tenant_id, livemode, id));
create table parts (
	tenant_id uuid not null default nullif(current_setting('app.tenant_id', true), '')::uuid,
	livemode boolean not null default nullif(current_setting('app.livemode', true), '')::boolean,
	id integer not null, primary key (tenant_id, livemode, id)) partition by range (id);
create table parts_1 partition of parts for values from (0) to (20000);
create table notes (note text);
select protect('things'), protect('parts');
`)}}

func today() usage.Day { return usage.DayOf(civil.DateOf(time.Now().UTC())) }

func daysAgo(n int) usage.Day {
	return usage.DayOf(civil.DateOf(time.Now().UTC().AddDate(0, 0, -n)))
}

// fill adds n rows to each table of a tenant and mode, and n rows that do not count.
func fill(t *testing.T, db *pgtest.DB, tenant ids.Tenant, mode caller.Mode, n int) {
	t.Helper()
	err := db.App.Tx(pgtest.CtxOf(t, tenant, mode), func(ctx context.Context, tx pg.Tx) error {
		for _, sql := range []string{
			`insert into things (id, text) select n, repeat('x', n % 50) from generate_series(1, $1) n`,
			`insert into parts (id) select n from generate_series(1, $1) n`,
		} {
			if _, err := tx.Exec(ctx, sql, n); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `insert into outbox (tenant_id, livemode, id, topic, aggregate_id, hash, message)
			select $1, $2, gen_random_uuid(), 't', 'a', 0, '' from generate_series(1, $3)`, tenant, mode == caller.Live, n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The stored rows and their size are those of a plain count over the tables, for each tenant and mode alone.
func TestStoredRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tenants, n := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}, 0
	for _, tenant := range tenants {
		for _, mode := range []caller.Mode{caller.Live, caller.Test} {
			n += 5
			fill(t, db, tenant, mode, n)
		}
	}
	s := &usage.Source{Service: "things", DB: db.App}
	page, err := s.Measure(t.Context(), daysAgo(1), append(tenants, ids.New[ids.TenantPrefix]()))
	if err != nil || !page.Settled || len(page.Data) != 6 {
		t.Fatalf("%+v, %v", page, err)
	}
	for i, got := range page.Data {
		var rows, bytes int64
		id, _ := ids.Parse[ids.TenantPrefix](got.TenantID)
		err := conn.QueryRow(t.Context(), `select count(*), coalesce(sum(size), 0) from (
			select pg_column_size(t.*) as size from things t where tenant_id = $1 and livemode = $2
			union all select pg_column_size(p.*) from parts p where tenant_id = $1 and livemode = $2) x`, id, got.Mode == "live").Scan(&rows, &bytes)
		want := int64(10 * (i + 1))
		if i >= 4 {
			want = 0
		}
		if err != nil || *got.StoredRows != rows || rows != want || *got.StoredBytes != bytes || (bytes > 0) != (rows > 0) {
			t.Errorf("%+v, want %d rows of %d bytes, %v", got, rows, bytes, err)
		}
	}
}

// The stored rows of a tenant that take too long to count are absent. They delay neither the day nor the others.
func TestManyStoredRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	large, small := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	fill(t, db, large, caller.Live, 19_000)
	fill(t, db, small, caller.Live, 1)
	s := &usage.Source{
		Service: "things", DB: db.App, StoredLimit: time.Millisecond,
		Count: func(_ context.Context, _ pg.Q, _ usage.Day, to *internalapi.TenantUsage) error {
			to.Bookings = 7
			return nil
		},
	}
	first, err := s.Measure(t.Context(), daysAgo(1), []ids.Tenant{large})
	if err != nil || !first.Settled || len(first.Data) != 2 || first.Data[0].StoredRows != nil || first.Data[0].StoredBytes != nil || first.Data[0].Bookings != 7 {
		t.Errorf("%+v, %v", first, err)
	}
	s.StoredLimit = 0
	if got, err := s.Measure(t.Context(), daysAgo(1), []ids.Tenant{small, large}); err != nil || *got.Data[0].StoredRows != 2 || *got.Data[2].StoredRows != 38_000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A day is not settled before its end, while a transaction that began on it can still write, or before the service has received all.
func TestSettled(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix]()}
	s := &usage.Source{Service: "things", DB: db.App}
	settled := func(day usage.Day) bool {
		t.Helper()
		page, err := s.Measure(t.Context(), day, tenants)
		if err != nil || page.Settled == (len(page.Data) == 0) {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Settled
	}
	if settled(today()) || !settled(daysAgo(1)) {
		t.Error("today is settled, or yesterday is not")
	}
	err := db.App.Tx(pgtest.CtxOf(t, tenants[0], caller.Live), func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `insert into things (id) values (1)`); err != nil {
			return err
		}
		now := time.Now().UTC()
		if settled(usage.Day{From: now.Add(-time.Hour), To: now}) {
			t.Error("settled while a transaction that began before is open")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ready := range []bool{false, true} {
		s.Ready = func(context.Context) (bool, error) { return ready, nil }
		if settled(daysAgo(1)) != ready {
			t.Errorf("ready %v", ready)
		}
	}
}

// Two tenants are measured at the same time. A response ends with the tenants that took too long, and always has one. The day is sealed for
// each tenant and mode before the count.
func TestMeasureInParts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	var mu sync.Mutex
	steps, now, most := map[ids.Tenant][]string{}, 0, 0
	note := func(ctx context.Context, step string, change int) {
		mu.Lock()
		defer mu.Unlock()
		c := caller.FromContext(ctx)
		steps[c.Tenant] = append(steps[c.Tenant], step+" "+string(c.Mode))
		now += change
		most = max(most, now)
	}
	s := &usage.Source{
		Service: "things", DB: db.App,
		Seal: func(ctx context.Context, _ usage.Day) error {
			note(ctx, "seal", 1)
			return nil
		},
		Count: func(ctx context.Context, _ pg.Q, _ usage.Day, to *internalapi.TenantUsage) error {
			time.Sleep(2600 * time.Millisecond) // it takes the time of a large tenant
			note(ctx, "count", -1)
			return nil
		},
	}
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	page, err := s.Measure(t.Context(), daysAgo(1), tenants)
	if err != nil || len(page.Data) != 4 || page.Data[1].TenantID != tenants[0].String() || page.Data[2].TenantID != tenants[1].String() || most != 2 {
		t.Errorf("%+v, %v; %d tenants at the same time", page, err, most)
	}
	for _, tenant := range tenants[:2] {
		if want := []string{"seal live", "count live", "seal test", "count test"}; !slices.Equal(steps[tenant], want) {
			t.Errorf("%v, want %v", steps[tenant], want)
		}
	}
}

// An error of one tenant ends the measurement.
func TestMeasureFails(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	boom := errors.New("boom")
	tenants := []ids.Tenant{ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()}
	s := &usage.Source{Service: "things", DB: db.App, Seal: func(ctx context.Context, _ usage.Day) error {
		if caller.FromContext(ctx).Tenant == tenants[1] {
			return boom
		}
		return nil
	}}
	if page, err := s.Measure(t.Context(), daysAgo(1), tenants); !errors.Is(err, boom) || len(page.Data) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// Waiting items are counted up to the bound, for the caller's tenant in both modes.
func TestWork(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, things)
	tenant, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	fill(t, db, tenant, caller.Live, 3)
	fill(t, db, tenant, caller.Test, usage.MaxCount+1)
	fill(t, db, other, caller.Live, 7)
	s := &usage.Source{Service: "things", DB: db.App, Waiting: []usage.Waiting{
		{Kind: "thing", SQL: `select created_at as at from things where tenant_id = @tenant and livemode = @live order by id`},
	}}
	list, err := s.Work(pgtest.CtxOf(t, tenant, caller.Test))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range list {
		if w.OldestAt == nil || time.Since(*w.OldestAt) > time.Minute {
			t.Errorf("oldest %v", w.OldestAt)
		}
		got = append(got, fmt.Sprintln(w.Kind, w.Mode, w.Count, w.More))
	}
	if want := []string{"event live 3 false\n", "event test 10000 true\n", "thing live 3 false\n", "thing test 10000 true\n"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if list, err := s.Work(pgtest.CtxOf(t, ids.New[ids.TenantPrefix](), caller.Live)); err != nil || len(list) != 0 {
		t.Errorf("a tenant without work: %v, %v", list, err)
	}
}
