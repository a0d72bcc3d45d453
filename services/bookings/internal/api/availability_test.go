package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"
)

type day struct {
	Date      string
	Timezone  string
	Status    string
	PriceFrom *amount `json:"price_from"`
	Holiday   *struct {
		Name          string
		MultiplierBps int64 `json:"multiplier_bps"`
	}
	Units []unitDay
}

type unitDay struct {
	UnitID string `json:"unit_id"`
	Name   string
	Status string
	Slots  []slot
}

type slot struct {
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
	Status   string
	Seats    *seats
}

func (w *world) days(ctx context.Context, query string) []day {
	w.T.Helper()
	return decode[struct{ Data []day }](w.do(ctx, "GET", "/availability?"+query, "").is(200)).Data
}

// reason returns why a slot cannot be booked, or "" if it can.
func (w *world) reason(ctx context.Context, unit, at string) string {
	w.T.Helper()
	got := decode[struct {
		Available bool
		Reason    *string
	}](w.do(ctx, "GET", "/availability/explain?unit_id="+unit+"&starts_at="+url.QueryEscape(at), "").is(200))
	if got.Available != (got.Reason == nil) {
		w.T.Errorf("available %v, and the reason is %v", got.Available, got.Reason)
	}
	if got.Reason == nil {
		return ""
	}
	return *got.Reason
}

// statuses returns the first letter of the status of each of a unit's slots on a day.
func (d day) statuses(unit string) string {
	var b strings.Builder
	for _, u := range d.Units {
		for _, s := range u.Slots {
			if u.UnitID == unit {
				b.WriteByte(s.Status[0])
			}
		}
	}
	return b.String()
}

// TestEverySlotOfferedIsBooked checks that every slot shown as available can be booked, one after another until none is left,
// including around the days on which clocks change.
func TestEverySlotOfferedIsBooked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		zone, from, to string
		hours          string
		slots          int
	}{
		{"America/New_York", "2030-03-09", "2030-03-11", `null`, 3 * 4},                    // 24, 23 and 24 hours
		{"America/New_York", "2030-11-02", "2030-11-04", `null`, 3 * 4},                    // 24, 25 and 24: the fifth slot of the 25 hours overlaps the first one of the next day
		{"America/Santiago", "2026-09-05", "2026-09-07", `{"sun":[["00:00","08:00"]]}`, 1}, // no midnight: seven hours
		{"Australia/Lord_Howe", "2026-10-03", "2026-10-05", `{"sun":[["01:00","13:30"]]}`, 2},
		{"Pacific/Apia", "2011-12-29", "2011-12-31", `null`, 2 * 4}, // the 30th did not exist
	} {
		w, ctx := newWorld(t), zoned(pgtest.Ctx(t, caller.Test), tc.zone)
		u := w.offer(ctx, "/units", `{"name":"U","opening_hours":`+tc.hours+`}`)
		s := w.offer(ctx, "/services", fmt.Sprintf(`{"name":"S","duration_minutes":300,"slot_step_minutes":360,"unit_ids":[%q]}`, u.ID))
		query := "from=" + tc.from + "&to=" + tc.to
		booked := 0
		for n := range w.days(ctx, query) {
			d := w.days(ctx, query)[n] // the last slot of a day may overlap the first one of the next
			for _, sl := range d.Units[0].Slots {
				if why := w.reason(ctx, u.ID, sl.StartsAt.Format(time.RFC3339)); (why == "") != (sl.Status == "available") {
					t.Errorf("%s %s %s is %s, explained as %q", tc.zone, d.Date, sl.StartsAt, sl.Status, why)
				}
				if sl.Status != "available" {
					continue
				}
				w.book(ctx, `"starts_at":%q,"ends_at":%q,"unit_id":%q,"service_id":%q`, sl.StartsAt.Format(time.RFC3339), sl.EndsAt.Format(time.RFC3339), u.ID, s.ID)
				booked++
			}
		}
		if booked != tc.slots {
			t.Errorf("%s: %d slots were booked, want %d", tc.zone, booked, tc.slots)
		}
		for _, d := range w.days(ctx, query) {
			if left := d.statuses(u.ID); strings.Contains(left, "a") || d.Status == "available" || d.Status == "limited" {
				t.Errorf("%s %s: %s with %q after all was booked", tc.zone, d.Date, d.Status, left)
			}
		}
	}
}

func TestAvailabilityFollowsBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	u := w.offer(ctx, "/units", `{"name":"U","opening_hours":{"wed":[["09:00","17:00"]],"thu":[["22:00","02:00"]]}}`)
	w.offer(ctx, "/services", fmt.Sprintf(`{"name":"S","duration_minutes":120,"unit_ids":[%q]}`, u.ID))
	const query = "from=2030-05-01&to=2030-05-03" // Wednesday to Friday
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, d := range w.days(ctx, query) {
			got = append(got, d.Status+" "+d.statuses(u.ID))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect("available aaaa", "available aa", "closed ")
	at := func(clock string) string {
		return `"event_date":"2030-05-01","event_start_time":"` + clock + `","unit_id":"` + u.ID + `"`
	}
	held := w.book(ctx, at("09:00")+`,"event_end_time":"11:00"`)
	w.book(ctx, at("13:00")+`,"event_end_time":"14:00","status":"confirmed"`)
	expect("available haba", "available aa", "closed ")
	w.book(ctx, at("11:00")+`,"event_end_time":"13:00"`)
	expect("limited hhba", "available aa", "closed ")
	for clock, want := range map[string]string{"09:00": "held", "13:00": "booked", "15:00": "", "15:30": "closed", "16:00": "closed", "06:00": "closed"} {
		if got := w.reason(ctx, u.ID, "2030-05-01T"+clock+":00"+w.offset(ctx)); got != want {
			t.Errorf("%s is explained as %q, want %q", clock, got, want)
		}
	}
	w.do(ctx, "POST", "/bookings/"+held.ID+"/cancel", "").is(200)
	expect("available ahba", "available aa", "closed ")
	w.do(ctx, "PATCH", "/units/"+u.ID, `{"status":"maintenance"}`).is(200)
	if d := w.days(ctx, query)[0]; d.Status != "closed" && d.Status != "sold_out" || strings.Contains(d.statuses(u.ID), "a") {
		t.Errorf("a unit in maintenance: %+v", d)
	}
	if got := w.reason(ctx, u.ID, "2030-05-01T15:00:00Z"); got != "maintenance" {
		t.Errorf("explained as %q", got)
	}
	w.do(ctx, "PATCH", "/units/"+u.ID, `{"status":"retired"}`).is(200)
	if d := w.days(ctx, query)[0]; len(d.Units) != 0 || d.Status != "closed" {
		t.Errorf("a retired unit: %+v", d)
	}
	if got := w.reason(ctx, u.ID, "2030-05-01T15:00:00Z"); got != "retired" {
		t.Errorf("explained as %q", got)
	}
}

// TestALongBookingIsSeen checks that a booking that began long before the requested days blocks its unit on those days.
func TestALongBookingIsSeen(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	u := w.offer(ctx, "/units", `{"name":"U"}`)
	w.book(ctx, `"starts_at":"2030-04-01T00:00:00Z","ends_at":"2030-06-01T00:00:00Z","unit_id":%q,"status":"confirmed"`, u.ID)
	for _, d := range w.days(ctx, "from=2030-05-01&to=2030-05-02") {
		if d.Status != "sold_out" || d.statuses(u.ID) != "b" {
			t.Errorf("%+v", d)
		}
	}
	if got := w.reason(ctx, u.ID, "2030-05-01T00:00:00-04:00"); got != "booked" {
		t.Errorf("explained as %q", got)
	}
}

// offset returns the caller's UTC offset on May 1 in RFC 3339 notation.
func (w *world) offset(ctx context.Context) string {
	loc, err := time.LoadLocation(caller.FromContext(ctx).Timezone)
	if err != nil {
		w.T.Fatal(err)
	}
	return time.Date(2030, 5, 1, 12, 0, 0, 0, loc).Format("Z07:00")
}

// TestPriceFromIsCharged checks that the lowest price shown for a day is the price of a booking on that day.
func TestPriceFromIsCharged(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.offer(ctx, "/services", `{"name":"S"}`)
	pack := func(name string, price int) string {
		return w.offer(ctx, "/packages", fmt.Sprintf(`{"name":%q,"service_id":%q,"base_price":{"amount":%d,"currency":"USD"}}`, name, s.ID, price)).ID
	}
	cheap, dear := pack("Cheap", 20001), pack("Dear", 22000)
	w.offer(ctx, "/holiday-rules", fmt.Sprintf(`{"name":"Rush","date_from":"2030-12-30","date_to":"2031-01-02","recurrence":"yearly","multiplier_bps":11500,"applies_to":{"package_ids":[%q]}}`, cheap))
	for _, d := range w.days(ctx, "from=2031-12-28&to=2032-01-04&service_id="+s.ID) {
		var charged []int64
		for _, p := range []string{cheap, dear} {
			charged = append(charged, w.book(ctx, `"event_date":%q,"package_id":%q`, d.Date, p).TotalAmount.Amount)
		}
		if d.PriceFrom == nil || d.PriceFrom.Amount != slices.Min(charged) || d.PriceFrom.Currency != "USD" || d.Holiday != nil {
			t.Errorf("%s costs from %v with %v, and %v is charged", d.Date, d.PriceFrom, d.Holiday, charged)
		}
	}
	if d := w.days(ctx, "from=2032-01-01&to=2032-01-01&package_id="+cheap)[0]; d.PriceFrom.Amount != 23001 || d.Holiday == nil || d.Holiday.Name != "Rush" || d.Holiday.MultiplierBps != 11500 {
		t.Errorf("%+v", d)
	}
	if d := w.days(ctx, "from=2032-01-01&to=2032-01-01&package_id=pkg_x")[0]; d.PriceFrom != nil || len(d.Units) != 0 {
		t.Errorf("an unknown package: %+v", d)
	}
}

func TestAvailabilityIsRefused(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	s, otherMode, otherTenant := w.shop(ctx), w.shop(live), w.shop(pgtest.Ctx(t, caller.Test))
	for query, field := range map[string]string{
		"from=2030-05-02&to=2030-05-01": "to", "from=2030-05-01&to=2030-07-02": "to", "from=2030-02-30&to=2030-03-01": "from",
		"to=2030-05-01": "from", "from=2030-05-01": "to", "from=x&to=2030-05-01": "from", "from=2030-05-01&to=2030-05-01&limit=2": "limit",
	} {
		w.do(ctx, "GET", "/availability?"+query, "").is(422, "invalid_request", field)
	}
	w.do(zoned(ctx, "Pacific/Apia"), "GET", "/availability?from=2011-12-30&to=2011-12-31", "").is(422, "invalid_request", "from")
	if n := len(w.days(ctx, "from=2030-05-01&to=2030-07-01")); n != 62 {
		t.Errorf("%d days", n)
	}
	w.offer(ctx, "/services", `{"name":"Short","duration_minutes":1,"slot_step_minutes":5,"unit_ids":["`+s.bee.String()+`"]}`)
	w.do(ctx, "GET", "/availability?from=2030-05-01&to=2030-07-01&unit_id="+s.bee.String(), "").is(200)
	for range 2 {
		w.offer(ctx, "/units", `{"name":"More","service_ids":["`+w.offer(ctx, "/services", `{"name":"Minute","duration_minutes":1,"slot_step_minutes":5}`).ID+`"]}`)
	}
	w.do(ctx, "GET", "/availability?from=2030-05-01&to=2030-07-01", "").is(422, "invalid_request", "to")

	const at = "&starts_at=2030-05-01T10:00:00Z"
	for _, bad := range []string{otherMode.ada.String(), otherTenant.ada.String(), id0(), "un_x", "x"} {
		w.do(ctx, "GET", "/availability/explain?unit_id="+bad+at, "").is(422, "invalid_request", "unit_id")
	}
	w.do(ctx, "GET", "/availability/explain?unit_id="+s.ada.String()+"&starts_at=noon", "").is(422, "invalid_request", "starts_at")
	w.do(ctx, "GET", "/availability/explain?unit_id="+s.ada.String(), "").is(422, "invalid_request", "starts_at")
	w.tenants.Fail(apperr.ErrUnavailable)
	w.do(ctx, "GET", "/availability?from=2030-05-01&to=2030-05-01", "").is(503, "unavailable")
	w.do(ctx, "GET", "/availability/explain?unit_id="+s.ada.String()+at, "").is(503, "unavailable")
}

// TestAvailabilityIsOnesOwn checks that neither response shows bookings of another tenant or of the other mode.
func TestAvailabilityIsOnesOwn(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	mine, modes := w.shop(ctx), w.shop(live)
	w.book(live, `"event_date":"2030-05-01","unit_id":%q`, modes.ada)
	for _, d := range w.days(ctx, "from=2030-05-01&to=2030-05-01") {
		for _, u := range d.Units {
			if u.UnitID == modes.ada.String() || strings.ContainsAny(d.statuses(u.UnitID), "h") {
				t.Errorf("%+v", u)
			}
		}
		if d.statuses(mine.ada.String()) == "" {
			t.Error("not even the caller's own")
		}
	}
}
