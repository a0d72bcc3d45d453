package api_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pgtest"
)

// TestPagesOfTheLargestBookings checks that a hundred of the largest bookings, each of one of the largest customers, are returned
// in sufficiently small pages, each booking once. A customer shared by several bookings is embedded in each of them.
func TestPagesOfTheLargestBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), in(pgtest.Ctx(t, caller.Test), func(c *caller.Caller) { c.Scopes = []string{"read:customers"} })
	metadata := apitest.LargestMetadata()
	const four = "\U00010000" // one character, four bytes
	large := `"event_date":"2030-05-01","event_type":` + str(strings.Repeat(four, 100)) + `,"notes":` + str(strings.Repeat(four, 5000)) + `,"metadata":` + metadata
	var want []string
	for i := range 100 {
		b := w.book(ctx, `%s,"customer_id":%q`, large, w.customer(ctx))
		want = append([]string{b.ID}, want...)
		if i%10 == 0 {
			continue // the customer of this booking is a small one
		}
		id, err := ids.Parse[ids.CustomerPrefix](*b.CustomerID)
		if err != nil {
			t.Fatal(err)
		}
		w.customers.SetMetadata(id, metadata)
	}
	get := func(path string) func(query string) apitest.Response {
		return func(query string) apitest.Response { return w.do(ctx, "GET", path+query, "").Response }
	}
	got, plain := w.Walk(get("/bookings?"), 100)
	if !slices.Equal(got, want) || len(plain) < 100*len(metadata)/page.MaxBytes {
		t.Errorf("%d of %d rows in %d pages", len(got), len(want), len(plain))
	}
	calls := w.customers.Calls()
	got, expanded := w.Walk(get("/bookings?expand=customer&"), 100)
	if !slices.Equal(got, want) || len(expanded) <= len(plain) || w.customers.Calls()-calls != len(expanded) {
		t.Errorf("expanded: %d of %d rows in %d pages, %d calls", len(got), len(want), len(expanded), w.customers.Calls()-calls)
	}
	for _, size := range expanded[:len(expanded)-1] {
		if size < page.MaxBytes/2 { // one row takes less than a quarter of the page size
			t.Errorf("a page of %d bytes, and others follow", size)
		}
	}
	shared, before := w.customer(ctx), len(want)
	for range 30 {
		want = append([]string{w.book(ctx, `"event_date":"2030-05-01","customer_id":%q`, shared).ID}, want...)
	}
	id, err := ids.Parse[ids.CustomerPrefix](shared)
	if err != nil {
		t.Fatal(err)
	}
	w.customers.SetMetadata(id, metadata)
	got, _ = w.Walk(get("/bookings?expand=customer&customer_id="+shared+"&"), 100)
	if !slices.Equal(got, want[:len(want)-before]) {
		t.Errorf("of one customer: %d rows", len(got))
	}
	one := w.do(ctx, "GET", "/bookings/"+want[0]+"?expand=customer", "").is(200)
	if len(one.Body) < len(metadata) {
		t.Errorf("a single one has no customer: %d bytes", len(one.Body))
	}
}

// TestPagesOfTheLargestCatalogue checks that the lists of the catalogue are also limited by bytes.
func TestPagesOfTheLargestCatalogue(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	description := `"description":` + str(strings.Repeat("\u0001", 5000)) // 30,000 bytes in JSON
	service := w.offer(ctx, "/services", `{"name":"S"}`).ID
	for path, body := range map[string]string{
		"/services": `{"name":"S",` + description + `}`,
		"/units":    `{"name":"U",` + description + `}`,
		"/packages": `{"name":"P","service_id":"` + service + `","base_price":{"amount":100,"currency":"USD"},` + description + `}`,
	} {
		var want []string
		for range 100 {
			want = append([]string{w.offer(ctx, path, body).ID}, want...)
		}
		got, sizes := w.Walk(func(query string) apitest.Response { return w.do(ctx, "GET", path+"?"+query, "").Response }, 100)
		if !slices.Equal(got[:100], want) || len(sizes) < 2 {
			t.Errorf("%s: %d rows in %d pages", path, len(got), len(sizes))
		}
	}
}
