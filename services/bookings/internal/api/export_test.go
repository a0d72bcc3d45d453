package api_test

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

type ofCustomer struct {
	Data []json.RawMessage
	IDs  []string
	Next string
}

// ofCustomer reads all pages of a customer's bookings. It calls between before each further page.
func (w *world) ofCustomer(ctx context.Context, customer, query string, between func()) (all ofCustomer, pages int) {
	w.T.Helper()
	for cursor := ""; ; between() {
		path := "/bookings?customer_id=" + customer + query + "&cursor=" + url.QueryEscape(cursor)
		got := decode[ofCustomer](w.from(ctx, "customers", "GET", path, "").is(200))
		all.Data, all.IDs = append(all.Data, got.Data...), append(all.IDs, got.IDs...)
		pages++
		if cursor = got.Next; cursor == "" {
			return all, pages
		}
	}
}

// TestBookingsOfACustomer checks that a customer's bookings are returned in their public form, newest first, without bookings of
// other customers. A booking whose hold has lapsed is shown as expired.
func TestBookingsOfACustomer(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	test, live := both(tenant, t)
	ann := w.customers.Add(caller.FromContext(test), "Ann").String()
	for _, ctx := range []context.Context{test, live, pgtest.Ctx(t, caller.Test)} {
		w.book(ctx, `"event_date":"2030-05-01"`)
		w.book(ctx, `"event_date":"2030-05-01","customer_id":%q`, w.customers.Add(caller.FromContext(ctx), "Bob"))
	}
	var want []string
	for range 3 {
		want = append([]string{w.book(test, `"event_date":"2030-05-01","customer_id":%q,"hold_minutes":60`, ann).ID}, want...)
	}
	w.clock.move(2 * time.Hour)
	got, pages := w.ofCustomer(test, ann, "", func() {})
	for i, body := range got.Data {
		if public := w.do(test, "GET", "/bookings/"+want[i], "").is(200); string(public.Body) != string(body) || !strings.Contains(string(body), `"expired"`) {
			t.Errorf("got %s, want %s", body, public.Body)
		}
	}
	if len(got.Data) != 3 || pages != 1 || got.IDs != nil {
		t.Errorf("%d bookings on %d pages", len(got.Data), pages)
	}
	if got, _ := w.ofCustomer(test, ann, "&ids_only=true", func() {}); !slices.Equal(got.IDs, want) || got.Data != nil {
		t.Errorf("ids %v, want %v", got.IDs, want)
	}
	for _, other := range []context.Context{live, pgtest.Ctx(t, caller.Test)} {
		if a := w.from(other, "customers", "GET", "/bookings?customer_id="+ann, "").is(200); string(a.Body) != `{}` {
			t.Errorf("elsewhere: %s", a.Body)
		}
	}
	w.from(test, "customers", "GET", "/bookings?customer_id=x", "").is(422, "invalid_request", "customer_id")
	for _, cursor := range []string{"x", "1.x", ".bk_1", "1." + ann} {
		w.from(test, "customers", "GET", "/bookings?customer_id="+ann+"&cursor="+cursor, "").is(422, "invalid_request", "cursor")
	}
	w.from(test, "gateway", "GET", "/bookings?customer_id="+ann, "").is(401, "invalid_credential")
}

// TestPagesOfBookingsOfACustomer checks that pages have a limited number of rows and bytes. A booking created between two pages
// causes neither a repeated nor a skipped booking.
func TestPagesOfBookingsOfACustomer(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	ann := w.customers.Add(caller.FromContext(ctx), "Ann").String()
	metadata := `"metadata":{"k0":"` + strings.Repeat("m", 500) + `"`
	for i := range 30 {
		metadata += `,"k` + strings.Repeat("k", i+1) + `":"` + strings.Repeat("m", 500) + `"`
	}
	first := w.book(ctx, `"event_date":"2030-05-01","customer_id":%q,`+metadata+`}`, ann).ID
	const more = 2_400
	w.Exec(`insert into bookings select (jsonb_populate_record(b, jsonb_build_object('id', gen_random_uuid(), 'number', 'C-' || n))).*
		from bookings b, generate_series(1, $2::int) n where b.id = $1`, must(t, first), more)
	create := func() { w.book(ctx, `"event_date":"2030-05-02","customer_id":%q`, ann) }
	for query, want := range map[string]int{"": more*15_000>>21 + 1, "&ids_only=true": 3} {
		got, pages := w.ofCustomer(ctx, ann, query, create)
		all := got.IDs
		for _, body := range got.Data {
			all = append(all, string(body))
		}
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != len(got.IDs)+len(got.Data) || n < more+1 || pages < want {
			t.Errorf("%q: %d different of %d on %d pages, want %d on %d", query, n, len(got.IDs)+len(got.Data), pages, more+1, want)
		}
	}
}

func must(t *testing.T, text string) [16]byte {
	t.Helper()
	id, err := ids.Parse[ids.BookingPrefix](text)
	if err != nil {
		t.Fatal(err)
	}
	return id.UUID()
}
