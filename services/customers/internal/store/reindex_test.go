package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/app"
	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// indexer returns the reindexer of customers, or of leads.
func indexer(db *pgtest.DB, leads bool) *app.Reindexer {
	r := &app.Reindexer{DB: db.App, Worker: db.Worker, List: store.UnsearchedCustomers, Write: store.ReindexCustomers}
	if leads {
		r.List, r.Write = store.UnsearchedLeads, store.ReindexLeads
	}
	return r
}

func findCustomers(t *testing.T, db *pg.DB, ctx context.Context, f store.CustomerFilter) []domain.CustomerID {
	t.Helper()
	rows, err := store.Customers(ctx, db.Read(ctx), f, page.Request{Limit: page.DefaultLimit})
	if err != nil {
		t.Fatal(err)
	}
	var out []domain.CustomerID
	for _, c := range rows.Items {
		out = append(out, c.ID)
	}
	return out
}

// asBefore writes a customer as the previous version does: without search_version, and with search terms that contain accents.
const asBefore = `
	with c as (
		insert into customers (tenant_id, livemode, id, first_name, last_name, email, email_lower, phone, created_at, updated_at)
		select $1, false, gen_random_uuid(), 'Jörg' || n, 'Müller', 'j@b.co', 'j@b.co', '+49 30 ' || 901820 + n, now(), now()
		from generate_series(1, $2::int) n returning tenant_id, livemode, id)
	insert into customer_words (tenant_id, livemode, word, customer_id) select tenant_id, livemode, 'müller', id from c`

// TestRowsOfTheVersionBeforeBecomeSearchable checks that rows that the previous version wrote, before and during the update, become
// searchable in limited batches. Readers see no change of them.
func TestRowsOfTheVersionBeforeBecomeSearchable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	tenant, other := ids.New[ids.TenantPrefix](), ids.New[ids.TenantPrefix]()
	exec(`select set_config('app.settled', (now() + interval '1 day')::text, false)`)
	const rows = 1_250
	exec(asBefore, tenant.UUID(), rows)
	exec(asBefore, other.UUID(), 3)
	ctx, r := pgtest.CtxOf(t, tenant, caller.Test), indexer(db, false)
	find := func(f store.CustomerFilter) []domain.CustomerID { return findCustomers(t, db.App, ctx, f) }
	if n := len(find(store.CustomerFilter{Search: "MÜLLER"})); n != page.DefaultLimit {
		t.Errorf("before, the old terms find %d", n)
	}
	if n := len(find(store.CustomerFilter{Phone: new("+49 30 901821")})); n != 1 {
		t.Errorf("before, the same text finds %d", n)
	}
	if n := len(find(store.CustomerFilter{Search: "muller"})); n != 0 {
		t.Errorf("before, muller finds %d", n)
	}
	left := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `select count(*) from customers where search_version <> version`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var stamps [2]string
	stamp := func(n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `select md5(string_agg(id::text || version || updated_at, ',' order by id)) from customers`).Scan(&stamps[n]); err != nil {
			t.Fatal(err)
		}
	}
	stamp(0)
	for run := 1; left() > 0; run++ {
		was := left()
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := left(); was-now > 1_000 || run > 3 {
			t.Fatalf("run %d has gone from %d to %d", run, was, now)
		}
	}
	if stamp(1); stamps[0] != stamps[1] {
		t.Error("versions or times have changed")
	}
	if n := len(find(store.CustomerFilter{Search: "muller"})); n != page.DefaultLimit {
		t.Errorf("afterwards muller finds %d", n)
	}
	one := find(store.CustomerFilter{Phone: new("030 901821")})
	if len(one) != 1 || !slices.Equal(find(store.CustomerFilter{Search: "jorg1 901821"}), one) {
		t.Errorf("afterwards the number finds %v", one)
	}
	exec(`update customers set last_name = 'Núñez', version = version + 1 where id = $1`, one[0].UUID()) // as the previous version does
	for range 2 {                                                                                        // the first run may end the round that has already passed the row
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(store.CustomerFilter{Search: "nunez"}); !slices.Equal(got, one) {
		t.Errorf("changed by the version before: found %v", got)
	}
	exec(`update customers set first_name = '', last_name = null, email = '', phone = null, version = version + 1, erased_at = now() where id = $1`, one[0].UUID())
	for range 2 {
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var terms int
	if err := conn.QueryRow(t.Context(), `select count(*) from customer_words where customer_id = $1`, one[0].UUID()).Scan(&terms); err != nil || terms > 0 {
		t.Errorf("erased by the previous version: %d terms, %v", terms, err)
	}
}

// A failed batch changes nothing, and the next runs process it. A row that a request has locked waits for a later run.
func TestReindexingIsResumed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	if _, err := conn.Exec(t.Context(), asBefore, tenant.UUID(), 5); err != nil {
		t.Fatal(err)
	}
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	killed := errors.New("killed")
	r := indexer(db, false)
	write := r.Write
	r.Write = func(ctx context.Context, tx pg.Tx, rows [][16]byte) error {
		return errors.Join(write(ctx, tx, rows), killed)
	}
	if err := r.Run(t.Context()); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	find := func() int { return len(findCustomers(t, db.App, ctx, store.CustomerFilter{Search: "muller"})) }
	if n := find(); n != 0 {
		t.Errorf("a batch that failed has written %d", n)
	}
	err = db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `select from customers where first_name = 'Jörg1' for update`); err != nil {
			return err
		}
		return indexer(db, false).Run(t.Context())
	})
	if n := find(); err != nil || n != 4 {
		t.Errorf("%d are found next to a locked one, %v", n, err)
	}
	if err := indexer(db, false).Run(t.Context()); err != nil || find() != 5 {
		t.Errorf("%d are found, %v", find(), err)
	}
}

func TestLeadsOfTheVersionBeforeBecomeSearchable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	if _, err := conn.Exec(t.Context(), `
		with l as (
			insert into leads (tenant_id, livemode, id, status, first_name, phone, created_at, updated_at)
			select $1, false, gen_random_uuid(), 'new', 'Zoë', '+49 30 901820', now(), now() returning tenant_id, livemode, id)
		insert into lead_words (tenant_id, livemode, word, lead_id) select tenant_id, livemode, 'zoë', id from l`, tenant.UUID()); err != nil {
		t.Fatal(err)
	}
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	find := func(q string) int {
		rows, err := store.Leads(ctx, db.App.Read(ctx), store.LeadFilter{Search: q}, page.Request{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows.Items)
	}
	if find("Zoë") != 1 || find("zoe") != 0 {
		t.Error("before")
	}
	if err := indexer(db, true).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if find("zoe") != 1 || find("ZOË") != 1 || find("030/901820") != 1 {
		t.Error("afterwards")
	}
}

// TestUnsearchedRowsAreFoundByTheirIndex checks that the worker finds the rows by an index that contains only them.
func TestUnsearchedRowsAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fill(t, conn, tenant)
	fillLeads(t, conn, tenant)
	for _, sql := range []string{
		`update customers set search_version = version where first_name <> 'f7'`, `update leads set search_version = version where first_name <> 'f7'`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `vacuum analyze customers, leads`); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"customers", "leads"} {
		err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			list := store.UnsearchedCustomers
			if table == "leads" {
				list = store.UnsearchedLeads
			}
			plan := pgtest.NewExplained(t, tx)
			found, err := list(ctx, plan, [16]byte{}, 10)
			if err != nil || len(found) != 1 || found[0].TenantID != tenant {
				t.Errorf("%s: %v, %v", table, found, err)
			}
			if !strings.Contains(plan.String(), table+"_unsearched") {
				t.Error(plan)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
