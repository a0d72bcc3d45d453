package pgtest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// things has 1,000 rows, of which 5 are rare. The index of the rare ones is useful only if the plan knows the kind.
func things(t *testing.T) (*pgtest.DB, context.Context) {
	t.Helper()
	db := pgtest.New(t, nil,
		`create table things (n int, kind text, owner uuid, made_at timestamptz)`,
		`insert into things select n, case when n % 200 = 0 then 'it''s rare' else 'usual' end, gen_random_uuid(), timestamptz '2030-01-01Z' + n * interval '1 day' from generate_series(1, 1000) n`,
		`create index things_rare on things (n) where kind = 'it''s rare'`,
		`grant select, insert, update on things to public`,
		`analyze things`)
	return db, pgtest.Ctx(t, caller.Live)
}

// The plan for the values of a statement and the plan for all values are those that a connection uses, with the rows that they read, and
// the statement returns its rows.
func TestExplain(t *testing.T) {
	t.Parallel()
	db, ctx := things(t)
	for mode, want := range map[pgtest.PlanMode]struct {
		read, removed float64
		step          string
	}{
		pgtest.CustomPlan:  {5, 1, "Index Scan using things_rare on things (rows=4 loops=1)\n"},
		pgtest.GenericPlan: {1000, 996, "Seq Scan on things (rows=4 loops=1)\n"},
	} {
		var found []int
		plan := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
			found, err = pg.Many(ctx, tx, pgx.RowTo[int],
				`select n from things where kind = @kind and made_at >= @from and owner <> all(@others) and kind <> @empty and @none::uuid is null and @tenant::uuid is not null order by n`,
				pg.Args{
					"kind": "it's rare", "from": time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), "others": []ids.Tenant{ids.New[ids.TenantPrefix]()},
					"none": (*ids.Tenant)(nil), "empty": "",
				})
			return err
		})
		if !slices.Equal(found, []int{400, 600, 800, 1000}) || plan.Sent() != 4 || plan.Largest() != 4 {
			t.Errorf("%s: found %v; %v rows are sent, and a step returned %v", mode, found, plan.Sent(), plan.Largest())
		}
		if plan.Statements() != 1 || plan.Read() != want.read || plan.Read("things") != want.read || plan.Read("others") != 0 || plan.Removed() != want.removed {
			t.Errorf("%s: %d statements read %v rows and drop %v\n%s", mode, plan.Statements(), plan.Read(), plan.Removed(), plan)
		}
		if !strings.Contains(plan.String(), want.step) {
			t.Errorf("%s: no step is %s\n%s", mode, want.step, plan)
		}
	}
}

// Writes are explained and take effect once, also those of a batch, of which each sees what those before it changed. The transaction is
// rolled back.
func TestExplainWrites(t *testing.T) {
	t.Parallel()
	db, ctx := things(t)
	plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
		if tag, err := tx.Exec(ctx, `insert into things (n) select 2000 from generate_series(1, $1::int)`, 3); err != nil || tag.RowsAffected() != 3 {
			t.Errorf("insert: %v, %v", tag, err)
		}
		b := &pgx.Batch{}
		b.Queue(`insert into things (n) values (@n)`, pg.Args{"n": 2000})
		b.Queue(`update things set kind = 'new' where n = 2000`)
		results := tx.SendBatch(ctx, b)
		for _, want := range []int64{1, 4} {
			if tag, err := results.Exec(); err != nil || tag.RowsAffected() != want {
				t.Errorf("batch: %v, %v, want %d", tag, err, want)
			}
		}
		return results.Close()
	})
	if plan.Statements() != 3 || plan.Read("things") != 1004 || plan.Removed() != 1000 { // the update reads all rows
		t.Errorf("%d statements read %v rows and drop %v\n%s", plan.Statements(), plan.Read(), plan.Removed(), plan)
	}
	n, err := pg.One(ctx, db.App.Read(ctx), pgx.RowTo[int], pgx.ErrNoRows, `select count(*)::int from things`)
	if err != nil || n != 1000 {
		t.Errorf("%d rows are left, %v", n, err)
	}
}
