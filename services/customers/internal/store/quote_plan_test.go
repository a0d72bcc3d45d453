package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/migrations"
)

// fillQuotes adds many quotes of a hundred customers to the tenant. Every hundredth is for a lead and has a booking. Most are
// accepted and some are sent. Some of the sent ones have lapsed, and some are being accepted.
func fillQuotes(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`
		insert into customers (tenant_id, livemode, id, first_name, email, email_lower, version, created_at, updated_at)
		select '%[1]x', false, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'f', 'e', 'e', 1, now(), now() from generate_series(0, 99) n`, `
		insert into quotes (tenant_id, livemode, id, number, status, customer_id, lead_id, booking_id, timezone, event_day, guest_count, line_items, currency,
			subtotal, discount, tax, total, deposit, expires_at, accept_until, accept_next, created_at, updated_at)
		select '%[1]x', false, gen_random_uuid(), 'Q-' || n, case when n %% 50 = 0 then 'sent' when n %% 50 = 1 then 'draft' else 'accepted' end,
			('00000000-0000-0000-0000-' || lpad((n %% 100)::text, 12, '0'))::uuid,
			case when n %% 100 = 7 then ('00000000-0000-0000-0000-' || lpad((n / 1000)::text, 12, '0'))::uuid end,
			case when n %% 50 > 1 then ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid end,
			'UTC', '2031-05-01', 1, '[]', 'USD', 0, 0, 0, 0, 0, now() + (case when n %% 200 = 0 then -1 else 1 end) * interval '1 hour',
			case when n %% 500 = 50 then now() end, case when n %% 500 = 50 then now() end,
			now() - n * interval '1 minute', now() - n * interval '1 minute'
		from generate_series(1, %[2]d) n`, `
		insert into quote_metadata (tenant_id, livemode, key, value, quote_id)
		select tenant_id, livemode, k, case k when 'kind' then 'vip' else number end, id from quotes, unnest(array['kind', 'order']) k where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID(), perTenant)); err != nil {
			t.Fatal(err)
		}
	}
}

func quotesAt(t *testing.T) (*pgtest.DB, ids.Tenant) {
	t.Helper()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fillQuotes(t, conn, tenant)
	fillQuotes(t, conn, ids.New[ids.TenantPrefix]())
	if _, err := conn.Exec(t.Context(), `analyze quotes, quote_metadata, customers, bookings, invoices`); err != nil {
		t.Fatal(err)
	}
	return db, tenant
}

// TestQuotesUseTheirIndexes checks the plans of all reads of quotes on the same rows.
func TestQuotesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db, tenant := quotesAt(t)
	for name, check := range map[string]func(*testing.T, *pgtest.DB, ids.Tenant){
		"lists": checkListsOfQuotes, "due quotes of a tenant": checkDueQuotesOfATenant, "owned rows": checkOwnedRows,
		"what is due for workers": checkWorkersFindWhatIsDue,
	} {
		t.Run(name, func(t *testing.T) { check(t, db, tenant) })
	}
}

func checkListsOfQuotes(t *testing.T, db *pgtest.DB, tenant ids.Tenant) {
	t.Helper()
	now := time.Now()
	middle := now.Add(-perTenant / 2 * time.Minute)
	customer := ids.FromUUID[ids.CustomerPrefix]([16]byte{15: 7})
	lead := ids.FromUUID[ids.LeadPrefix]([16]byte{15: 7})
	booking := ids.FromUUID[ids.BookingPrefix]([16]byte{9: 1, 15: 7})
	draft, sent, expired, accepted := domain.QuoteDraft, domain.QuoteSent, domain.QuoteExpired, domain.QuoteAccepted
	for name, tc := range map[string]struct {
		filter store.QuoteFilter
		req    page.Request
		index  string
	}{
		"all":                {index: "quotes_created"},
		"next page":          {req: page.Request{After: &page.Position{At: middle}}, index: "quotes_created"},
		"created between":    {req: page.Request{CreatedAfter: new(middle), CreatedBefore: new(middle.Add(time.Hour))}, index: "quotes_created"},
		"sync":               {req: page.Request{Updated: true}, index: "quotes_updated"},
		"sync goes on":       {req: page.Request{Updated: true, UpdatedAfter: new(middle)}, index: "quotes_updated"},
		"drafts":             {filter: store.QuoteFilter{Status: []domain.QuoteStatus{draft}}, index: "quotes_status"},
		"sent":               {filter: store.QuoteFilter{Status: []domain.QuoteStatus{sent}}, index: "quotes_status"},
		"sent and accepted":  {filter: store.QuoteFilter{Status: []domain.QuoteStatus{sent, accepted}}, index: "quotes_status"},
		"expired":            {filter: store.QuoteFilter{Status: []domain.QuoteStatus{expired}}, index: "quotes_"},
		"customer":           {filter: store.QuoteFilter{Customer: &customer}, index: "quotes_customer"},
		"customer next page": {filter: store.QuoteFilter{Customer: &customer}, req: page.Request{After: &page.Position{At: middle}}, index: "quotes_customer"},
		"lead":               {filter: store.QuoteFilter{Lead: &lead}, index: "quotes_lead"},
		"booking":            {filter: store.QuoteFilter{Booking: &booking}, index: "quotes_booking"},
		"number":             {filter: store.QuoteFilter{Number: new("Q-77")}, index: "quotes_number"},
		"number and states":  {filter: store.QuoteFilter{Number: new("Q-77"), Status: []domain.QuoteStatus{sent, accepted}}, index: "quotes_number"},
		"pair":               {filter: store.QuoteFilter{Metadata: map[string]string{"order": "Q-77"}}, index: "quote_metadata_pkey"},
		"common pair":        {filter: store.QuoteFilter{Metadata: map[string]string{"kind": "vip"}}, index: "quotes_created"},
	} {
		tc.filter.Now = now
		for _, mode := range pgtest.PlanModes {
			plan := explainQuotes(t, db, pgtest.CtxOf(t, tenant, caller.Test), mode, tc.filter, tc.req)
			if n := int(plan.Removed()); !strings.Contains(plan.String(), tc.index) || strings.Contains(plan.String(), "Seq Scan on quote") || n > perTenant/50 {
				t.Errorf("%s, %s: want %s and few dropped rows, got %d dropped\n%s", name, mode, tc.index, n, plan)
			}
			if n := int(plan.Largest()); n > 2*page.RareMatches {
				t.Errorf("%s, %s: a step of the plan gave %d rows\n%s", name, mode, n, plan)
			}
		}
	}
}

// checkDueQuotesOfATenant checks that the due quotes of one tenant are found by a separate index.
func checkDueQuotesOfATenant(t *testing.T, db *pgtest.DB, tenant ids.Tenant) {
	t.Helper()
	for _, mode := range pgtest.PlanModes {
		found := 0
		plan := pgtest.Explain(t, pgtest.CtxOf(t, tenant, caller.Test), db, mode, func(ctx context.Context, tx pg.Tx) error {
			due, err := store.LapsedQuotesOfTenant(ctx, tx, time.Now(), 30)
			found = len(due)
			return err
		})
		if n := int(plan.Removed()); found != 30 || !strings.Contains(plan.String(), "quotes_due_of_tenant") || n > 0 || plan.Largest() > 30 {
			t.Errorf("%s: %d found, %d dropped\n%s", mode, found, n, plan)
		}
	}
}

// checkOwnedRows checks that the ids of a customer's resources are read by the index of customers.
func checkOwnedRows(t *testing.T, db *pgtest.DB, tenant ids.Tenant) {
	t.Helper()
	customer := ids.FromUUID[ids.CustomerPrefix]([16]byte{15: 7})
	for index, read := range map[string]store.OwnedRows{"quotes_customer": store.QuoteRows, "invoices_customer": store.InvoiceRows} {
		for _, after := range []*page.Position{nil, {At: time.Now()}} {
			plan := pgtest.Explain(t, pgtest.CtxOf(t, tenant, caller.Test), db, pgtest.GenericPlan, func(ctx context.Context, tx pg.Tx) error {
				_, err := read(ctx, tx, customer, page.Request{Limit: 25, After: after})
				return err
			})
			if n := int(plan.Removed()); !strings.Contains(plan.String(), index) || n > 0 || plan.Largest() > 26 {
				t.Errorf("%s: %d dropped\n%s", index, n, plan)
			}
		}
	}
}

func explainQuotes(t *testing.T, db *pgtest.DB, ctx context.Context, mode pgtest.PlanMode, f store.QuoteFilter, r page.Request) *pgtest.Plan {
	t.Helper()
	r.Limit = page.DefaultLimit
	return pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error {
		_, err := store.Quotes(ctx, tx, f, r)
		return err
	})
}

// checkWorkersFindWhatIsDue checks that the workers find the due rows of all tenants page by page, and read no others.
func checkWorkersFindWhatIsDue(t *testing.T, db *pgtest.DB, tenant ids.Tenant) {
	t.Helper()
	count := func(list func(context.Context, pg.Tx, time.Time, store.QuoteDue, int) ([]store.QuoteDue, error)) (n, mine int) {
		t.Helper()
		for after, full := (store.QuoteDue{}), true; full; {
			var found []store.QuoteDue
			err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
				found, err = list(ctx, tx, time.Now(), after, 30)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, after = range found {
				if n++; after.TenantID == tenant {
					mine++
				}
			}
			full = len(found) == 30
		}
		return n, mine
	}
	if n, mine := count(store.LapsedQuotes); n != 2*perTenant/200 || mine != perTenant/200 {
		t.Errorf("%d have expired, %d of the tenant", n, mine)
	}
	for name, except := range map[string][]operation.Owner{"all": nil, "but the tenant's": {{TenantID: tenant}}} {
		var left []store.Left[domain.QuoteID]
		err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) (err error) {
			left, err = store.QuotesLeft(ctx, tx, time.Now(), except, 1000)
			return err
		})
		if want := 2*perTenant/500 - len(except)*perTenant/500; err != nil || len(left) != want {
			t.Errorf("%s: %d are left, want %d (%v)", name, len(left), want, err)
		}
	}
	err := db.Worker.SystemTx(t.Context(), func(ctx context.Context, tx pg.Tx) error {
		for index, list := range map[string]func(tx pg.Tx) error{
			"quotes_due": func(tx pg.Tx) error {
				_, err := store.LapsedQuotes(ctx, tx, time.Now(), store.QuoteDue{}, 30)
				return err
			},
			"quotes_left": func(tx pg.Tx) error {
				_, err := store.QuotesLeft(ctx, tx, time.Now(), nil, 30)
				return err
			},
		} {
			plan := pgtest.NewExplained(t, tx)
			if err := list(plan); err != nil {
				return err
			}
			if !strings.Contains(plan.String(), "using "+index+" ") {
				t.Errorf("want %s\n%s", index, plan)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
