package store_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/logs/internal/domain"
	"holdfast.dev/services/logs/internal/store"
	"holdfast.dev/services/logs/migrations"
)

// stored is the number of requests. With TEST_SCALE=full it is a hundred times larger.
var stored = func() int {
	if os.Getenv("TEST_SCALE") == "full" {
		return 2_000_000
	}
	return 20_000
}()

// fill writes requests of a week. 1 in 1,000 failed, and has a rare value in each field that is a filter. Yesterday none failed.
func fill(t *testing.T, db *pgtest.DB, c caller.Caller) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `
		insert into request_logs (tenant_id, livemode, id, status, status_class, method, route, path, query_names, code, credential_id,
			credential_type, object_id, duration_ms, replayed)
		select $1, $2, encode(overlay(uuid_send(gen_random_uuid()) placing substring(uuid_send(uuid_floor(at)) for 6) from 1 for 6), 'hex')::uuid,
			case when rare then 409 else 201 end, case when rare then 4 else 2 end, case when rare then 'DELETE' else 'POST' end,
			case when rare then '/units/{id}' else '/bookings' end, '/', '', case when rare then 'slot_unavailable' end,
			case when rare then 'key_rare' else 'key_often' end, 'api_key', case when rare then 'bk_rare' else 'bk_' || n end, 1, false
		from generate_series(1, $3::int) n, lateral (select now() - n * (now() - date_trunc('day', now(), 'utc') + interval '6 days') / $3::int) x(at),
			lateral (select n % 1000 = 0 and (at at time zone 'utc')::date <> (now() at time zone 'utc')::date - 1) y(rare)`,
		c.Tenant, c.Live(), stored); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
}

// Each list, planned as the app role under row-level security, reads not much more than it returns: at most a page of each day.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	pgtest.Scoped(t, db)
	ctx := pgtest.Ctx(t, caller.Live)
	fill(t, db, caller.FromContext(ctx))
	now := time.Now()
	middle := now.Add(-3 * day)
	requests := map[string]page.Request{
		"newest": {}, "next": {After: &page.Position{At: middle, ID: ids.First[ids.RequestPrefix](middle).UUID()}},
		"between": {CreatedAfter: &middle, CreatedBefore: new(middle.Add(day))},
	}
	filters := map[string]store.Filter{
		"all": {}, "exact": {Status: domain.StatusFilter{Exact: 409}}, "class": {Status: domain.StatusFilter{Class: 4}}, "often": {Status: domain.StatusFilter{Class: 2}},
		"code": {Code: "slot_unavailable"}, "method": {Method: "DELETE"}, "route": {Route: "/units/{id}"}, "credential": {CredentialID: "key_rare"},
		"object": {ObjectID: "bk_rare"}, "none": {ObjectID: "bk_none"},
	}
	for when, r := range requests {
		r.Limit = page.DefaultLimit
		for what, f := range filters {
			for _, mode := range pgtest.PlanModesOf(t, ctx, f.Reader(ctx, db.App)) {
				plan := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error {
					_, err := store.RequestLogs(ctx, tx, f, r, now.Add(-7*day))
					return err
				})
				if most := float64(r.Limit+1) * 11; plan.Read() > most {
					t.Errorf("%s %s, %s: reads %.0f rows, at most %.0f\n%s", what, when, mode, plan.Read(), most, plan)
				}
			}
		}
	}
}

// Trimming a full log reads the rows that it deletes, the refused requests of the tenant and mode, and nothing of others.
func TestPlanOfTheTrim(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	c := caller.FromContext(pgtest.Ctx(t, caller.Live))
	fill(t, db, caller.FromContext(pgtest.Ctx(t, caller.Live)))
	fill(t, db, c)
	const refused, surplus = 200, 50
	var flood []domain.RequestLog
	for i := range refused {
		l := request(c, time.Now().Add(-time.Duration(i)*time.Minute))
		l.Status = []int{401, 429}[i%2]
		flood = append(flood, l)
	}
	insert(t, db, flood...)
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{
		`truncate request_log_counts`,
		`insert into request_log_counts (tenant_id, livemode, day, rows) select tenant_id, livemode, uuid_day(id), count(*) from request_logs group by 1, 2, 3`,
		`analyze`,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range pgtest.PlanModes {
		err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
			if _, err := tx.Exec(ctx, `select set_config('plan_cache_mode', $1, true)`, mode); err != nil {
				return err
			}
			explained := pgtest.NewExplained(t, tx)
			n, err := store.TrimRequestLogs(ctx, explained, flood[:1], stored+refused-surplus)
			if err != nil {
				return err
			}
			// It reads the refused rows and the oldest ones, then those that it deletes, and the counts of eight days.
			if most := float64(2*refused + 4*surplus + 100); n != surplus || explained.Read() > most {
				t.Errorf("%s: deletes %d and reads %.0f rows, at most %.0f\n%s", mode, n, explained.Read(), most, &explained.Plan)
			}
			return errRollBack
		})
		if !errors.Is(err, errRollBack) {
			t.Fatal(err)
		}
	}
}

var errRollBack = errors.New("the transaction is rolled back")
