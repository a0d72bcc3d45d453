package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/migrations"
)

// stored is the size of the table. With TEST_SCALE=full it is the size for which the plans are specified.
var stored = func() int {
	if os.Getenv("TEST_SCALE") == "full" {
		return 100_000
	}
	return 24_000
}()

// TestPlans checks that each filter, planned as the app role under row-level security, uses an index and reads not many more rows
// than it shows. The rows that a scan discards are counted.
func TestPlans(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	c := caller.FromContext(ctx)
	var unit domain.UnitID
	var service domain.ServiceID
	var pack domain.PackageID
	var customer domain.CustomerID
	err := conn.QueryRow(t.Context(), `select unit_id, service_id, package_id, customer_id from bookings where tenant_id = $1 and number = 'B-77'`, c.Tenant).
		Scan(&unit, &service, &pack, &customer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `select set_config('app.settled', (now() + interval '1 day')::text, false)`); err != nil {
		t.Fatal(err)
	}
	day := civil.Date{Year: 2030, Month: 3, Day: 3}
	now, start := time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 3, 3, 0, 0, 0, 0, time.UTC)
	for name, f := range map[string]store.BookingFilter{
		"all":            {},
		"pending":        {Status: []domain.Status{domain.Pending}, Now: now},
		"expired":        {Status: []domain.Status{domain.Expired}, Now: now},
		"no_show":        {Status: []domain.Status{domain.NoShow}, Now: now},
		"several states": {Status: []domain.Status{domain.Pending, domain.NoShow, domain.Completed}, Now: now},
		"payment":        {PaymentStatus: []domain.PaymentStatus{domain.Overpaid}},
		"payments":       {PaymentStatus: []domain.PaymentStatus{domain.Overpaid, domain.Refunded}},
		"customer":       {Customer: &customer},
		"service":        {Service: &service},
		"unit":           {Unit: &unit},
		"package":        {Package: &pack},
		"event type":     {EventType: new("type 77")},
		"number":         {Number: new("B-77")},
		"upcoming":       {StartsAfter: &start, Status: []domain.Status{domain.Pending, domain.Confirmed}, Now: now},
		"starts":         {StartsAfter: &start, StartsBefore: new(start.Add(time.Hour))},
		"number, states": {Number: new("B-77"), Status: []domain.Status{domain.Pending, domain.Completed}, Now: now},
		"day":            {From: &day, To: &day},
		"metadata":       {Metadata: map[string]string{"order": "77"}},
		"two pairs":      {Metadata: map[string]string{"order": "77", "kind": "vip"}},
		"common pair":    {Metadata: map[string]string{"every": "one"}},
		"common pairs":   {Metadata: map[string]string{"every": "one", "third": "1"}},
		"old pair":       {Metadata: map[string]string{"age": "old"}},
		"pair of states": {Metadata: map[string]string{"every": "one"}, Status: []domain.Status{domain.Pending, domain.Completed}, Now: now},
		"pair of unit":   {Metadata: map[string]string{"every": "one"}, Unit: &unit},
		"unit and day":   {Unit: &unit, From: &day, To: &day},
	} {
		requests := []page.Request{{Limit: 25}, {Limit: 25, After: &page.Position{At: now.AddDate(2, 0, 0), ID: [16]byte{1}}}}
		if name == "all" {
			requests = append(requests, page.Request{Limit: 25, Updated: true})
		}
		if name == "all" || name == "upcoming" || name == "no_show" {
			requests = append(requests, page.Request{Limit: 25, By: "starts_at"}, page.Request{Limit: 25, By: "starts_at", After: &page.Position{At: start.AddDate(0, 2, 0), ID: [16]byte{1}}})
		}
		for _, r := range requests {
			plan, found := explainBookings(t, db, ctx, f, r)
			if strings.Contains(plan.String(), "Seq Scan") {
				t.Errorf("%s reads all rows:\n%s", name, plan)
			}
			most := float64(stored) / 240 // as many rows as the filter itself selects
			if name == "old pair" {
				most = float64(2*page.WalkLookups + stored/2 + 2) // the rows that are checked, counted, and all matches
			}
			if plan.Read("bookings") > most {
				t.Errorf("%s reads %v rows of %d:\n%s", name, plan.Read("bookings"), stored, plan)
			}
			if want := expected(t, ctx, conn, f, r); !slices.Equal(found, want) {
				t.Errorf("%s: found %v\nwant %v", name, found, want)
			}
		}
	}
}

// TestPlanOfDays checks that a day is found among bookings that all last overnight, and among bookings of weeks and months, without
// reading those of other days.
func TestPlanOfDays(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	if _, err := conn.Exec(t.Context(), `update bookings set starts_at = event_day + time '22:00', ends_at = event_day + time '22:00' +
		case substr(number, 3)::int % 1000 when 1 then interval '7 days' when 2 then interval '30 days' when 3 then interval '90 days' else interval '4 hours' end`); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`vacuum bookings`, `analyze`} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	day := civil.Date{Year: 2030, Month: 6, Day: 10}
	now := time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, f := range map[string]store.BookingFilter{
		"day":        {From: &day, To: &day},
		"day, state": {From: &day, To: &day, Status: []domain.Status{domain.Pending, domain.Completed}, Now: now},
	} {
		for _, r := range []page.Request{{Limit: 100}, {Limit: 100, After: &page.Position{At: now.AddDate(2, 0, 0), ID: [16]byte{1}}}} {
			plan, found := explainBookings(t, db, ctx, f, r)
			if most := float64(stored) / 365 * 20; plan.Read("bookings") > most || strings.Contains(plan.String(), "Seq Scan") { // a day has a 365th, the nights and the list read it several times
				t.Errorf("%s reads %v rows of %d:\n%s", name, plan.Read("bookings"), stored, plan)
			}
			rows, err := conn.Query(t.Context(), `select number from bookings b where (b.event_day = $1 or b.event_day < $1 and b.ends_at at time zone b.timezone > $1)
				and (cardinality($2::text[]) is null or b.status = any($2) and (b.status <> 'pending' or b.hold_expires_at > $3)) order by created_at desc, id desc limit 100`,
				day.UTC(), f.Status, now)
			if err != nil {
				t.Fatal(err)
			}
			want, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || !slices.Equal(found, want) {
				t.Errorf("%s: %d are found, %d expected, %v", name, len(found), len(want), err)
			}
		}
	}
}

// TestPlanOfBookingIDs checks that the ids of a customer's bookings are read by the index of customers.
func TestPlanOfBookingIDs(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	var customer domain.CustomerID
	if err := conn.QueryRow(t.Context(), `select customer_id from bookings where customer_id is not null limit 1`).Scan(&customer); err != nil {
		t.Fatal(err)
	}
	for name, after := range map[string]*page.Position{"first": nil, "next": {At: time.Now()}} {
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
			_, err := store.BookingIDs(ctx, tx, customer, page.Request{Limit: 25, After: after})
			return err
		})
		if plan.Read("bookings") > 30 || !strings.Contains(plan.String(), "bookings_customer") {
			t.Errorf("%s page: %v rows are read\n%s", name, plan.Read("bookings"), plan)
		}
	}
}

// expected returns the page that a scan of all bookings finds for a filter's pairs, within the rows of the other filters.
func expected(t *testing.T, ctx context.Context, conn *pgx.Conn, f store.BookingFilter, r page.Request) []string {
	t.Helper()
	pairs := f.Metadata
	f.Metadata = nil
	sql, args := store.BookingsSQL(f, page.Request{Limit: stored, After: r.After, Updated: r.Updated, By: r.By}, func(w *page.Where) {
		for k, v := range pairs {
			w.Add(`exists (select from booking_metadata i where i.booking_id = b.id and i.key = ? and i.value = ?)`, k, v)
		}
	})
	rows, err := conn.Query(ctx, `select number from (`+sql+`) b limit 25`, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestClaimsPlan checks that only the claims of a day and the one before are read, regardless of the other claims of the unit.
func TestClaimsPlan(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	var unit domain.UnitID
	if err := conn.QueryRow(t.Context(), `select id from units where name = 'u77'`).Scan(&unit); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2020, 1, 15, 0, 30, 0, 0, time.UTC) // in the middle of a claim
	rows, err := conn.Query(t.Context(), `select id from units`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[domain.UnitID])
	if err != nil {
		t.Fatal(err)
	}
	for units, ids := range map[float64][]domain.UnitID{1: {unit}, 100: all} {
		plan := explain(t, db, ctx, store.ClaimsSQL, pg.Args{"from": from, "to": from.AddDate(0, 0, 1), "units": ids, "now": from, "limit": availability.MaxClaims + 1})
		if plan.Read("unit_claims") != 13*units || plan.Read("bookings") != 13*units {
			t.Errorf("of %v units %v claims and %v bookings are read, want 13 of each unit:\n%s", units, plan.Read("unit_claims"), plan.Read("bookings"), plan)
		}
	}
}

// TestSessionsPlan checks that availability reads of a session only its pending bookings, and that a booking reads only the claim that
// can be its session, regardless of the other claims of the unit.
func TestSessionsPlan(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	var unit domain.UnitID
	for _, sql := range []string{
		`update bookings set status = 'pending', starts_at = at, ends_at = at + interval '1 hour'
			from (select booking_id, starts_at as at from unit_claims) c where c.booking_id = id`,
		`update unit_claims c set booking_id = (select gen_random_uuid() where c.booking_id is not null),
			slot_from = starts_at, slot_to = ends_at, capacity = 10, taken = 0`,
		`update bookings b set session_id = c.booking_id, seats = 1 from unit_claims c
			where c.unit_id = b.unit_id and c.starts_at = b.starts_at`,
		`analyze`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := conn.QueryRow(t.Context(), `select id from units where name = 'u77'`).Scan(&unit); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2020, 1, 15, 0, 30, 0, 0, time.UTC)
	p := explain(t, db, ctx, store.ClaimsSQL, pg.Args{
		"from": from, "to": from.AddDate(0, 0, 1), "units": []domain.UnitID{unit}, "now": from, "limit": availability.MaxClaims + 1,
	})
	if p.Read("unit_claims") != 13 || p.Read("bookings") != 13 || !strings.Contains(p.String(), "bookings_session") {
		t.Errorf("%v claims and %v bookings are read, want 13 sessions with one pending booking each:\n%s", p.Read("unit_claims"), p.Read("bookings"), p)
	}
	p = explain(t, db, ctx, store.SessionSQL, pg.Args{"unit": unit, "from": from})
	if p.Read("unit_claims") > 2 { // the row, and once more to lock it
		t.Errorf("%v claims are read for a session:\n%s", p.Read("unit_claims"), p)
	}
	p = explain(t, db, ctx, store.ClaimedSQL, pg.Args{"unit": unit, "now": from.AddDate(2, 0, 0)})
	if p.Read("unit_claims") > 200 {
		t.Errorf("%v claims are read for the later ones:\n%s", p.Read("unit_claims"), p)
	}
}

// TestLinksPlan checks that the booking of a quote or a lead, and the payments of a booking, are found by index. A page of bookings
// reads only its own invoices.
func TestLinksPlan(t *testing.T) {
	t.Parallel()
	db, ctx, conn := filled(t, many)
	for _, sql := range []string{
		`update bookings set lead_id = gen_random_uuid(), quote_id = case when substr(number, 3)::int % 2 = 0 then gen_random_uuid() end`,
		`insert into booking_invoices (tenant_id, livemode, invoice_id, booking_id, version, currency, opened)
			select tenant_id, livemode, 'inv_' || n || number, id, 1, 'USD', true from bookings, generate_series(1, 2) n`,
		`insert into booking_payments select tenant_id, livemode, 'pay_' || n || number, id, 'inv_1' || number, 5, 'USD' from bookings, generate_series(1, 2) n`,
		`analyze`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	var quote domain.QuoteID
	var lead domain.LeadID
	var booking domain.BookingID
	err1 := conn.QueryRow(t.Context(), `select id, quote_id from bookings where number = 'B-78'`).Scan(&booking, &quote)
	err2 := conn.QueryRow(t.Context(), `select lead_id from bookings where number = 'B-77'`).Scan(&lead)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		sql            string
		args           pg.Args
		read, invoices float64
	}{
		"quote": {store.OfQuoteSQL, pg.Args{"quote": quote}, 1, 2},
		"lead":  {store.OfLeadSQL, pg.Args{"lead": lead}, 1, 2},
		"sums":  {store.SumsSQL, pg.Args{"booking": booking, "currency": "USD"}, 0, 2},
	} {
		plan := explain(t, db, ctx, tc.sql, tc.args)
		if plan.Read("bookings") != tc.read || plan.Read(billed...) != tc.invoices || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s reads %v bookings and %v invoices or payments:\n%s", name, plan.Read("bookings"), plan.Read(billed...), plan)
		}
	}
	if _, err := conn.Exec(t.Context(), `insert into booking_payments (tenant_id, livemode, payment_id, booking_id, invoice_id, amount, currency)
		select tenant_id, livemode, 'pay_more' || n || number, id, '', 5, 'USD' from bookings, generate_series(1, 200) n where id = $1`, booking); err != nil {
		t.Fatal(err)
	}
	for name, after := range map[string]*page.Position{"first": nil, "next": {At: time.Now().AddDate(1, 0, 0)}} {
		var rows page.Rows[domain.BookingPayment]
		plan := pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) (err error) {
			rows, err = store.Payments(ctx, tx, booking, page.Request{Limit: 25, After: after})
			return err
		})
		if len(rows.Items) != 25 || !rows.More || plan.Statements() != 1 || plan.Read("bookings") != 1 || plan.Read(billed...) != 26 || !strings.Contains(plan.String(), "booking_payments_listed") {
			t.Errorf("the %s page of %d payments, by %d queries, reads %v payments:\n%s", name, len(rows.Items), plan.Statements(), plan.Read(billed...), plan)
		}
	}
	plan, _ := explainBookings(t, db, ctx, store.BookingFilter{}, page.Request{Limit: 25})
	if plan.Read(billed...) != 52 { // the 25 and one more, which shows whether others follow
		t.Errorf("a page reads %v invoices:\n%s", plan.Read(billed...), plan)
	}
}

// billed are the tables with the invoices and payments of bookings.
var billed = []string{"booking_invoices", "booking_payments"}

// filled returns a database with the rows that the statements write for a tenant in live mode, the context of its caller, and a
// connection of the owner.
func filled(t testing.TB, statements []string) (*pgtest.DB, context.Context, *pgx.Conn) {
	t.Helper()
	tenant := ids.FromUUID[ids.TenantPrefix]([16]byte{15: 1})
	db := pgtest.New(t, migrations.FS, of(tenant, true, statements)...)
	return db, pgtest.CtxOf(t, tenant, caller.Live), owner(t, db)
}

// of returns statements with a tenant and a mode instead of $1 and $2.
func of(tenant ids.Tenant, live bool, statements []string) []string {
	values := strings.NewReplacer("$1", fmt.Sprintf("uuid '%x'", tenant.UUID()), "$2", strconv.FormatBool(live))
	var list []string
	for _, sql := range statements {
		list = append(list, values.Replace(sql))
	}
	return list
}

// many are the statements that store bookings. One in 8 of the rows belongs to a rare state, and the filters select few rows each.
var many = []string{
	`insert into services (tenant_id, livemode, id, name) select $1, $2, gen_random_uuid(), 's' || n from generate_series(1, 100) n`,
	`insert into units (tenant_id, livemode, id, name) select $1, $2, gen_random_uuid(), 'u' || n from generate_series(1, 100) n`,
	`insert into packages (tenant_id, livemode, id, service_id, name, currency, base_price)
		select $1, $2, gen_random_uuid(), id, 'p', 'USD', 1 from services where tenant_id = $1 and livemode = $2`,
	`insert into customers select $1, $2, gen_random_uuid(), 'c' || n, 1, false from generate_series(1, 1000) n`,
	`with u as (select array_agg(id) ids from units where tenant_id = $1), s as (select array_agg(id) ids from services where tenant_id = $1),
	      p as (select array_agg(id) ids from packages where tenant_id = $1), k as (select array_agg(id) ids from customers where tenant_id = $1)
	insert into bookings (tenant_id, livemode, id, number, status, unit_id, service_id, package_id, customer_id, event_type, event_day, timezone,
		currency, total, gross, deposit, paid, refunded, payment_status, hold_expires_at, created_at, updated_at)
	select $1, $2, gen_random_uuid(), 'B-' || n,
		case when n % 800 = 0 then 'no_show' when n % 700 = 0 then 'expired' when n % 3 = 0 then 'pending' when n % 3 = 1 then 'confirmed' else 'completed' end,
		u.ids[1 + n % 100], s.ids[1 + n % 100], p.ids[1 + n % 100], k.ids[1 + n % 1000], 'type ' || n % 500, date '2030-01-01' + n % 365, 'UTC',
		'USD', 0, 0, 0, 0, 0, case when n % 900 = 0 then 'overpaid' when n % 950 = 0 then 'refunded' else 'unpaid' end,
		case when n % 3 = 0 then timestamptz '2029-06-01' end,
		timestamptz '2026-01-01' + n * interval '1 minute', timestamptz '2026-01-01' + n * interval '1 minute'
	from u, s, p, k, generate_series(1, ` + fmt.Sprint(stored) + `) n`,
	`insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at)
		select tenant_id, livemode, id, unit_id, at, at + interval '1 hour'
		from bookings, lateral (select timestamptz '2020-01-01' + substr(number, 3)::int / 100 * interval '2 hours') as t(at)
		where tenant_id = $1 and livemode = $2`,
	`insert into booking_metadata select tenant_id, livemode, 'order', substr(number, 3), id from bookings where tenant_id = $1 and livemode = $2`,
	`insert into booking_metadata select tenant_id, livemode, 'every', 'one', id from bookings where tenant_id = $1 and livemode = $2`,
	`insert into booking_metadata select tenant_id, livemode, 'third', (substr(number, 3)::int % 3)::text, id from bookings where tenant_id = $1 and livemode = $2`,
	`insert into booking_metadata select tenant_id, livemode, 'age', 'old', id from bookings
		where tenant_id = $1 and livemode = $2 and substr(number, 3)::int <= ` + fmt.Sprint(stored/2) + `::int`,
	`insert into booking_metadata select tenant_id, livemode, 'kind', 'vip', id from bookings where tenant_id = $1 and livemode = $2 and substr(number, 3)::int % 20 = 17`,
	"analyze",
}

// owner opens a connection in the role that owns the tables.
func owner(t testing.TB, db *pgtest.DB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func explainBookings(t *testing.T, db *pgtest.DB, ctx context.Context, f store.BookingFilter, r page.Request) (plan *pgtest.Plan, numbers []string) {
	t.Helper()
	plan = pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
		list, err := store.Bookings(ctx, tx, f, r)
		for _, b := range list.Items {
			numbers = append(numbers, b.Number)
		}
		return err
	})
	return plan, numbers
}

func explain(t *testing.T, db *pgtest.DB, ctx context.Context, sql string, args pg.Args) *pgtest.Plan {
	t.Helper()
	return pgtest.Explain(t, ctx, db, pgtest.CustomPlan, func(ctx context.Context, tx pg.Tx) error {
		rows, err := tx.Query(ctx, sql, args)
		if err == nil {
			rows.Close()
		}
		return err
	})
}
