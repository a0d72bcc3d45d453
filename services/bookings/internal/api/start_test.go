package api_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/libs/apitest"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestBookingsByStart checks that sort=starts_at lists bookings upwards by their start, and that a booking without times stands where
// its day starts by the operator's clock, even if that clock shows midnight twice or not at all.
func TestBookingsByStart(t *testing.T) {
	t.Parallel()
	w, base := newWorld(t), pgtest.Ctx(t, caller.Test)
	ctx := zoned(base, "UTC")
	// In the order of their starts. The Azores go back from 01:00 to 00:00 on 2030-10-27 at 01:00Z, so midnight is first at 00:00Z.
	// Santiago goes forward from 00:00 to 01:00 on 2030-09-08 at 04:00Z.
	rows := []struct{ zone, fields string }{
		{"America/Santiago", `"starts_at":"2030-09-08T03:59:59.999999Z","ends_at":"2030-09-08T05:00:00Z"`},
		{"America/Santiago", `"event_date":"2030-09-08"`},
		{"America/Santiago", `"starts_at":"2030-09-08T04:00:00.000001Z","ends_at":"2030-09-08T05:00:00Z"`},
		{"Atlantic/Azores", `"starts_at":"2030-10-26T23:59:59.999999Z","ends_at":"2030-10-27T05:00:00Z"`},
		{"Atlantic/Azores", `"event_date":"2030-10-27T12:00:00Z"`},
		{"Atlantic/Azores", `"starts_at":"2030-10-27T00:00:00.000001Z","ends_at":"2030-10-27T05:00:00Z"`},
		{"Atlantic/Azores", `"starts_at":"2030-10-27T01:00:00Z","ends_at":"2030-10-27T05:00:00Z"`},
		{"UTC", `"event_date":"2030-11-01"`},
		{"UTC", `"event_date":"2030-11-01","event_start_time":"09:00","event_end_time":"10:00"`},
	}
	created := make([]string, len(rows))
	for _, i := range []int{4, 0, 8, 2, 6, 1, 7, 3, 5} { // not in the order of the list
		created[i] = w.book(zoned(base, rows[i].zone), "%s", rows[i].fields).ID
	}
	for query, want := range map[string][]string{
		"": created, "limit=1": created, "limit=4": created,
		"status=pending,canceled&limit=2":                                                       created,
		"starts_after=2030-09-08T04:00:00Z&limit=2":                                             created[1:],
		"starts_before=2030-10-27T00:00:00Z":                                                    created[:4],
		"starts_after=2030-09-08T04:00:00.000001Z&starts_before=2030-11-01T00:00:00Z":           created[2:7],
		"starts_after=2030-11-01T00:00:00Z&starts_before=2030-11-01T00:00:00Z":                  {},
		"event_date_from=2030-10-27&event_date_to=2030-10-27&starts_after=2030-10-27T00:30:00Z": created[6:7],
	} {
		if got := w.pages(ctx, "sort=starts_at&"+query, nil); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	got := w.pages(ctx, "sort=starts_at&limit=3", func(n int, last list) {
		w.book(ctx, `"event_date":"2029-01-01"`) // before all other rows
		w.patch(ctx, created[0], `{"notes":"changed"}`).is(200)
	})
	if !slices.Equal(got, created) {
		t.Errorf("inserts between the pages changed them: %v, want %v", got, created)
	}
	if got := w.pages(ctx, "starts_before=2030-09-08T04:00:00.000001Z&starts_after=2030-01-01T00:00:00Z", nil); !slices.Equal(got, []string{created[1], created[0]}) {
		t.Errorf("newest first: %v", got)
	}
	body := string(w.do(ctx, "GET", "/bookings?sort=starts_at&starts_after=2030-01-01T00:00:00Z", "", "Accept: text/csv").is(200).Body)
	at := -1
	for _, id := range created {
		next := strings.Index(body, id)
		if next <= at {
			t.Errorf("%s is not listed after the bookings that start earlier:\n%s", id, body)
		}
		at = next
	}
	w.do(ctx, "GET", "/bookings?sort=starts_at&starts_after=x", "").is(422, "invalid_request", "starts_after")
	w.do(ctx, "GET", "/services?sort=starts_at", "").is(422, "invalid_request", "sort")
	cursor := url.QueryEscape(*w.list(ctx, "/bookings?sort=starts_at&limit=1").NextCursor)
	for _, query := range []string{"", "sort=updated_at&", "sort=starts_at&starts_before=2031-01-01T00:00:00Z&"} {
		w.do(ctx, "GET", "/bookings?"+query+"cursor="+cursor, "").is(400, "invalid_cursor")
	}
}

// TestPagesOfOneStart checks that bookings with the same start are listed once each.
func TestPagesOfOneStart(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	w.fill(ctx, 300, "confirmed")
	ids, _ := w.Walk(func(query string) apitest.Response {
		return w.do(ctx, "GET", "/bookings?sort=starts_at&"+query, "").Response
	}, 33)
	if len(ids) != 300 || distinct(ids) != 300 {
		t.Errorf("%d rows, %d of them distinct", len(ids), distinct(ids))
	}
}
