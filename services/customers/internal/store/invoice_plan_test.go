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

// manyInvoices is the number of invoices of each tenant in a plan test.
const manyInvoices = 20_000

// fillInvoices adds a customer and a booking per 20 invoices to the tenant. Few invoices are uncollectible or overdue, most are
// paid, and each has a payment.
func fillInvoices(t *testing.T, conn *pgx.Conn, tenant ids.Tenant) {
	t.Helper()
	for _, sql := range []string{
		`insert into customers (tenant_id, livemode, id, first_name, email, email_lower, created_at, updated_at)
		select '%[1]x', false, gen_random_uuid(), 'c' || n, 'e', 'e', now(), now() from generate_series(1, %[2]d / 20) n`,
		`insert into bookings (tenant_id, livemode, id, status, currency, total, version)
		select '%[1]x', false, gen_random_uuid(), 'pending', 'USD', n, 1 from generate_series(1, %[2]d / 20) n`,
		`with c as (select array_agg(id) ids from customers where tenant_id = '%[1]x'), b as (select array_agg(id) ids from bookings where tenant_id = '%[1]x')
		insert into invoices (tenant_id, livemode, id, seq, number, status, kind, customer_id, booking_id, lines, currency, subtotal, discount, tax,
			total, due_at, created_at, updated_at)
		select '%[1]x', false, gen_random_uuid(), n, 'Inv-' || lpad(n::text, 6, '0'),
			case when n %% 900 = 0 then 'uncollectible' when n %% 950 = 0 then 'partially_paid' when n %% 40 = 0 then 'open' else 'paid' end, 'full',
			c.ids[1 + n %% (%[2]d / 20)], b.ids[1 + n %% (%[2]d / 20)], '[]', 'USD', 1, 0, 0, 1,
			now() + (n - 200) * interval '1 hour', now() - n * interval '1 minute', now() - n * interval '1 minute'
		from c, b, generate_series(1, %[2]d) n`,
		`insert into invoice_payments (tenant_id, livemode, invoice_id, position, id, amount, method, source, paid_at)
		select tenant_id, livemode, id, 1, gen_random_uuid(), 1, 'cash', 'manual', now() from invoices where tenant_id = '%[1]x'`,
		`insert into invoice_metadata (tenant_id, livemode, key, value, invoice_id)
		select tenant_id, livemode, k, case k when 'every' then 'one' else seq::text end, id
		from invoices, unnest(array['every', 'order']) k where tenant_id = '%[1]x'`,
	} {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(sql, tenant.UUID(), manyInvoices)); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func TestInvoiceListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.FS)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tenant := ids.New[ids.TenantPrefix]()
	fillInvoices(t, conn, tenant)
	fillInvoices(t, conn, ids.New[ids.TenantPrefix]())
	if _, err := conn.Exec(t.Context(), `analyze`); err != nil {
		t.Fatal(err)
	}
	var customer domain.CustomerID
	var booking domain.BookingID
	var now time.Time
	err = conn.QueryRow(t.Context(), `select customer_id, booking_id, now() from invoices where tenant_id = $1 and seq = 777`, tenant).
		Scan(&customer, &booking, &now)
	if err != nil {
		t.Fatal(err)
	}
	middle, pairs := now.Add(-manyInvoices/2*time.Minute), func(kv ...string) map[string]string { return map[string]string{kv[0]: kv[1]} }
	for name, tc := range map[string]struct {
		filter store.InvoiceFilter
		req    page.Request
		index  string
		walked bool // rows are read in the order of the list
	}{
		"all":                 {index: "invoices_created"},
		"next page":           {req: page.Request{After: &page.Position{At: middle}}, index: "invoices_created"},
		"created between":     {req: page.Request{CreatedAfter: &middle, CreatedBefore: new(middle.Add(time.Hour))}, index: "invoices_created"},
		"sync":                {req: page.Request{Updated: true}, index: "invoices_updated"},
		"sync next page":      {req: page.Request{Updated: true, After: &page.Position{At: middle}}, index: "invoices_updated"},
		"a state":             {filter: store.InvoiceFilter{Status: []domain.InvoiceStatus{domain.InvoiceUncollectible}}, index: "invoices_status"},
		"no such state":       {filter: store.InvoiceFilter{Status: []domain.InvoiceStatus{domain.InvoiceVoid}}, index: "invoices_status"},
		"states":              {filter: store.InvoiceFilter{Status: []domain.InvoiceStatus{domain.InvoicePaid, domain.InvoiceOpen, domain.InvoiceVoid}}, index: "invoices_status"},
		"states next page":    {filter: store.InvoiceFilter{Status: []domain.InvoiceStatus{domain.InvoicePaid, domain.InvoiceOpen}}, req: page.Request{After: &page.Position{At: middle}}, index: "invoices_status"},
		"customer":            {filter: store.InvoiceFilter{Customer: &customer}, index: "invoices_customer"},
		"booking":             {filter: store.InvoiceFilter{Booking: &booking}, index: "invoices_booking"},
		"number":              {filter: store.InvoiceFilter{Number: new("inv-000777")}, index: "invoices_seq"},
		"no such number":      {filter: store.InvoiceFilter{Number: new("inv-777")}, index: "invoices"},
		"number and states":   {filter: store.InvoiceFilter{Number: new("INV-000780"), Status: []domain.InvoiceStatus{domain.InvoicePaid, domain.InvoiceOpen}}, index: "invoices_seq"},
		"overdue":             {filter: store.InvoiceFilter{Overdue: new(true), Today: now.Add(-100 * time.Hour)}, index: "invoices_overdue"},
		"nothing is overdue":  {filter: store.InvoiceFilter{Overdue: new(true), Today: now.Add(-300 * time.Hour)}, index: "invoices_overdue"},
		"much is overdue":     {filter: store.InvoiceFilter{Overdue: new(true), Today: now.AddDate(9, 0, 0)}, index: "invoices_overdue"},
		"not overdue":         {filter: store.InvoiceFilter{Overdue: new(false), Today: now}, index: "invoices_created", walked: true},
		"due before":          {filter: store.InvoiceFilter{DueBefore: new(now.Add(-150 * time.Hour))}, index: "invoices_due"},
		"all are due before":  {filter: store.InvoiceFilter{DueBefore: new(now.AddDate(9, 0, 0))}, index: "invoices_created", walked: true},
		"due and of customer": {filter: store.InvoiceFilter{DueBefore: new(now), Customer: &customer}, index: "invoices_due"},
		"pair":                {filter: store.InvoiceFilter{Metadata: pairs("order", "77")}, index: "invoice_metadata_pkey"},
		"common pair":         {filter: store.InvoiceFilter{Metadata: pairs("every", "one")}, index: "invoices_created", walked: true},
	} {
		for _, mode := range pgtest.PlanModes {
			plan, got := explainInvoices(t, db, pgtest.CtxOf(t, tenant, caller.Test), mode, tc.filter, tc.req)
			allowed, most := manyInvoices/100, 2*page.RareMatches
			if tc.walked {
				most = 2 * page.WalkLookups
			}
			if n := int(plan.Removed()); !strings.Contains(plan.String(), tc.index) || strings.Contains(plan.String(), "Seq Scan on invoice") || n > allowed {
				t.Errorf("%s, %s: want %s and few dropped rows, got %d dropped\n%s", name, mode, tc.index, n, plan)
			}
			if n := int(plan.Largest()); n > most {
				t.Errorf("%s, %s: a step of the plan gave %d rows\n%s", name, mode, n, plan)
			}
			if want := expectedInvoices(t, conn, tenant, tc.filter, tc.req); !slices.Equal(got, want) {
				t.Errorf("%s, %s: found %v\nwant %v", name, mode, got, want)
			}
		}
	}
}

// expectedInvoices returns the page that a scan of all invoices finds.
func expectedInvoices(t *testing.T, conn *pgx.Conn, tenant ids.Tenant, f store.InvoiceFilter, r page.Request) []domain.InvoiceID {
	t.Helper()
	if _, err := conn.Exec(t.Context(), `select set_config('app.settled', (now() + interval '1 day')::text, false)`); err != nil {
		t.Fatal(err)
	}
	w := &page.Where{}
	w.Add(`v.tenant_id = ?`, tenant)
	if len(f.Status) > 0 {
		w.Add(`v.status = any(?)`, f.Status)
	}
	if f.Customer != nil {
		w.Add(`v.customer_id = ?`, *f.Customer)
	}
	if f.Booking != nil {
		w.Add(`v.booking_id = ?`, *f.Booking)
	}
	if f.Number != nil {
		w.Add(`upper(v.number) = upper(?)`, *f.Number)
	}
	if f.DueBefore != nil {
		w.Add(`v.due_at < ?`, *f.DueBefore)
	}
	if f.Overdue != nil {
		w.Add(`coalesce(v.status in ('open', 'partially_paid') and v.due_at < ?, false) = ?`, f.Today, *f.Overdue)
	}
	for k, value := range f.Metadata {
		w.Add(`exists (select from invoice_metadata i where i.invoice_id = v.id and i.key = ? and i.value = ?)`, k, value)
	}
	r.Limit = page.DefaultLimit
	tail, args := w.Page(r, "v")
	rows, err := conn.Query(t.Context(), `select id from invoices v `+tail, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[domain.InvoiceID])
	if err != nil {
		t.Fatal(err)
	}
	return list[:min(len(list), r.Limit)] // the query requests one more
}

func explainInvoices(t *testing.T, db *pgtest.DB, ctx context.Context, mode pgtest.PlanMode, f store.InvoiceFilter, r page.Request) (plan *pgtest.Plan, found []domain.InvoiceID) {
	t.Helper()
	r.Limit = page.DefaultLimit
	plan = pgtest.Explain(t, ctx, db, mode, func(ctx context.Context, tx pg.Tx) error {
		list, err := store.Invoices(ctx, tx, f, r)
		for _, v := range list.Items {
			found = append(found, v.ID)
		}
		return err
	})
	return plan, found
}
