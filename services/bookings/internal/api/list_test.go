package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

type list struct {
	Data       []booking
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

func (w *world) list(ctx context.Context, path string) list {
	w.T.Helper()
	return decode[list](w.do(ctx, "GET", path, "").is(200))
}

// fill inserts n bookings of ctx's caller, all created at the same instant.
func (w *world) fill(ctx context.Context, n int, status string) {
	w.T.Helper()
	c := caller.FromContext(ctx)
	created := make([]domain.BookingID, n)
	for i := range created {
		created[i] = domain.NewBookingID()
	}
	w.Exec(`insert into bookings (tenant_id, livemode, id, number, status, event_day, timezone, currency, total, gross, deposit, paid, refunded,
			payment_status, hold_expires_at, created_at, updated_at)
		select $1, $2, id, id::text, $4, '2030-05-01', 'UTC', 'USD', 0, 0, 0, 0, 0, 'unpaid',
			case when $4 = 'pending' and get_byte(uuid_send(id), 15) % 2 = 0 then timestamptz '2020-01-01' end,
			'2026-01-02 03:04:05.678901Z', '2026-01-02 03:04:05.678901Z'
		from unnest($3::uuid[]) id`, c.Tenant, c.Live(), created, status)
}

// synced waits until a list has n rows, because running transactions in this database delay sort=updated_at.
func (w *world) synced(ctx context.Context, path string, n int) []booking {
	w.T.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if got := w.list(ctx, path).Data; len(got) >= n || time.Now().After(deadline) {
			return got
		}
	}
}

// pages reads a list to its end. It calls between after each page.
func (w *world) pages(ctx context.Context, query string, between func(page int, last list)) []string {
	w.T.Helper()
	var out []string
	for n, next := 0, ""; ; n++ {
		page := w.list(ctx, "/bookings?"+query+next)
		for _, b := range page.Data {
			out = append(out, b.ID)
		}
		if page.HasMore != (page.NextCursor != nil) {
			w.T.Fatalf("has_more %v with cursor %v", page.HasMore, page.NextCursor)
		}
		if !page.HasMore {
			return out
		}
		next = "&cursor=" + url.QueryEscape(*page.NextCursor)
		if between != nil {
			between(n, page)
		}
	}
}

func distinct(list []string) int { return len(slices.Compact(slices.Sorted(slices.Values(list)))) }

func TestPagesOfOneTimestamp(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.fill(ctx, 400, "pending")
	w.fill(ctx, 300, "confirmed")
	w.fill(ctx, 300, "expired")
	w.synced(ctx, "/bookings?limit=1&sort=updated_at&status=expired", 1)
	for query, n := range map[string]int{
		"limit=100": 1000, "limit=99&sort=updated_at": 1000, "limit=97&status=pending,expired,confirmed": 1000,
		"limit=50&status=expired,pending&sort=updated_at": 700, "limit=33&status=confirmed": 300,
	} {
		if got := w.pages(ctx, query, nil); len(got) != n || distinct(got) != n {
			t.Errorf("%s: %d rows, %d of them distinct", query, len(got), distinct(got))
		}
	}
	before := w.pages(ctx, "limit=100", nil)
	got := w.pages(ctx, "limit=100", func(n int, _ list) {
		w.book(ctx, `"event_date":"2030-05-01"`) // before all other rows
	})
	if !slices.Equal(got, before) {
		t.Error("inserts between the pages changed them")
	}
}

func TestBookingFilters(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s, ann, bob := w.shop(ctx), w.customer(ctx), w.customer(ctx)
	a := w.book(ctx, `"event_date":"2030-05-01","customer_id":"%s","package_id":"%s","unit_id":"%s","event_type":"Wedding","metadata":{"order":"17","k":"v"}`, ann, s.flat, s.ada)
	b := w.book(ctx, `"event_date":"2030-05-02","customer_id":"%s","service_id":"%s","unit_id":"%s","event_type":"wedding","metadata":{"order":"18","k":"v"}`, bob, s.rental, s.cat)
	c := w.book(ctx, `"event_date":"2030-05-03T03:00:00Z","customer_id":"%s","status":"confirmed","metadata":["order","17"]`, ann)
	w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", "").is(200)
	w.Exec(`update bookings set payment_status = 'paid' where id = $1`, uuidOf(t, c.ID))
	cases := map[string][]booking{
		"":                                                 {a, b, c},
		"status=pending":                                   {a},
		"status=cancelled":                                 {b},
		"status=canceled":                                  {b},
		"status=canceled,cancelled,confirmed":              {b, c},
		"status=pending,confirmed":                         {a, c},
		"status=pending,pending":                           {a},
		"status=expired":                                   {},
		"payment_status=unpaid":                            {a, b},
		"payment_status=paid,unpaid":                       {a, b, c},
		"payment_status=refunded":                          {},
		"customer_id=" + ann:                               {a, c},
		"customer_id=cu_x":                                 {},
		"customer_id=":                                     {},
		"service_id=" + s.tour.String():                    {a},
		"service_id=" + s.rental.String():                  {b},
		"unit_id=" + s.ada.String():                        {a},
		"package_id=" + s.flat.String():                    {a},
		"package_id=" + s.share.String():                   {},
		"event_type=wedding":                               {b},
		"number=" + a.Number:                               {a},
		"number=" + strings.ToLower(b.Number):              {b},
		"number=" + b.Number + "&status=pending,expired":   {},
		"number=" + c.Number + "&status=pending,confirmed": {c},
		"number=" + strings.TrimPrefix(a.Number, "B-"):     {},
		"number=":                          {},
		"event_date_from=2030-05-02":       {b, c},
		"event_date_to=2030-05-02":         {a, b, c},
		"event_date_to=2030-05-01":         {a},
		"event_date_from=2030-05-03":       {},
		"metadata[order]=17":               {a},
		"metadata[k]=v":                    {a, b},
		"metadata[k]=v&metadata[order]=18": {b},
		"metadata[0]=order":                {},
		"event_date_from=2030-05-01&event_date_to=2030-05-02&status=pending,cancelled&customer_id=" + bob: {b},
		"created_after=2100-01-01T00:00:00Z":  {},
		"created_before=2100-01-01T00:00:00Z": {a, b, c},
		"updated_before=2020-01-01T00:00:00Z": {},
	}
	for query, want := range cases {
		for _, sort := range []string{"", "&sort=updated_at", "&sort=starts_at"} {
			got := []string{}
			for _, row := range w.synced(ctx, "/bookings?"+query+sort, len(want)) {
				got = append(got, row.ID)
			}
			expected := []string{}
			for _, row := range want {
				expected = append(expected, row.ID)
			}
			slices.Sort(got)
			slices.Sort(expected)
			if !slices.Equal(got, expected) {
				t.Errorf("%s%s: got %v, want %v", query, sort, got, expected)
			}
		}
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "sort=id": "sort", "status=open": "status", "status=": "status",
		"payment_status=due": "payment_status", "expand=unit": "expand", "event_date_from=2030-13-01": "event_date_from",
		"event_date_to=1899-12-31": "event_date_to", "event_date_to=x": "event_date_to", "active=true": "active", "event_type=%00": "event_type",
		"number=" + strings.Repeat("9", 51): "number", "number=B-1&number=B-2": "number", "q=x": "q",
	} {
		w.do(ctx, "GET", "/bookings?"+query, "").is(422, "invalid_request", field)
	}
}

func uuidOf(t *testing.T, s string) domain.BookingID {
	t.Helper()
	parsed, err := ids.Parse[domain.BookingPrefix](s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestCursorsOfOthers(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	w.fill(ctx, 30, "confirmed")
	w.shop(ctx)
	cursor := *w.list(ctx, "/bookings?limit=10&status=confirmed").NextCursor
	use := func(ctx context.Context, list, query, cursor string) response {
		return w.do(ctx, "GET", "/"+list+"?"+query+"&cursor="+url.QueryEscape(cursor), "")
	}
	gone := *w.list(ctx, "/bookings?limit=10&status=confirmed,canceled").NextCursor
	use(ctx, "bookings", "status=confirmed,cancelled", gone).is(200)
	if got := decode[list](use(ctx, "bookings", "limit=100&status=confirmed", cursor).is(200)); len(got.Data) != 20 || got.HasMore {
		t.Errorf("limit may change: %d rows", len(got.Data))
	}
	use(in(ctx, func(c *caller.Caller) { c.Credential = "key_second" }), "bookings", "status=confirmed", cursor).is(200)
	use(live, "bookings", "status=confirmed", cursor).is(400, "invalid_cursor")
	use(pgtest.Ctx(t, caller.Test), "bookings", "status=confirmed", cursor).is(400, "invalid_cursor")
	for _, query := range []string{"", "status=pending", "status=confirmed&sort=updated_at", "status=confirmed&unit_id=un_x", "status=confirmed&number=B-1", "status=confirmed&metadata[a]=1"} {
		use(ctx, "bookings", query, cursor).is(400, "invalid_cursor")
	}
	units := *w.list(ctx, "/units?limit=2").NextCursor
	for _, name := range []string{"bookings", "services", "packages"} {
		use(ctx, name, "", units).is(400, "invalid_cursor")
	}
	use(ctx, "units", "", cursor[1:]).is(400, "invalid_cursor")
	use(ctx, "units", "", strings.Repeat("A", 2000)).is(400, "invalid_cursor")
	if got := decode[list](use(ctx, "units", "limit=3", units).is(200)); len(got.Data) != 3 {
		t.Errorf("%d units", len(got.Data))
	}
}

// TestSyncMissesNothing checks that sort=updated_at omits rows that a write which began earlier and is still running could precede.
func TestSyncMissesNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	first := w.book(ctx, `"event_date":"2030-05-01"`)
	w.synced(ctx, "/bookings?sort=updated_at", 1)
	running, err := w.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := running.Exec(t.Context(), `select pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	second := w.book(ctx, `"event_date":"2030-05-02"`)
	if got := w.synced(ctx, "/bookings?sort=updated_at", 1); len(got) != 1 || got[0].ID != first.ID {
		t.Errorf("%d rows during a running write", len(got))
	}
	if err := running.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := w.synced(ctx, "/bookings?sort=updated_at&updated_after="+url.QueryEscape(second.UpdatedAt.Format(time.RFC3339Nano)), 1)
	if len(got) != 1 || got[0].ID != second.ID {
		t.Errorf("updated_after is inclusive: %d rows", len(got))
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	w, plain := newWorld(t), pgtest.Ctx(t, caller.Test)
	ctx := in(plain, func(c *caller.Caller) { c.Scopes = []string{"read:bookings", "read:customers"} })
	ann, bob := w.customer(ctx), w.customer(ctx)
	a := w.book(ctx, `"event_date":"2030-05-01","customer_id":"%s"`, ann)
	w.book(ctx, `"event_date":"2030-05-01","customer_id":"%s"`, ann)
	w.book(ctx, `"event_date":"2030-05-01","customer_id":"%s"`, bob)
	w.book(ctx, `"event_date":"2030-05-01"`)
	w.customers.Erase(parseCustomer(t, bob))
	calls := w.customers.Calls()
	got := w.list(ctx, "/bookings?expand=customer").Data
	var seen []string
	for _, b := range got {
		seen = append(seen, map[bool]string{true: "null", false: "body"}[string(b.Customer) == "null"])
	}
	if strings.Join(seen, " ") != "null null body body" || w.customers.Calls() != calls+1 {
		t.Errorf("got %v by %d calls", seen, w.customers.Calls()-calls)
	}
	if b := decode[booking](w.do(ctx, "GET", "/bookings/"+a.ID+"?expand=customer", "").is(200)); !strings.Contains(string(b.Customer), ann) {
		t.Errorf("got %s", b.Customer)
	}
	if b := w.get(ctx, a.ID); b.Customer != nil {
		t.Errorf("not requested: %s", b.Customer)
	}
	for _, path := range []string{"/bookings?expand=customer", "/bookings/" + a.ID + "?expand=customer", "/bookings/bk_x?expand=customer"} {
		refused := w.do(plain, "GET", path, "").is(403, "insufficient_scope")
		if !strings.Contains(refused.Header.Get("WWW-Authenticate"), "read:customers") || !strings.Contains(string(refused.Body), "read:customers") {
			t.Errorf("the scope is not named: %s", refused.Body)
		}
	}
}

func parseCustomer(t *testing.T, s string) ids.Customer {
	t.Helper()
	parsed, err := ids.Parse[ids.CustomerPrefix](s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	for path, n := range map[string]int{
		"/services": 3, "/services?active=true": 2, "/services?active=false": 1, "/services?service_id=" + s.tour.String(): 1, "/services?service_id=srv_x": 0, "/units": 5, "/units?active=true": 3, "/units?active=false": 2,
		"/units?service_id=" + s.tour.String(): 4, "/units?service_id=" + s.rental.String(): 1, "/units?service_id=srv_x": 0, "/packages": 7,
		"/packages?active=false": 1, "/packages?service_id=" + s.tour.String(): 5, "/packages?service_id=" + s.rental.String() + "&active=true": 2,
		"/packages?service_id=x": 0, "/units?service_id=" + s.tour.String() + "&active=true": 2,
	} {
		for _, sort := range []string{"sort=created_at", "sort=updated_at"} {
			sep := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
			if got := w.synced(ctx, path+sep+sort, n); len(got) != n {
				t.Errorf("%s: %d rows", path, len(got))
			}
		}
	}
	for _, path := range []string{"/services?active=1", "/units?active=", "/packages?active=yes"} {
		w.do(ctx, "GET", path, "").is(422, "invalid_request", "active")
	}
	u := decode[struct {
		ServiceIDs   []string              `json:"service_ids"`
		OpeningHours map[string][][]string `json:"opening_hours"`
		Status       string
	}](w.do(ctx, "GET", "/units/"+s.sold.String(), "").is(200))
	if !slices.Equal(u.ServiceIDs, []string{s.tour.String()}) || u.OpeningHours["mon"][0][1] != "17:00" || u.Status != "retired" {
		t.Errorf("%+v", u)
	}
	p := w.do(ctx, "GET", "/packages/"+s.onlyAda.String(), "").is(200)
	if !strings.Contains(string(p.Body), fmt.Sprintf(`"unit_ids":["%s"]`, s.ada)) || p.Header.Get("ETag") != `"1"` {
		t.Errorf("%s", p.Body)
	}
	v := w.do(ctx, "GET", "/services/"+s.rental.String(), "").is(200)
	if !strings.Contains(string(v.Body), fmt.Sprintf(`"unit_ids":["%s"]`, s.cat)) {
		t.Errorf("%s", v.Body)
	}
}
