package api_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

// TestCreatePlansOnce checks that PostgreSQL does not plan a statement of POST /bookings again for each request. It plans a prepared
// statement five times, and then again only if the plan for all values seems more expensive. The plans of bookings take as long as
// most of the statements.
func TestCreatePlansOnce(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.book(ctx, `"event_date":"2029-01-01","package_id":%q`, s.flat)
	w.Exec(`insert into bookings select (jsonb_populate_record(b, jsonb_build_object('id', gen_random_uuid(), 'number', 'n' || n, 'unit_id', $1::uuid))).*
		from bookings b, generate_series(1, 5000) n`, s.ada)
	w.Exec(`analyze`)
	for i := range 20 {
		w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-%02d","package_id":%q,"unit_id":%q}`, i+1, s.flat, s.ada), header(fmt.Sprintf("Idempotency-Key: %d", i))).is(201)
	}
	type plans struct {
		Statement       string
		Custom, Generic int64
	}
	var all []plans
	err := w.DB.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { // on the same connection, the last one that was returned
		rows, err := tx.Query(ctx, `select statement, custom_plans as custom, generic_plans as generic from pg_prepared_statements where custom_plans > 0`)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByName[plans])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, p := range all {
		if p.Custom+p.Generic >= 20 {
			used++
		}
		if p.Custom > 5 {
			t.Errorf("planned %d times: %s", p.Custom, p.Statement)
		}
	}
	if used < 8 {
		t.Errorf("only %d statements ran 20 times on the connection", used)
	}
}
