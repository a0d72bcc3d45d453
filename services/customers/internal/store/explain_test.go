package store_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// perTenant is enough that reading a whole tenant shows in a plan.
const perTenant = 20_000

// explained is a Q that does not run a query but keeps its plan, as the app role gets it.
type explained struct {
	tx   pg.Tx
	plan string
}

var errExplained = errors.New("explained only")

// Query implements pg.Q. The statement is prepared, as the pool does it, so that the plan can be one that has
// not seen the arguments.
func (e *explained) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	literals := make([]string, len(args))
	for i, a := range args {
		literals[i] = literal(a)
	}
	if _, err := e.tx.Exec(ctx, `prepare p as `+sql); err != nil {
		return nil, err
	}
	execute := `execute p`
	if len(args) > 0 {
		execute += `(` + strings.Join(literals, ", ") + `)`
	}
	rows, err := e.tx.Query(ctx, `explain (analyze, costs off, timing off, summary off) `+execute)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	e.plan = strings.Join(lines, "\n")
	_, err = e.tx.Exec(ctx, `deallocate p`)
	return nil, errors.Join(err, errExplained)
}

func literal(a any) string {
	switch v := a.(type) {
	case time.Time:
		return "'" + v.Format(time.RFC3339Nano) + "'"
	case *time.Time:
		return literal(*v)
	case [16]byte:
		return fmt.Sprintf("'%x'", v)
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	default:
		return fmt.Sprint(v)
	}
}

// fill gives the tenant many customers, every hundredth of them with a rare word, pair, e-mail and phone.
func fill(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`
		insert into customers (tenant_id, livemode, id, first_name, email, email_lower, phone, version, created_at, updated_at)
		select '%[1]x', false, gen_random_uuid(), 'f' || n, 'e' || n || '@b.co', 'e' || n || '@b.co', 'p' || n, 1,
		       now() - n * interval '1 minute', now() - n * interval '1 minute' from generate_series(1, %[2]d) n`, `
		insert into customer_words (tenant_id, livemode, word, customer_id)
		select tenant_id, livemode, w, id from customers, unnest(array[first_name, email, 'common']) w where tenant_id = '%[1]x'`, `
		insert into customer_metadata (tenant_id, livemode, key, value, customer_id)
		select tenant_id, livemode, k, case k when 'kind' then 'vip' else first_name end, id
		from customers, unnest(array['kind', 'order']) k where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID(), perTenant)); err != nil {
			t.Fatal(err)
		}
	}
}

var removed = regexp.MustCompile(`Rows Removed by Filter: (\d+)`)

func TestListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fill(t, conn, tenant)
	fill(t, conn, ids.New[ids.TenantPrefix]())
	if _, err := conn.Exec(t.Context(), `analyze customers, customer_words, customer_metadata`); err != nil {
		t.Fatal(err)
	}
	middle := time.Now().Add(-perTenant / 2 * time.Minute)
	for name, tc := range map[string]struct {
		filter store.CustomerFilter
		req    page.Request
		index  string
	}{
		"all":              {index: "customers_created"},
		"next page":        {req: page.Request{After: &page.Position{At: middle}}, index: "customers_created"},
		"created between":  {req: page.Request{CreatedAfter: new(middle), CreatedBefore: new(middle.Add(time.Hour))}, index: "customers_created"},
		"sync":             {req: page.Request{Updated: true}, index: "customers_updated"},
		"sync goes on":     {req: page.Request{Updated: true, UpdatedAfter: new(middle)}, index: "customers_updated"},
		"sync next page":   {req: page.Request{Updated: true, After: &page.Position{At: middle}}, index: "customers_updated"},
		"email":            {filter: store.CustomerFilter{Email: new("E77@b.co")}, index: "customers_email"},
		"email of nobody":  {filter: store.CustomerFilter{Email: new("none@b.co")}, index: "customers_email"},
		"phone":            {filter: store.CustomerFilter{Phone: new("p77")}, index: "customers_phone"},
		"word":             {filter: store.CustomerFilter{Search: "f1999"}, index: "customer_words_pkey"},
		"word of nobody":   {filter: store.CustomerFilter{Search: "zzz"}, index: "customer_words_pkey"},
		"two words":        {filter: store.CustomerFilter{Search: "f1999 e1999"}, index: "customer_words_pkey"},
		"pair":             {filter: store.CustomerFilter{Metadata: map[string]string{"order": "f77"}}, index: "customer_metadata_pkey"},
		"pair of nobody":   {filter: store.CustomerFilter{Metadata: map[string]string{"order": "none"}}, index: "customer_metadata_pkey"},
		"pair and word":    {filter: store.CustomerFilter{Search: "f77", Metadata: map[string]string{"order": "f77"}}, index: "customer_metadata_pkey"},
		"word and sync":    {filter: store.CustomerFilter{Search: "f77"}, req: page.Request{Updated: true}, index: "customer_words_pkey"},
		"email and a pair": {filter: store.CustomerFilter{Email: new("e77@b.co"), Metadata: map[string]string{"order": "f77"}}, index: "customer_metadata_pkey"},
	} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explain(t, db.App, pgtest.CtxOf(t, tenant, caller.Test), mode, tc.filter, tc.req)
			dropped := 0
			for _, m := range removed.FindAllStringSubmatch(plan, -1) {
				n, _ := strconv.Atoi(m[1])
				dropped += n
			}
			if !strings.Contains(plan, tc.index) || strings.Contains(plan, "Seq Scan") || dropped > perTenant/100 {
				t.Errorf("%s, %s: want %s and few dropped rows, got %d dropped\n%s", name, mode, tc.index, dropped, plan)
			}
		}
	}
}

func explain(t *testing.T, db *pg.DB, ctx context.Context, mode string, f store.CustomerFilter, r page.Request) string { //nolint:revive // t leads in tests
	t.Helper()
	r.Limit = page.DefaultLimit
	e := &explained{}
	err := db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('plan_cache_mode', $1, true), set_config('app.settled', oldest_write()::text, true)`, mode); err != nil {
			return err
		}
		e.tx = tx
		if _, err := store.Customers(ctx, e, f, r); !errors.Is(err, errExplained) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.plan
}
