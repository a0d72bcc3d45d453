package store_test

import (
	"context"
	"errors"
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

// fillLeads adds many leads to the tenant: half are new, few are quoted or lost, and one in a hundred has the rare source and
// customer.
func fillLeads(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`
		insert into leads (tenant_id, livemode, id, status, source, first_name, email, email_lower, customer_id, quoted_customer_id, converted_at, created_at, updated_at)
		select '%[1]x', false, gen_random_uuid(), case when n %% 2 = 0 then 'new' when n %% 100 = 1 then 'lost' when n %% 100 = 3 then 'quoted' else 'converted' end,
		       case when n %% 100 = 0 then 'rare' else 'web' end, 'f' || n, 'e' || n || '@b.co', 'e' || n || '@b.co',
		       case when n %% 100 = 5 then '01890000-0000-7000-8000-000000000001'::uuid when n %% 100 = 6 then null else gen_random_uuid() end,
		       case when n %% 100 = 6 then '01890000-0000-7000-8000-000000000001'::uuid end,
		       case when n %% 2 = 0 or n %% 100 in (1, 3) then null else now() end,
		       now() - n * interval '1 minute', now() - n * interval '1 minute' from generate_series(1, %[2]d) n`, `
		insert into lead_words (tenant_id, livemode, word, lead_id)
		select tenant_id, livemode, w, id from leads, unnest(array[first_name, email, 'common']) w where tenant_id = '%[1]x'`, `
		insert into lead_metadata (tenant_id, livemode, key, value, lead_id)
		select tenant_id, livemode, k, case k when 'kind' then 'vip' else first_name end, id from leads, unnest(array['kind', 'order']) k where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID(), perTenant)); err != nil {
			t.Fatal(err)
		}
	}
}

// expectedLeads returns the page that a scan of all leads finds.
func expectedLeads(t *testing.T, conn *pgx.Conn, tenant ids.Tenant, f store.LeadFilter, r page.Request) []domain.LeadID {
	t.Helper()
	w := &page.Where{}
	w.Add(`l.tenant_id = ?`, tenant)
	if len(f.Status) > 0 {
		w.Add(`l.status = any(?)`, f.Status)
	}
	for _, term := range domain.Terms(f.Search) {
		addTerm(w, "lead", "l", term)
	}
	for k, v := range f.Metadata {
		w.Add(`exists (select from lead_metadata i where i.lead_id = l.id and i.key = ? and i.value = ?)`, k, v)
	}
	if f.Source != nil {
		w.Add(`l.source = ?`, *f.Source)
	}
	if f.Customer != nil {
		w.Add(`l.customer_id = ?`, *f.Customer)
	}
	if f.Person != nil {
		w.Add(`(l.customer_id = ? or l.customer_id is null and l.quoted_customer_id = ?)`, *f.Person, *f.Person)
	}
	r.Limit = page.DefaultLimit
	tail, args := w.Page(r, "l")
	rows, err := conn.Query(t.Context(), `select id from leads l `+tail, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[domain.LeadID])
	if err != nil {
		t.Fatal(err)
	}
	return list[:min(len(list), r.Limit)]
}

func explainLeads(t *testing.T, db *pgtest.DB, ctx context.Context, mode pgtest.PlanMode, f store.LeadFilter, r page.Request) (plan *pgtest.Plan, found []domain.LeadID) {
	t.Helper()
	r.Limit = page.DefaultLimit
	plan = pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error {
		list, err := store.Leads(ctx, tx, f, r)
		for _, l := range list.Items {
			found = append(found, l.ID)
		}
		return err
	})
	return plan, found
}

func TestListsOfLeadsUseTheirIndexes(t *testing.T) {
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
	fillLeads(t, conn, tenant)
	fillLeads(t, conn, ids.New[ids.TenantPrefix]())
	if _, err := conn.Exec(t.Context(), `analyze leads, lead_words, lead_metadata`); err != nil {
		t.Fatal(err)
	}
	middle := time.Now().Add(-perTenant / 2 * time.Minute)
	rare := ids.FromUUID[ids.CustomerPrefix]([16]byte{0x01, 0x89, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1})
	for name, tc := range map[string]struct {
		filter store.LeadFilter
		req    page.Request
		index  string
	}{
		"all":             {index: "leads_created"},
		"next page":       {req: page.Request{After: &page.Position{At: middle}}, index: "leads_created"},
		"created between": {req: page.Request{CreatedAfter: new(middle), CreatedBefore: new(middle.Add(time.Hour))}, index: "leads_created"},
		"sync":            {req: page.Request{Updated: true}, index: "leads_updated"},
		"sync goes on":    {req: page.Request{Updated: true, UpdatedAfter: new(middle)}, index: "leads_updated"},
		"status":          {filter: store.LeadFilter{Status: []domain.LeadStatus{domain.LeadLost}}, index: "leads_status"},
		"no such status":  {filter: store.LeadFilter{Status: []domain.LeadStatus{domain.LeadContacted}}, index: "leads_status"},
		"statuses":        {filter: store.LeadFilter{Status: []domain.LeadStatus{domain.LeadLost, domain.LeadNew}}, index: "leads_status"},
		"status, next":    {filter: store.LeadFilter{Status: []domain.LeadStatus{domain.LeadQuoted, domain.LeadNew}}, req: page.Request{After: &page.Position{At: middle}}, index: "leads_status"},
		"source":          {filter: store.LeadFilter{Source: new("rare")}, index: "leads_source"},
		"unknown source":  {filter: store.LeadFilter{Source: new("none")}, index: "leads_source"},
		"customer":        {filter: store.LeadFilter{Customer: &rare}, index: "leads_customer"},
		"person":          {filter: store.LeadFilter{Person: &rare}, index: "leads_person"},
		"person, next":    {filter: store.LeadFilter{Person: &rare}, req: page.Request{After: &page.Position{At: middle}}, index: "leads_person"},
		"word":            {filter: store.LeadFilter{Search: "f1999"}, index: "lead_words_pkey"},
		"unknown word":    {filter: store.LeadFilter{Search: "zzz"}, index: "lead_words_pkey"},
		"common word":     {filter: store.LeadFilter{Search: "com"}, index: "leads_created"},
		"word and status": {filter: store.LeadFilter{Search: "f77", Status: []domain.LeadStatus{domain.LeadNew, domain.LeadLost}}, index: "lead_words_pkey"},
		"common, states":  {filter: store.LeadFilter{Search: "com", Status: []domain.LeadStatus{domain.LeadNew, domain.LeadLost}}, index: "leads_status"},
		"pair":            {filter: store.LeadFilter{Metadata: map[string]string{"order": "f77"}}, index: "lead_metadata_pkey"},
		"common pair":     {filter: store.LeadFilter{Metadata: map[string]string{"kind": "vip"}}, index: "leads_created"},
	} {
		for _, mode := range pgtest.PlanModes {
			plan, got := explainLeads(t, db, pgtest.CtxOf(t, tenant, caller.Test), mode, tc.filter, tc.req)
			if n := int(plan.Removed()); !strings.Contains(plan.String(), tc.index) || strings.Contains(plan.String(), "Seq Scan") || n > perTenant/100 {
				t.Errorf("%s, %s: want %s and few dropped rows, got %d dropped\n%s", name, mode, tc.index, n, plan)
			}
			if n := int(plan.Largest()); n > 2*page.RareMatches {
				t.Errorf("%s, %s: a step of the plan gave %d rows\n%s", name, mode, n, plan)
			}
			if tc.filter.Person != nil {
				plan := pgtest.Explain(t, pgtest.CtxOf(t, tenant, caller.Test), db, mode, func(ctx context.Context, tx pg.Tx) error {
					_, err := store.LeadRows(ctx, tx, *tc.filter.Person, page.Request{Limit: page.DefaultLimit, After: tc.req.After})
					return err
				})
				if !strings.Contains(plan.String(), tc.index) || plan.Removed() > 0 {
					t.Errorf("%s, %s, the rows alone:\n%s", name, mode, plan)
				}
			}
			if want := expectedLeads(t, conn, tenant, tc.filter, tc.req); !slices.Equal(got, want) {
				t.Errorf("%s, %s: found %v\nwant %v", name, mode, got, want)
			}
		}
	}
}

// TestLookupsOfConversionsUseTheirIndexes checks that the lookups of a conversion and of the worker use their indexes.
func TestLookupsOfConversionsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fillLeads(t, conn, tenant)
	if _, err := conn.Exec(t.Context(), `update leads set converting_until = now() - interval '1 hour', converting_customer_id = gen_random_uuid(),
		converting_new_customer = true, converting_body = '{}' where first_name in ('f2', 'f4')`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `analyze leads`); err != nil {
		t.Fatal(err)
	}
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	for name, tc := range map[string]struct {
		index string
		read  func(ctx context.Context, q pg.Q) error
	}{
		"by e-mail address": {"leads_converting_email", func(ctx context.Context, q pg.Q) error {
			busy, err := store.EmailIsConverting(ctx, q, "E2@b.co")
			if !busy {
				t.Error("not found")
			}
			return err
		}},
		"phone numbers": {"leads_converting_", func(ctx context.Context, q pg.Q) error {
			phones, err := store.ConvertingPhones(ctx, q, 10)
			if len(phones) != 2 {
				t.Errorf("found %v", phones)
			}
			return err
		}},
		"by customer": {"leads_converting_customer", func(ctx context.Context, q pg.Q) error {
			_, err := store.LeadOfNewCustomer(ctx, q, ids.New[ids.CustomerPrefix]())
			return ignore(err, domain.ErrCustomerNotFound)
		}},
	} {
		for _, mode := range pgtest.PlanModes {
			plan := pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error { return tc.read(ctx, tx) })
			if !strings.Contains(plan.String(), tc.index) || plan.Removed() > 10 {
				t.Errorf("%s, %s:\n%s", name, mode, plan)
			}
		}
	}
	err = db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		plan := pgtest.NewExplained(t, tx)
		stuck, err := store.LeadsLeft(ctx, plan, time.Now(), nil, 10)
		if len(stuck) != 2 || stuck[0].TenantID != tenant || stuck[0].Livemode {
			t.Errorf("found %v", stuck)
		}
		if !strings.Contains(plan.String(), "using leads_converting") || plan.Read("leads") > 2 {
			t.Error(plan)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ignore returns nil for the expected error.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
