package api_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

func TestBookingsAsCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	csv := func(query string) []byte {
		t.Helper()
		return w.do(ctx, "GET", "/bookings"+query, "", "Accept: text/csv; charset=utf-8").is(200).Body
	}
	if got := string(csv("")); strings.Count(got, "\r\n") != 1 || !strings.Contains(got, ",total_amount.amount,total_amount.currency,") {
		t.Errorf("an empty list is %q", got)
	}
	for _, fields := range []string{
		`"event_date":"2030-05-10","notes":"=1+1","metadata":{"k":"v"}`, `"event_date":"2030-05-11","notes":"a\n\"b\"","event_type":"@x"`,
		`"event_date":"2030-05-12","notes":"\n=1+1","event_type":"＝1"`,
		`"starts_at":"2030-05-12T10:00:00Z","ends_at":"2030-05-12T12:00:00Z","guest_count":3,"status":"confirmed"`,
	} {
		w.book(ctx, "%s", fields)
	}
	gone := w.book(ctx, `"event_date":"2030-05-13"`)
	w.do(ctx, "POST", "/bookings/"+gone.ID+"/cancel", `{"reason":"-5"}`).is(200)
	w.fill(ctx, 50, "pending")
	for _, query := range []string{"?", "?status=confirmed,cancelled", "?status=pending,expired", "?metadata[k]=v", "?event_type=@x", "?customer_id=none", "?number=" + strings.ToLower(gone.Number), "?event_date_from=2030-05-11"} {
		var all []json.RawMessage
		w.Walk(func(page string) apitest.Response {
			a := w.do(ctx, "GET", "/bookings"+query+"&"+page, "").is(200)
			all = append(all, decode[struct{ Data []json.RawMessage }](a).Data...)
			return a.Response
		}, 100)
		apitest.SameRows(t, csv(query), all)
	}
	w.do(ctx, "GET", "/bookings?limit=3", "", "Accept: text/csv").is(422, "invalid_request", "limit")
	w.do(ctx, "GET", "/services", "", "Accept: text/csv").is(200)
}

func TestExpandedCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	w.fill(ctx, 250, "confirmed") // more than one call can expand
	w.do(ctx, "GET", "/bookings?expand=customer", "", "Accept: text/csv").is(403, "insufficient_scope")
	reads := in(ctx, func(c *caller.Caller) { c.Scopes = []string{"read:customers"} })
	text := string(w.do(reads, "GET", "/bookings?expand=customer", "", "Accept: text/csv").is(200).Body)
	header, _, _ := strings.Cut(text, "\r\n")
	if strings.Count(text, "\r\n") != 251 || !slices.Contains(strings.Split(header, ","), "customer.email") {
		t.Errorf("%.2000s", text)
	}
}

// The CSV of bookings has the names of customers and units, if the credential may read these. JSON has none, and neither has another
// tenant's or an erased customer.
func TestNamesInCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-10","unit_id":%q,"customer_id":%q`, s.ada, w.customer(ctx))
	w.book(ctx, `"event_date":"2030-05-11"`)
	names := func(ctx context.Context, id string, scopes ...string) string {
		t.Helper()
		reads := in(ctx, func(c *caller.Caller) { c.Scopes = scopes })
		records, err := csv.NewReader(bytes.NewReader(w.do(reads, "GET", "/bookings", "", "Accept: text/csv").is(200).Body)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records[1:] {
			if r[0] == id {
				return r[slices.Index(records[0], "customer_name")] + "|" + r[slices.Index(records[0], "unit_name")]
			}
		}
		t.Fatalf("%s is not in %v", id, records)
		return ""
	}
	unit := w.do(ctx, "GET", "/units/"+s.ada.String(), "").is(200)
	want := decode[struct{ Name string }](unit).Name
	for scopes, want := range map[string]string{
		"read:bookings": "|", "read:customers": "Ann Smith|", "read:units": "|" + want, "read:customers read:units": "Ann Smith|" + want,
	} {
		if got := names(ctx, b.ID, strings.Fields(scopes)...); got != want {
			t.Errorf("with %s: %q, want %q", scopes, got, want)
		}
	}
	all := in(ctx, func(c *caller.Caller) { c.Scopes = []string{"read:customers", "read:units"} })
	if body := string(w.do(all, "GET", "/bookings", "").is(200).Body); strings.Contains(body, "customer_name") || strings.Contains(body, "unit_name") {
		t.Errorf("JSON has names: %s", body)
	}
	w.Exec(`update customers set erased = true, version = version + 1`)
	if got := names(ctx, b.ID, "read:customers"); got != "|" {
		t.Errorf("after the erasure: %q", got)
	}
}
