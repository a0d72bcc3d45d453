package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

// fill inserts n customers of ctx's caller, all created at the same instant.
func (w *world) fill(ctx context.Context, n int) {
	w.T.Helper()
	c := caller.FromContext(ctx)
	list := make([]ids.Customer, n)
	for i := range list {
		list[i] = ids.New[ids.CustomerPrefix]()
	}
	w.Exec(`insert into customers (tenant_id, livemode, id, first_name, email, email_lower, version, created_at, updated_at)
		select $1, $2, id, 'Ann', 'a@b.co', 'a@b.co', 1, '2026-01-02 03:04:05.678901Z', '2026-01-02 03:04:05.678901Z'
		from unnest($3::uuid[]) id`, c.Tenant, c.Live(), list)
}

// pages reads a list to its end. It calls between after each page.
func (w *world) pages(ctx context.Context, query string, between func(page int, last list)) []string {
	w.T.Helper()
	var out []string
	for n, next := 0, ""; ; n++ {
		page := w.do(ctx, "GET", "/customers?"+query+next, "").is(200).list()
		for _, c := range page.Data {
			out = append(out, c.ID)
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

// settled waits until the sync list contains n rows. Writes in other databases also delay the list, because transaction ids belong
// to the server.
func (w *world) settled(ctx context.Context, n int) {
	w.T.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if len(w.pages(ctx, "limit=100&sort=updated_at", nil)) == n {
			return
		}
	}
	w.T.Fatalf("the sync list never shows %d rows", n)
}

func distinct(list []string) int { return len(slices.Compact(slices.Sorted(slices.Values(list)))) }

func TestPagesOfOneTimestamp(t *testing.T) {
	t.Parallel()
	for _, sort := range []string{"", "&sort=created_at", "&sort=updated_at"} {
		w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
		w.fill(ctx, 1000)
		w.settled(ctx, 1000)
		for _, limit := range []string{"limit=100", "limit=99", "limit=1"} {
			if limit == "limit=1" && sort != "" {
				continue
			}
			if got := w.pages(ctx, limit+sort, nil); len(got) != 1000 || distinct(got) != 1000 {
				t.Errorf("%s%s: %d rows, %d of them distinct", limit, sort, len(got), distinct(got))
			}
		}
	}
}

func TestPagesAmidInsertsAndDeletes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.fill(ctx, 1000)
	before := w.pages(ctx, "limit=100", nil)
	erased := map[string]bool{}
	got := w.pages(ctx, "limit=100", func(n int, last list) {
		w.create(ctx, "") // before all other rows
		shown, ahead := last.Data[len(last.Data)-1].ID, before[(n+1)*100+50]
		for _, id := range []string{shown, ahead} {
			w.do(ctx, "DELETE", "/customers/"+id, "").is(204)
			erased[id] = true
		}
	})
	if distinct(got) != len(got) {
		t.Error("a row came twice")
	}
	for _, id := range before {
		if !slices.Contains(got, id) && !erased[id] {
			t.Errorf("%s was skipped", id)
		}
	}
	if len(got) != 1000-9 {
		t.Errorf("%d rows, want those of the start without the 9 erased ahead", len(got))
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.fill(ctx, 101)
	for query, want := range map[string]int{"": 25, "?limit=1": 1, "?limit=100": 100} {
		if got := w.do(ctx, "GET", "/customers"+query, "").is(200).list(); len(got.Data) != want || !got.HasMore {
			t.Errorf("%s: %d rows", query, len(got.Data))
		}
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "limit=1.0": "limit", "limit=1&limit=1": "limit", "sort=name": "sort",
		"page=2": "page", "created_after=2026-01-01T00:00:00": "created_after", "updated_before=tomorrow": "updated_before",
		"email=" + strings.Repeat("e", 256): "email", "phone=" + strings.Repeat("1", 51): "phone", "q=" + strings.Repeat("q", 201): "q",
		"q=%00": "q", "metadata=x": "metadata", "metadata[k]=" + strings.Repeat("v", 501): "metadata.k", "metadata[k]=1&metadata[k]=2": "metadata.k",
	} {
		w.do(ctx, "GET", "/customers?"+query, "").is(422, "invalid_request", field)
	}
	if got := w.do(ctx, "GET", "/customers?q="+strings.Repeat("%C3%A9", 200), "").is(200).list(); len(got.Data) != 0 {
		t.Errorf("got %v", got.Data)
	}
	w.do(ctx, "GET", "/customers?limit=0&cursor=x", "").is(422, "invalid_request", "limit") // before the 400 of the cursor
}

func TestCursorsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := ids.New[ids.TenantPrefix]()
	ctx := pgtest.CtxOf(t, tenant, caller.Test)
	w.fill(ctx, 30)
	cursor := *w.do(ctx, "GET", "/customers?limit=10&email=a@b.co", "").is(200).list().NextCursor
	use := func(ctx context.Context, query, cursor string) response {
		return w.do(ctx, "GET", "/customers?"+query+"&cursor="+url.QueryEscape(cursor), "")
	}
	if got := use(ctx, "limit=100&email=a@b.co", cursor).is(200).list(); len(got.Data) != 20 || got.HasMore {
		t.Errorf("limit may change: %d rows", len(got.Data))
	}
	second := caller.FromContext(ctx)
	second.Credential = "key_second"
	use(caller.With(ctx, second), "email=a@b.co", cursor).is(200)

	use(pgtest.CtxOf(t, tenant, caller.Live), "email=a@b.co", cursor).is(400, "invalid_cursor")
	use(pgtest.Ctx(t, caller.Test), "email=a@b.co", cursor).is(400, "invalid_cursor")
	for _, query := range []string{
		"", "email=other@b.co", "email=a@b.co&phone=1", "email=a@b.co&sort=updated_at", "email=a@b.co&q=a", "email=a@b.co&metadata[a]=1",
		"email=a@b.co&created_after=2020-01-01T00:00:00Z",
	} {
		use(ctx, query, cursor).is(400, "invalid_cursor")
	}
	for i := range cursor {
		changed := []byte(cursor)
		if changed[i] = 'A'; cursor[i] == 'A' {
			changed[i] = 'B'
		}
		use(ctx, "email=a@b.co", string(changed)).is(400, "invalid_cursor")
	}
	for _, bad := range []string{"x", cursor + "A", cursor[1:], cursor[:len(cursor)-1], " " + cursor, strings.Repeat("A", 2000)} {
		use(ctx, "email=a@b.co", bad).is(400, "invalid_cursor")
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	add := func(first, last, email, phone, company, metadata string) customer {
		return w.do(ctx, "POST", "/customers", fmt.Sprintf(`{"first_name":%s,"last_name":%s,"email":%s,"phone":%s,"company":%s,"metadata":%s}`,
			str(first), str(last), str(email), str(phone), str(company), metadata)).is(201).customer()
	}
	a := add("Anna", "O'Brien", "Anna.Smith@Example.com", "+1 555", "(Acme) GmbH", `{"order":"17","kind":"vip"}`)
	b := add("Zoë", "van Dyk", "zoe@example.org", "+1 555", "Ünal & Söhne", `{"order":"18","kind":"vip"}`)
	c := add("Bob", "Anders", "bob@smith.io", "+1 556", "100%_", `["order","17"]`)
	cases := map[string][]customer{
		"email=anna.smith@example.com":          {a},
		"email=ANNA.SMITH@EXAMPLE.COM":          {a},
		"email=smith@example.com":               {},
		"email=":                                {},
		"phone=%2B1+555":                        {a, b},
		"phone=%2B1+5":                          {},
		"phone=%2B1+555&email=zoe@example.org":  {b},
		"metadata[order]=17":                    {a},
		"metadata[order]=18":                    {b},
		"metadata[kind]=vip":                    {a, b},
		"metadata[kind]=VIP":                    {},
		"metadata[kind]=vip&metadata[order]=18": {b},
		"metadata[kind]=vip&metadata[order]=19": {},
		"metadata[0]=order":                     {},
		"q=":                                    {a, b, c},
		"q=+":                                   {a, b, c},
		"q=an":                                  {a, c},
		"q=AN":                                  {a, c},
		"q=ann":                                 {a},
		"q=nna":                                 {},
		"q=smith":                               {a, c},
		"q=brien":                               {a},
		"q=o%27b":                               {a},
		"q=%28acme":                             {a},
		"q=gmb+acm":                             {a},
		"q=anna.smith@ex":                       {a},
		"q=example":                             {a, b},
		"q=example+zo%C3%8B":                    {b},
		"q=%C3%9CNAL":                           {b},
		"q=s%C3%B6":                             {b},
		"q=van+dyk":                             {b},
		"q=100%25":                              {c},
		"q=1_0":                                 {},
		"q=%25":                                 {},
		"q=anna+anna":                           {a},
		"q=smith&metadata[kind]=vip":            {a},
		"q=smith&phone=%2B1+556":                {c},
		"created_after=" + at(b.CreatedAt):      {b, c},
		"created_before=" + at(b.CreatedAt):     {a},
		"created_after=" + at(b.CreatedAt.Add(1000)):                  {c},
		"updated_after=" + at(c.UpdatedAt):                            {c},
		"updated_before=" + at(c.UpdatedAt):                           {a, b},
		"created_after=2020-01-01T00:00:00%2B02:00":                   {a, b, c},
		"created_before=2020-01-01T00:00:00Z":                         {},
		"q=an&created_after=" + at(b.CreatedAt) + "&limit=1":          {c},
		"sort=created_at&q=example&created_before=" + at(b.CreatedAt): {a},
	}
	for query, want := range cases {
		var ids []string
		for _, x := range slices.Backward(want) {
			ids = append(ids, x.ID)
		}
		if got := w.pages(ctx, query, nil); !slices.Equal(got, ids) {
			t.Errorf("%s: got %v, want %v", query, got, ids)
		}
	}
	// Search results reflect a change.
	w.do(ctx, "PATCH", "/customers/"+a.ID, `{"last_name":"Miller","metadata":{"order":"20"}}`).is(200)
	for query, want := range map[string]int{"q=brien": 0, "q=mill": 1, "q=anna": 1, "metadata[kind]=vip": 1, "metadata[order]=20": 1} {
		if got := w.pages(ctx, query, nil); len(got) != want {
			t.Errorf("after the change %s finds %d", query, len(got))
		}
	}
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// TestSyncMissesNothing checks a client that syncs by sort=updated_at and continues from the last row that it has seen. A write
// that began earlier and commits later must not appear before that row.
func TestSyncMissesNothing(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	first := w.create(ctx, "")
	w.settled(ctx, 1)
	finish := w.slowInsert(ctx)
	second := w.create(ctx, "")
	page := func(after time.Time) []string {
		var out []string
		for _, c := range w.do(ctx, "GET", "/customers?sort=updated_at&updated_after="+at(after), "").is(200).list().Data {
			out = append(out, c.ID)
		}
		return out
	}
	if got := page(first.CreatedAt); !slices.Equal(got, []string{first.ID}) {
		t.Errorf("while an older write runs, the sync shows %v", got)
	}
	if got := w.pages(ctx, "", nil); len(got) != 2 || got[0] != second.ID {
		t.Errorf("the plain list shows what is committed: %v", got)
	}
	finish()
	w.settled(ctx, 3)
	if got := page(first.UpdatedAt); len(got) != 3 || got[0] != first.ID || got[2] != second.ID {
		t.Errorf("then it goes on with %v", got)
	}
	finish = w.slowInsert(ctx)
	w.do(ctx, "PATCH", "/customers/"+first.ID, `{"phone":"1"}`).is(200)
	if got := page(second.UpdatedAt); !slices.Equal(got, []string{second.ID}) {
		t.Errorf("while an older write runs, the sync shows a change: %v", got)
	}
	finish()
	w.settled(ctx, 4)
	if got := page(second.UpdatedAt); len(got) != 3 || got[0] != second.ID || got[2] != first.ID {
		t.Errorf("a change moves a row to the end: %v", got)
	}
}

// TestSyncWaitsForEveryOlderTime checks that a write does not overtake one that still runs, because the write that began first may
// take its time last.
func TestSyncWaitsForEveryOlderTime(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	begun, err := w.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begun.Exec(t.Context(), `select pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	finishEarlier := w.slowInsert(ctx)
	w.insertSlow(ctx, begun)
	if err := begun.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := func() int { return len(w.do(ctx, "GET", "/customers?sort=updated_at", "").is(200).list().Data) }
	if n := shown(); n != 0 {
		t.Errorf("%d rows shown, and an earlier one is still to come", n)
	}
	finishEarlier()
	w.settled(ctx, 2)
	if n := shown(); n != 2 {
		t.Errorf("%d rows shown, want both", n)
	}
}

// slowInsert begins a transaction that has written a customer. The returned function commits it.
func (w *world) slowInsert(ctx context.Context) (finish func()) {
	w.T.Helper()
	tx, err := w.Owner().Begin(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	w.insertSlow(ctx, tx)
	return func() {
		if err := tx.Commit(w.T.Context()); err != nil {
			w.T.Fatal(err)
		}
	}
}

func (w *world) insertSlow(ctx context.Context, tx pgx.Tx) {
	w.T.Helper()
	c := caller.FromContext(ctx)
	if _, err := tx.Exec(w.T.Context(), `
		insert into customers (tenant_id, livemode, id, first_name, email, email_lower, version, created_at, updated_at)
		values ($1, $2, $3, 'Slow', 's@b.co', 's@b.co', 1, clock_timestamp(), clock_timestamp())`,
		c.Tenant, c.Live(), ids.New[ids.CustomerPrefix]()); err != nil {
		w.T.Fatal(err)
	}
}

// TestCustomersAndLeadsAreFoundAsTheyAreTyped checks that names and numbers are found even if they are typed differently from how
// they were stored.
func TestCustomersAndLeadsAreFoundAsTheyAreTyped(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.create(ctx, `"last_name":"Müller","phone":"+49 (0)30 90-18-20","company":"Straße & O’Brien"`)
	w.create(ctx, `"last_name":"Nu\u0301n\u0303ez","phone":"1-555-010-9999","company":"Other"`)
	w.do(ctx, "POST", "/leads", `{"first_name":"Łukasz","phone":"030 901820"}`).is(201)
	for query, found := range map[string]int{
		"q=muller": 1, "q=M%C3%9CLLER": 1, "q=nunez": 1, "q=n%C3%BA%C3%B1ez": 1, "q=strasse+o'brien": 1, "q=%C3%BCller": 0,
		"q=901820": 1, "q=%2B49+30+901820": 1, "q=muller+9018": 1, "q=nunez+9018": 0, "q=(555)+010-9999": 1,
		"phone=%2B4930901820": 1, "phone=030+901820": 1, "phone=+49+30+901820": 1, "phone=901820": 0, "phone=%2B43+30+901820": 0, "phone=x": 0,
		"phone=%2B1+(555)+010+9999": 1, "phone=5550109999": 1, "phone=5550109999&q=nunez": 1, "phone=5550109999&q=muller": 0,
	} {
		if got := w.do(ctx, "GET", "/customers?"+query, "").is(200).list(); len(got.Data) != found {
			t.Errorf("%s finds %d customers", query, len(got.Data))
		}
	}
	for query, found := range map[string]int{"q=lukasz": 1, "q=%2B49+30+901820": 1, "q=9018": 1, "q=9019": 0} {
		if got := w.do(ctx, "GET", "/leads?"+query, "").is(200).list(); len(got.Data) != found {
			t.Errorf("%s finds %d leads", query, len(got.Data))
		}
	}
}
