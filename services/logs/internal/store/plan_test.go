package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// fill writes requests of a week, of which 1 in 1,000 failed, and has a rare value in each field that is a filter.
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
		from generate_series(1, $3::int) n, lateral (select now() - n * interval '6 days' / $3::int, n % 1000 = 0) x(at, rare)`,
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
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				e := explain(t, db, ctx, mode, func(ctx context.Context, q pg.Q) error {
					_, err := store.RequestLogs(ctx, q, f, r, now.Add(-7*day))
					return err
				})
				if most := float64(r.Limit+1) * 11; e.read > most {
					t.Errorf("%s %s, %s: reads %.0f rows, at most %.0f\n%s", what, when, mode, e.read, most, e.plan)
				}
			}
		}
	}
}

// explain runs explain analyze for the statement of read, with a plan_cache_mode.
func explain(t *testing.T, db *pgtest.DB, ctx context.Context, mode string, read func(context.Context, pg.Q) error) *explained {
	t.Helper()
	e := &explained{}
	err := db.App.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('plan_cache_mode', $1, true)`, mode); err != nil {
			return err
		}
		e.tx = tx
		if err := read(ctx, e); !errors.Is(err, errExplained) {
			return fmt.Errorf("not explained: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var errExplained = errors.New("explained")

// explained is a Q that explains a statement and returns errExplained.
type explained struct {
	tx   pg.Tx
	plan string
	read float64 // the rows read from all tables
}

type node struct {
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Recheck  float64 `json:"Rows Removed by Index Recheck"`
	Plans    []node
}

func (n node) rows() float64 {
	sum := 0.0
	if n.Relation != "" {
		sum = (n.Rows + n.Removed + n.Recheck) * n.Loops
	}
	for _, child := range n.Plans {
		sum += child.rows()
	}
	return sum
}

// Query implements pg.Q.
func (e *explained) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	text, err := pg.One(ctx, e.tx, pgx.RowTo[string], pgx.ErrNoRows, `explain (analyze, timing off, format json) `+sql, args...)
	if err != nil {
		return nil, err
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		return nil, err
	}
	e.plan, e.read = text, plans[0].Plan.rows()
	return nil, errExplained
}
