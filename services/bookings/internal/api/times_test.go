package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// TestEventDateReadsBack checks that event_date is returned as the given instant, to the microsecond. Only its date in the
// operator's time zone determines the day.
func TestEventDateReadsBack(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test) // New York
	reads := func(b booking, at, day string) {
		t.Helper()
		for _, got := range []booking{b, w.get(ctx, b.ID), w.list(ctx, "/bookings?limit=1&metadata[n]="+string(b.Metadata[6:len(b.Metadata)-2])).Data[0]} {
			if got.ID != b.ID || got.EventDate.Format(time.RFC3339Nano) != at || got.EventLocalDate != day {
				t.Errorf("%s: reads %s on %s, want %s on %s", b.ID, got.EventDate.Format(time.RFC3339Nano), got.EventLocalDate, at, day)
			}
		}
	}
	var created booking
	for n, tc := range []struct{ fields, at, day string }{
		{`"event_date":"2030-05-01"`, "2030-05-01T04:00:00Z", "2030-05-01"},
		{`"event_date":"2030-05-01T03:59:59.999999Z"`, "2030-05-01T03:59:59.999999Z", "2030-04-30"},
		{`"event_date":"2030-05-01T20:15:00.123456-04:00"`, "2030-05-02T00:15:00.123456Z", "2030-05-01"},
		{`"event_date":"2030-05-01T20:15:00-04:00","event_start_time":"10:00","event_end_time":"11:00"`, "2030-05-02T00:15:00Z", "2030-05-01"},
		{`"starts_at":"2030-05-02T01:00:00.5Z","ends_at":"2030-05-02T02:00:00Z"`, "2030-05-02T01:00:00.5Z", "2030-05-01"},
		{`"starts_at":"2030-06-01","ends_at":"2030-06-02"`, "2030-06-01T04:00:00Z", "2030-06-01"},
	} {
		created = w.book(ctx, `%s,"metadata":{"n":"%d"}`, tc.fields, n)
		reads(created, tc.at, tc.day)
	}

	patched := w.patch(ctx, created.ID, `{"event_date":"2030-06-03T16:30:00Z"}`).is(200).booking()
	reads(patched, "2030-06-03T16:30:00Z", "2030-06-03")
	later := w.patch(ctx, created.ID, `{"event_date":"2030-06-03T17:30:00Z"}`).is(200).booking()
	reads(later, "2030-06-03T17:30:00Z", "2030-06-03")
	if later.Version != patched.Version+1 || !later.StartsAt.Equal(*patched.StartsAt) {
		t.Errorf("another time of the same day: version %d, starts at %s", later.Version, later.StartsAt)
	}
	same := w.patch(ctx, created.ID, `{"event_date":"2030-06-03T13:30:00-04:00"}`).is(200).booking()
	retimed := w.patch(ctx, created.ID, `{"event_start_time":"15:00"}`).is(200).booking()
	reads(retimed, "2030-06-03T17:30:00Z", "2030-06-03")
	if same.Version != later.Version || retimed.StartsAt.Equal(*later.StartsAt) {
		t.Errorf("versions %d and %d, starts at %s", same.Version, retimed.Version, retimed.StartsAt)
	}
	bare := w.patch(ctx, created.ID, `{"event_date":"2030-06-03"}`).is(200).booking()
	reads(bare, "2030-06-03T04:00:00Z", "2030-06-03")
	events := w.Events()
	if last := events[len(events)-1]; !strings.Contains(string(last.GetObject()), `"event_date":"2030-06-03T04:00:00Z"`) || !strings.Contains(string(last.GetObject()), `"event_local_date":"2030-06-03"`) ||
		string(last.GetPreviousAttributes()) != `{"event_date":"2030-06-03T17:30:00Z"}` {
		t.Errorf("%s\n%s", last.GetPreviousAttributes(), last.GetObject())
	}

	for query, n := range map[string]int{"event_date_from=2030-05-01&event_date_to=2030-05-01": 4, "event_date_to=2030-04-30": 1, "event_date_from=2030-05-02&event_date_to=2030-06-02": 0} {
		if got := w.list(ctx, "/bookings?"+query).Data; len(got) != n {
			t.Errorf("%s: %d rows, want %d", query, len(got), n)
		}
	}
	w.patch(ctx, created.ID, `{"event_local_date":"2031-01-01","notes":"read only"}`).is(200)
	reads(w.get(ctx, created.ID), "2030-06-03T04:00:00Z", "2030-06-03")
}

func TestTimesOfABooking(t *testing.T) {
	t.Parallel()
	w, base := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(base)
	tour := fmt.Sprintf(`,"service_id":"%s"`, s.tour)
	hour := fmt.Sprintf(`,"package_id":"%s"`, s.share)
	rental := fmt.Sprintf(`,"service_id":"%s"`, s.rental)
	cat := fmt.Sprintf(`,"unit_id":"%s"`, s.cat)
	for _, tc := range []struct{ zone, fields, start, end, wrong string }{
		{"", `"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"11:30"`, "2030-05-01T14:00:00Z", "2030-05-01T15:30:00Z", ""},
		{"", `"event_date":"2030-05-01T03:59:59Z","event_start_time":"10:00","event_end_time":"11:00"`, "2030-04-30T14:00:00Z", "2030-04-30T15:00:00Z", ""},
		{"", `"event_date":"2030-05-01","event_start_time":"22:00","event_end_time":"02:00"`, "2030-05-02T02:00:00Z", "2030-05-02T06:00:00Z", ""},
		{"", `"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"10:00"`, "2030-05-01T14:00:00Z", "2030-05-02T14:00:00Z", ""},
		{"", `"event_date":"2030-05-01","event_start_time":"10:00"` + tour, "2030-05-01T14:00:00Z", "2030-05-01T16:00:00Z", ""},
		{"", `"event_date":"2030-05-01","event_start_time":"10:00"` + hour, "2030-05-01T14:00:00Z", "2030-05-01T15:00:00Z", ""},
		{"", `"event_date":"2030-05-01","event_start_time":"10:00"` + rental, "", "", "event_end_time"},
		{"", `"event_date":"2030-05-01","event_start_time":"10:00"`, "", "", "event_end_time"},
		{"", `"event_date":"2030-05-01","event_end_time":"10:00"`, "", "", "event_end_time"},
		{"", `"event_date":"2030-05-01","event_start_time":"24:00","event_end_time":"10:00"`, "", "", "event_start_time"},
		{"", `"event_date":"2030-05-01","event_start_time":"9:00","event_end_time":"10:00"`, "", "", "event_start_time"},
		{"", `"event_date":"2030-05-01","event_start_time":"09:00","event_end_time":"10:60"`, "", "", "event_end_time"},
		{"", `"event_date":"2026-03-08","event_start_time":"02:30","event_end_time":"04:00"`, "", "", "event_start_time"},
		{"", `"event_date":"2026-03-07","event_start_time":"23:00","event_end_time":"02:30"`, "", "", "event_end_time"},
		{"", `"event_date":"2026-03-08","event_start_time":"01:30","event_end_time":"03:30"`, "2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z", ""},
		{"", `"event_date":"2026-11-01","event_start_time":"01:30","event_end_time":"02:30"`, "2026-11-01T05:30:00Z", "2026-11-01T07:30:00Z", ""},
		{"", `"event_date":"2026-03-08"` + cat, "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", ""},
		{"", `"event_date":"2026-11-01"` + cat, "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", ""},
		{"America/Santiago", `"event_date":"2026-09-06"` + cat, "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z", ""},
		{"Pacific/Apia", `"event_date":"2011-12-30"`, "", "", "event_date"},
		{"Pacific/Apia", `"event_date":"2011-12-29"` + cat, "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", ""},
		{"", `"event_date":"2030-05-01"`, "", "", ""},
		{"", `"starts_at":"2030-05-03T10:00:00.123456+02:00","ends_at":"2030-05-05T10:00:00Z"`, "2030-05-03T08:00:00.123456Z", "2030-05-05T10:00:00Z", ""},
		{"", `"starts_at":"2030-06-01","ends_at":"2030-06-02"`, "2030-06-01T04:00:00Z", "2030-06-02T04:00:00Z", ""},
		{"", `"starts_at":"2030-06-01T10:00:00Z"` + tour, "2030-06-01T10:00:00Z", "2030-06-01T12:00:00Z", ""},
		{"", `"starts_at":"2030-06-01T10:00:00Z"`, "", "", "ends_at"},
		{"", `"ends_at":"2030-06-01T10:00:00Z"`, "", "", "starts_at"},
		{"", `"starts_at":"2030-06-01T10:00:00Z","ends_at":"2030-06-01T10:00:00Z"`, "", "", "ends_at"},
		{"", `"starts_at":"2030-06-01T10:00:00","ends_at":"2030-06-01T12:00:00Z"`, "", "", "starts_at"},
		{"", `"event_date":"2030-06-01","starts_at":"2030-06-01T10:00:00Z","ends_at":"2030-06-01T12:00:00Z"`, "", "", "starts_at"},
		{"", `"starts_at":null`, "", "", "event_date"},
		{"", `"notes":"x"`, "", "", "event_date"},
		{"", `"event_date":"2030-02-30"`, "", "", "event_date"},
		{"", `"event_date":"2030-05-01T10:00:00"`, "", "", "event_date"},
		{"", `"event_date":"1899-12-31"`, "", "", "event_date"},
		{"", `"event_date":"1900-01-01"`, "", "", ""},
		{"", `"event_date":"2199-12-31"`, "", "", ""},
		{"", `"event_date":"2200-01-01"`, "", "", "event_date"},
		{"", `"event_date":null`, "", "", "event_date"},
	} {
		ctx := base
		if tc.zone != "" {
			ctx = zoned(base, tc.zone)
		}
		a := w.post(ctx, "{"+tc.fields+"}")
		if tc.wrong != "" {
			a.is(422, "invalid_request", tc.wrong)
			continue
		}
		if a.Status != 201 {
			t.Errorf("%s: %s", tc.fields, a.Body)
			continue
		}
		b := a.booking()
		if got := [2]string{at(b.StartsAt), at(b.EndsAt)}; got != [2]string{tc.start, tc.end} {
			t.Errorf("%s: from %s to %s, want %s to %s", tc.fields, got[0], got[1], tc.start, tc.end)
		}
	}
}

func at(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// TestBuffersAndNeighbours checks that with buffers of 15 minutes before and 30 minutes after, the gap between two tours is 45
// minutes.
func TestBuffersAndNeighbours(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	slot := func(unit domain.UnitID, service domain.ServiceID, from, to string) response {
		return w.post(ctx, fmt.Sprintf(`{"starts_at":"2030-05-01T%s:00Z","ends_at":"2030-05-01T%s:00Z","unit_id":"%s","service_id":"%s"}`, from, to, unit, service))
	}
	slot(s.ada, s.tour, "12:00", "14:00").is(201)
	slot(s.ada, s.tour, "14:44", "15:00").is(409, "slot_unavailable")
	slot(s.ada, s.tour, "14:45", "15:00").is(201)
	slot(s.ada, s.tour, "10:00", "11:16").is(409, "slot_unavailable")
	slot(s.ada, s.tour, "10:00", "11:15").is(201)
	slot(s.bee, s.tour, "12:00", "14:00").is(201)
	slot(s.cat, s.rental, "10:00", "12:00").is(201)
	slot(s.cat, s.rental, "12:00", "14:00").is(201) // back to back
	slot(s.cat, s.rental, "11:59", "12:00").is(409, "slot_unavailable")
	slot(s.cat, s.rental, "13:59", "15:00").is(409, "slot_unavailable")
	slot(s.cat, s.rental, "09:00", "16:00").is(409, "slot_unavailable")

	day := func(d string) response {
		return w.post(ctx, fmt.Sprintf(`{"event_date":"%s","unit_id":"%s","service_id":"%s"}`, d, s.bee, s.tour))
	}
	day("2030-05-01").is(409, "slot_unavailable")
	day("2030-05-02").is(201) // a whole day has no buffers
	day("2030-05-03").is(201)
	day("2030-05-03").is(409, "slot_unavailable")
	day("2026-03-07").is(201)
	day("2026-03-09").is(201)
	day("2026-03-08").is(201)
	w.post(ctx, fmt.Sprintf(`{"starts_at":"2030-05-04T04:00:00Z","ends_at":"2030-05-04T05:00:00Z","unit_id":"%s"}`, s.bee)).is(201)
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	w.clock.moveTo(time.Date(2030, 5, 1, 16, 0, 0, 0, time.UTC)) // noon in New York
	timed := func(ctx context.Context, from string) response {
		return w.post(ctx, fmt.Sprintf(`{"starts_at":"%s","service_id":"%s"}`, from, s.tour))
	}
	day := func(ctx context.Context, d string) response { return w.post(ctx, `{"event_date":"`+d+`"}`) }
	timed(ctx, "2001-01-01T00:00:00Z").is(201) // nothing is checked
	w.tenants.Set(domain.Policy{MinNoticeMinutes: new(0)})
	timed(ctx, "2030-05-01T15:59:00Z").is(422, "invalid_request", "event_date")
	timed(ctx, "2030-05-01T16:01:00Z").is(201)
	day(ctx, "2030-04-30").is(422, "invalid_request", "event_date")
	day(ctx, "2030-05-01").is(201)
	w.tenants.Set(domain.Policy{MinNoticeMinutes: new(120), MaxAdvanceDays: new(30)})
	timed(ctx, "2030-05-01T17:59:00Z").is(422, "invalid_request", "event_date")
	b := timed(ctx, "2030-05-01T18:01:00Z").is(201).booking()
	day(ctx, "2030-05-31").is(201)
	day(ctx, "2030-06-01").is(422, "invalid_request", "event_date")
	w.patch(ctx, b.ID, `{"event_date":"2030-06-01"}`).is(422, "invalid_request", "event_date")
	w.patch(ctx, b.ID, `{"event_date":"2030-05-31"}`).is(200)
	test := in(ctx, func(c *caller.Caller) { c.Clock = new(time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)) })
	day(test, "2030-06-01").is(201) // the tenant's own clock
	w.tenants.Set(domain.Policy{AutoConfirm: true, HoldTTLMinutes: new(30)})
	if b := day(ctx, "2030-07-01").is(201).booking(); b.Status != "confirmed" || b.ConfirmedAt == nil || b.HoldExpiresAt != nil {
		t.Errorf("auto_confirm: %+v", b)
	}
	w.post(ctx, `{"event_date":"2030-07-01","hold_minutes":5}`).is(422, "invalid_request", "hold_minutes")
	b = w.book(ctx, `"event_date":"2030-07-01","status":"pending"`)
	if got := b.HoldExpiresAt.Sub(w.clock.now()).Round(time.Minute); b.Status != "pending" || got != 30*time.Minute {
		t.Errorf("%s for %s", b.Status, got)
	}
	b = w.book(ctx, `"event_date":"2030-07-01","status":"pending","hold_minutes":43200`)
	if got := b.HoldExpiresAt.Sub(w.clock.now()).Round(time.Minute); got != 43200*time.Minute {
		t.Errorf("held for %s", got)
	}
	for _, minutes := range []string{"0", "43201", "1.0", `"5"`} {
		w.post(ctx, `{"event_date":"2030-07-01","hold_minutes":`+minutes+`}`).is(422, "invalid_request", "hold_minutes")
	}
	for _, status := range []string{"expired", "cancelled", "completed", "no_show", "canceled", ""} {
		w.post(ctx, `{"event_date":"2030-07-01","status":"`+status+`"}`).is(422, "invalid_request", "status")
	}
}
