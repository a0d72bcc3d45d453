package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// perTenant is large enough that reading a whole tenant shows in a plan.
const perTenant = 20_000

// fill adds many customers to the tenant. Every hundredth has a rare word, pair, e-mail and phone.
func fill(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`
		insert into customers (tenant_id, livemode, id, first_name, email, email_lower, phone, version, created_at, updated_at)
		select '%[1]x', false, gen_random_uuid(), 'f' || n, 'e' || n || '@b.co', 'e' || n || '@b.co', 'p' || n, 1,
		       now() - n * interval '1 minute', now() - n * interval '1 minute' from generate_series(1, %[2]d) n`, `
		insert into customer_words (tenant_id, livemode, word, customer_id)
		select tenant_id, livemode, ' ' || e || substr(phone, 2), id from customers, unnest(array['i5550000', 'n5550000']) e where tenant_id = '%[1]x'`, `
		insert into customer_words (tenant_id, livemode, word, customer_id)
		select tenant_id, livemode, w, id from customers, unnest(array[first_name, email, 'common'] || case when created_at < now() - %[2]d / 2 * interval '1 minute' then array['old'] else '{}' end) w where tenant_id = '%[1]x'`, `
		insert into customer_metadata (tenant_id, livemode, key, value, customer_id)
		select tenant_id, livemode, k, case k when 'kind' then 'vip' else first_name end, id
		from customers, unnest(array['kind', 'order']) k where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID(), perTenant)); err != nil {
			t.Fatal(err)
		}
	}
}

// expected returns the page that a scan of all customers finds.
func expected(t *testing.T, conn *pgx.Conn, tenant ids.Tenant, f store.CustomerFilter, r page.Request) []domain.CustomerID {
	t.Helper()
	w := &page.Where{}
	w.Add(`c.tenant_id = ?`, tenant)
	for _, term := range domain.Terms(f.Search) {
		addTerm(w, "customer", "c", term)
	}
	for k, v := range f.Metadata {
		w.Add(`exists (select from customer_metadata i where i.customer_id = c.id and i.key = ? and i.value = ?)`, k, v)
	}
	if f.Email != nil {
		w.Add(`c.email_lower = lower(?)`, *f.Email)
	}
	if f.Phone != nil {
		addTerm(w, "customer", "c", domain.PhoneTerm(*f.Phone))
	}
	r.Limit = page.DefaultLimit
	tail, args := w.Page(r, "c")
	rows, err := conn.Query(t.Context(), `select id from customers c `+tail, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[domain.CustomerID])
	if err != nil {
		t.Fatal(err)
	}
	return list[:min(len(list), r.Limit)] // the query requests one more
}

// addTerm adds the condition for a term in the simplest form.
func addTerm(w *page.Where, table, alias string, term domain.Term) {
	var ranges []string
	var args []any
	for _, p := range term {
		ranges, args = append(ranges, `i.word >= ? and i.word < ?`), append(args, p.From, p.Before)
	}
	w.Add(fmt.Sprintf(`exists (select from %[1]s_words i where i.%[1]s_id = %[2]s.id and (%[3]s))`, table, alias, strings.Join(ranges, " or ")), args...)
}

func TestListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `select set_config('app.settled', (now() + interval '1 day')::text, false)`); err != nil {
		t.Fatal(err)
	}
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
		far    bool // the matches follow more customers than a search examines
	}{
		"all":              {index: "customers_created"},
		"next page":        {req: page.Request{After: &page.Position{At: middle}}, index: "customers_created"},
		"created between":  {req: page.Request{CreatedAfter: new(middle), CreatedBefore: new(middle.Add(time.Hour))}, index: "customers_created"},
		"sync":             {req: page.Request{Updated: true}, index: "customers_synced"},
		"sync goes on":     {req: page.Request{Updated: true, UpdatedAfter: new(middle)}, index: "customers_synced"},
		"sync next page":   {req: page.Request{Updated: true, After: &page.Position{At: middle}}, index: "customers_synced"},
		"email":            {filter: store.CustomerFilter{Email: new("E77@b.co")}, index: "customers_email"},
		"unknown email":    {filter: store.CustomerFilter{Email: new("none@b.co")}, index: "customers_email"},
		"phone":            {filter: store.CustomerFilter{Phone: new("+1 555 000-077")}, index: "customer_words_pkey"},
		"unknown phone":    {filter: store.CustomerFilter{Phone: new("999999999")}, index: "customer_words_pkey"},
		"part of a phone":  {filter: store.CustomerFilter{Search: "555000 0199"}, index: "customer_words_pkey"},
		"common digits":    {filter: store.CustomerFilter{Search: "5550000"}, index: "customers_created"},
		"digits and words": {filter: store.CustomerFilter{Search: "com 5550000 f"}, index: "customers_created"},
		"digits and sync":  {filter: store.CustomerFilter{Search: "5550000"}, req: page.Request{Updated: true}, index: "customers_synced"},
		"word":             {filter: store.CustomerFilter{Search: "f1999"}, index: "customer_words_pkey"},
		"unknown word":     {filter: store.CustomerFilter{Search: "zzz"}, index: "customer_words_pkey"},
		"two words":        {filter: store.CustomerFilter{Search: "f1999 e1999"}, index: "customer_words_pkey"},
		"pair":             {filter: store.CustomerFilter{Metadata: map[string]string{"order": "f77"}}, index: "customer_metadata_pkey"},
		"unknown pair":     {filter: store.CustomerFilter{Metadata: map[string]string{"order": "none"}}, index: "customer_metadata_pkey"},
		"pair and word":    {filter: store.CustomerFilter{Search: "f77", Metadata: map[string]string{"order": "f77"}}, index: "customer_metadata_pkey"},
		"old":              {filter: store.CustomerFilter{Search: "old"}, index: "customers_created", far: true},
		"old and common":   {filter: store.CustomerFilter{Search: "old f"}, index: "customers_created", far: true},
		"common word":      {filter: store.CustomerFilter{Search: "com"}, index: "customers_created"},
		"common prefix":    {filter: store.CustomerFilter{Search: "f"}, index: "customers_created"},
		"common words":     {filter: store.CustomerFilter{Search: "f e com"}, index: "customers_created"},
		"common pair":      {filter: store.CustomerFilter{Metadata: map[string]string{"kind": "vip"}}, index: "customers_created"},
		"common and sync":  {filter: store.CustomerFilter{Search: "f"}, req: page.Request{Updated: true}, index: "customers_synced"},
		"common and rare":  {filter: store.CustomerFilter{Search: "com f77"}, index: "customer_words_pkey"},
		"common of phone":  {filter: store.CustomerFilter{Search: "com", Phone: new("5550000-77")}, index: "customer_words_pkey"},
		"common next page": {filter: store.CustomerFilter{Search: "com"}, req: page.Request{After: &page.Position{At: middle}}, index: "customers_created"},
		"word and sync":    {filter: store.CustomerFilter{Search: "f77"}, req: page.Request{Updated: true}, index: "customer_words_pkey"},
		"email and a pair": {filter: store.CustomerFilter{Email: new("e77@b.co"), Metadata: map[string]string{"order": "f77"}}, index: "customer_metadata_pkey"},
	} {
		for _, mode := range pgtest.PlanModes {
			plan, got := explain(t, db, pgtest.CtxOf(t, tenant, caller.Test), mode, tc.filter, tc.req)
			allowed, most := perTenant/100, 2*page.RareMatches
			if tc.far {
				allowed, most = 2*page.WalkLookups, 2*perTenant
			}
			if n := int(plan.Removed()); !strings.Contains(plan.String(), tc.index) || strings.Contains(plan.String(), "Seq Scan") || n > allowed {
				t.Errorf("%s, %s: want %s and few dropped rows, got %d dropped\n%s", name, mode, tc.index, n, plan)
			}
			if n := int(plan.Largest()); n > most {
				t.Errorf("%s, %s: a step of the plan gave %d rows\n%s", name, mode, n, plan)
			}
			if want := expected(t, conn, tenant, tc.filter, tc.req); !slices.Equal(got, want) {
				t.Errorf("%s, %s: found %v\nwant %v", name, mode, got, want)
			}
		}
	}
}

// TestCustomersByPhoneAreBounded checks that the customers with a phone number are found with the index, and that few are read even if
// many have the number.
func TestCustomersByPhoneAreBounded(t *testing.T) {
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
	for _, sql := range []string{
		`insert into customer_words (tenant_id, livemode, word, customer_id) select tenant_id, livemode, ' n123456789', id from customers`,
		`update customers set phone = '0123456789'`,
		`analyze customers, customer_words`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for phone, want := range map[string]int{"0123456789": 11, "+1 555 000-077": 1, "+49 99 99999": 0, "none": 0} {
		for _, mode := range pgtest.PlanModes {
			var found []domain.Customer
			plan := pgtest.Explain(t, pgtest.CtxOf(t, tenant, caller.Test), db, mode, func(ctx context.Context, tx pg.Tx) (err error) {
				found, err = store.CustomersByPhone(ctx, tx, phone, 11)
				return err
			})
			if len(found) != want {
				t.Errorf("%s, %s: %d customers, want %d", phone, mode, len(found), want)
			}
			if n := int(plan.Largest()); n > 60 || strings.Contains(plan.String(), "Seq Scan") || phone != "none" && !strings.Contains(plan.String(), "customer_words_pkey") {
				t.Errorf("%s, %s: a step of the plan gave %d rows\n%s", phone, mode, n, plan)
			}
		}
	}
}

func explain(t *testing.T, db *pgtest.DB, ctx context.Context, mode pgtest.PlanMode, f store.CustomerFilter, r page.Request) (plan *pgtest.Plan, found []domain.CustomerID) {
	t.Helper()
	r.Limit = page.DefaultLimit
	plan = pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error {
		list, err := store.Customers(ctx, tx, f, r)
		for _, c := range list.Items {
			found = append(found, c.ID)
		}
		return err
	})
	return plan, found
}
