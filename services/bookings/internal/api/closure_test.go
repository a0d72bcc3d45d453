package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/limit"
)

// closure is a closure as a client reads it.
type closure struct {
	ID, Object, Name, Timezone string
	UnitIDs                    []string  `json:"unit_ids"`
	DateFrom                   *string   `json:"date_from"`
	DateTo                     *string   `json:"date_to"`
	StartsAt                   time.Time `json:"starts_at"`
	EndsAt                     time.Time `json:"ends_at"`
	Conflicts                  []string  `json:"conflicting_booking_ids"`
	Version                    int64
}

// closes creates a closure with these fields.
func (w *world) closes(ctx context.Context, format string, args ...any) closure {
	w.T.Helper()
	return decode[closure](w.do(ctx, "POST", "/closures", fmt.Sprintf(`{"name":"C",`+format+"}", args...)).is(201))
}

func (w *world) closure(ctx context.Context, id string) closure {
	w.T.Helper()
	return decode[closure](w.do(ctx, "GET", "/closures/"+id, "").is(200))
}

func (w *world) closureIDs(ctx context.Context, query string) (list []string) {
	w.T.Helper()
	for _, c := range w.list(ctx, "/closures?limit=100&"+query).Data {
		list = append(list, c.ID)
	}
	return list
}

// TestAClosureRefusesBookings checks that no booking can be created in a closure or moved into it, and that everything that does not
// take new time in it stays possible.
func TestAClosureRefusesBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	at := func(day, clock string, unit fmt.Stringer) string {
		return fmt.Sprintf(`{"event_date":%q,"event_start_time":%q,"package_id":%q,"unit_id":%q}`, day, clock, s.flat, unit)
	}
	inside := w.post(ctx, at("2030-05-01", "10:00", s.ada)).is(201).booking()
	held := w.book(ctx, `"event_date":"2030-05-01","unit_id":%q,"hold_minutes":1`, s.cat)
	outside := w.post(ctx, at("2030-05-02", "10:00", s.bee)).is(201).booking()
	c := w.closes(ctx, `"date_from":"2030-05-01","date_to":"2030-05-01"`)
	if !slices.Equal(c.Conflicts, []string{held.ID, inside.ID}) {
		t.Errorf("conflicts %v, want %s and %s", c.Conflicts, held.ID, inside.ID)
	}
	for name, body := range map[string]string{
		"timed": at("2030-05-01", "15:00", s.ada), "whole day": fmt.Sprintf(`{"event_date":"2030-05-01","unit_id":%q}`, s.bee),
		"confirmed": strings.Replace(at("2030-05-01", "15:00", s.bee), "{", `{"status":"confirmed",`, 1), "over its end": at("2030-05-01", "23:00", s.bee),
		"into it": at("2030-04-30", "23:00", s.ada), "around it": fmt.Sprintf(`{"starts_at":"2030-04-20T00:00:00Z","ends_at":"2030-05-20T00:00:00Z","unit_id":%q}`, s.ada),
	} {
		if a := w.post(ctx, body).is(409, "slot_unavailable"); !strings.Contains(string(a.Body), "closed at that time") {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
	w.link(ctx, ofQuote(100, 0), fmt.Sprintf(`"event_date":"2030-05-01","unit_id":%q`, s.bee)).is(409, "slot_unavailable")
	w.patch(ctx, outside.ID, `{"event_date":"2030-05-01"}`).is(409, "slot_unavailable")
	w.patch(ctx, inside.ID, `{"event_start_time":"12:00"}`).is(409, "slot_unavailable")
	w.patch(ctx, inside.ID, fmt.Sprintf(`{"unit_id":%q}`, s.bee)).is(409, "slot_unavailable")
	later := w.offer(ctx, "/units", fmt.Sprintf(`{"name":"Later","service_ids":[%q]}`, s.tour)).ID
	w.post(ctx, strings.Replace(at("2030-05-01", "15:00", s.ada), s.ada.String(), later, 1)).is(409, "slot_unavailable")

	w.patch(ctx, inside.ID, `{"notes":"x","guest_count":2,"event_start_time":"10:00"}`).is(200)
	w.patch(ctx, inside.ID, `{"status":"confirmed"}`).is(200)
	w.post(ctx, `{"event_date":"2030-05-01"}`).is(201)    // without a unit
	w.post(ctx, at("2030-04-30", "22:00", s.ada)).is(201) // only its buffer reaches into the closure
	w.post(ctx, at("2030-05-02", "00:00", s.ada)).is(201)
	w.patch(ctx, inside.ID, `{"event_date":"2030-05-03"}`).is(200)
	w.clock.move(2 * time.Minute)
	if got := w.closure(ctx, c.ID); len(got.Conflicts) != 0 || got.Version != 1 {
		t.Errorf("after the move and the lapse of the hold: %+v", got)
	}
	w.do(ctx, "DELETE", "/closures/"+c.ID, "").is(204)
	w.post(ctx, at("2030-05-01", "15:00", s.ada)).is(201)
}

// TestAClosureOfUnits checks that a closure of some units leaves the others open, in its tenant and mode only.
func TestAClosureOfUnits(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	other := pgtest.Ctx(t, caller.Test)
	s, liveShop, foreign := w.shop(ctx), w.shop(live), w.shop(other)
	whole := func(ctx context.Context, unit fmt.Stringer) response {
		return w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","unit_id":%q}`, unit))
	}
	stayed := whole(ctx, s.bee).is(201).booking()
	w.do(ctx, "POST", "/bookings/"+stayed.ID+"/cancel", "").is(200)
	stayed = whole(ctx, s.bee).is(201).booking()
	c := w.closes(ctx, `"date_from":"2030-05-01","date_to":"2030-05-01","unit_ids":[%q,%q]`, s.bee, s.ada)
	if !slices.Equal(c.UnitIDs, []string{s.ada.String(), s.bee.String()}) || !slices.Equal(c.Conflicts, []string{stayed.ID}) {
		t.Errorf("%+v", c)
	}
	whole(ctx, s.ada).is(409, "slot_unavailable")
	whole(ctx, s.cat).is(201)
	whole(live, liveShop.ada).is(201)
	whole(other, foreign.ada).is(201)
	for _, unit := range []fmt.Stringer{liveShop.ada, foreign.ada, id[domain.UnitPrefix]()} {
		w.do(ctx, "POST", "/closures", fmt.Sprintf(`{"name":"C","date_from":"2030-05-01","date_to":"2030-05-01","unit_ids":[%q,%q]}`, s.ada, unit)).is(422, "invalid_request", "unit_ids.1")
	}
	// A wider closure returns the bookings that now lie in it.
	wider := decode[closure](w.do(ctx, "PATCH", "/closures/"+c.ID, `{"unit_ids":null}`).is(200))
	if wider.UnitIDs != nil || len(wider.Conflicts) != 2 || wider.Version != 2 {
		t.Errorf("%+v", wider)
	}
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-02","unit_id":%q}`, s.cat)).is(201)
	longer := decode[closure](w.do(ctx, "PATCH", "/closures/"+c.ID, `{"date_to":"2030-05-02"}`).is(200))
	if len(longer.Conflicts) != 3 || *longer.DateFrom != "2030-05-01" || *longer.DateTo != "2030-05-02" {
		t.Errorf("%+v", longer)
	}
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-02","unit_id":%q}`, s.ada)).is(409, "slot_unavailable")
	w.do(ctx, "PATCH", "/closures/"+c.ID, fmt.Sprintf(`{"unit_ids":[%q],"date_to":"2030-05-01"}`, s.cat)).is(200)
	whole(ctx, s.ada).is(201)
}

// TestClosureTimes checks the two forms of a closure's time and the errors of each.
func TestClosureTimes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	for body, field := range map[string]string{
		``: "date_from", `"date_from":"2030-05-01"`: "date_to", `"date_to":"2030-05-01"`: "date_from",
		`"date_from":"2030-05-02","date_to":"2030-05-01"`: "date_to", `"date_from":"2030-02-30","date_to":"2030-03-01"`: "date_from",
		`"date_from":"2030-05-01","date_to":"2030-05-01","starts_at":"2030-05-01T10:00:00Z","ends_at":"2030-05-01T11:00:00Z"`: "starts_at",
		`"starts_at":"2030-05-01T10:00:00Z"`: "ends_at", `"ends_at":"2030-05-01T10:00:00Z"`: "starts_at",
		`"starts_at":"2030-05-01T10:00:00Z","ends_at":"2030-05-01T10:00:00Z"`: "ends_at",
		`"starts_at":"2030-05-01T10:00:00","ends_at":"2030-05-01T11:00:00Z"`:  "starts_at",
		`"date_from":"2030-05-01","date_to":"2200-01-01"`:                     "date_to",
		`"date_from":"2030-05-01","date_to":"2030-05-01","unit_ids":[]`:       "unit_ids",
		`"date_from":"2030-05-01","date_to":"2030-05-01","unit_ids":["un_x"]`: "unit_ids.0",
	} {
		body = strings.TrimSuffix(`{"name":"C",`+body, ",") + "}"
		if a := w.do(ctx, "POST", "/closures", body); a.Status != 422 || !strings.Contains(string(a.Body), fmt.Sprintf(`"param":%q`, field)) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	w.do(zoned(ctx, "Pacific/Apia"), "POST", "/closures", `{"name":"C","date_from":"2011-12-30","date_to":"2011-12-31"}`).is(422, "invalid_request", "date_from")
	for _, tc := range []struct{ zone, from, to, starts, ends string }{
		{"America/New_York", "2026-03-08", "2026-03-08", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}, // 23 hours
		{"America/New_York", "2026-11-01", "2026-11-02", "2026-11-01T04:00:00Z", "2026-11-03T05:00:00Z"}, // 25 and 24 hours
		{"America/Santiago", "2026-09-06", "2026-09-06", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}, // begins at 01:00
		{"Pacific/Apia", "2011-12-29", "2011-12-31", "2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z"},     // without the 30th
	} {
		c := w.closes(zoned(ctx, tc.zone), `"date_from":%q,"date_to":%q`, tc.from, tc.to)
		if c.StartsAt.Format(time.RFC3339) != tc.starts || c.EndsAt.Format(time.RFC3339) != tc.ends || c.Timezone != tc.zone || *c.DateFrom != tc.from || *c.DateTo != tc.to {
			t.Errorf("%v: %+v", tc, c)
		}
		if len(c.Conflicts) != 0 || c.Conflicts == nil {
			t.Errorf("conflicts %v", c.Conflicts)
		}
	}
	c := w.closes(ctx, `"starts_at":"2030-05-01T10:00:00+02:00","ends_at":"2030-05-01T11:00:00.5Z"`)
	if c.DateFrom != nil || c.DateTo != nil || !c.StartsAt.Equal(time.Date(2030, 5, 1, 8, 0, 0, 0, time.UTC)) || c.EndsAt.Nanosecond() != 500_000_000 {
		t.Errorf("%+v", c)
	}
	path := "/closures/" + c.ID
	w.do(ctx, "PATCH", path, `{"ends_at":"2030-05-01T08:00:00Z"}`).is(422, "invalid_request", "ends_at")
	w.do(ctx, "PATCH", path, `{"ends_at":null}`).is(422, "invalid_request", "ends_at")
	w.do(ctx, "PATCH", path, `{"date_from":"2030-05-01"}`).is(422, "invalid_request", "date_to")
	if c = decode[closure](w.do(ctx, "PATCH", path, `{"ends_at":"2030-05-01T09:00:00Z"}`).is(200)); c.StartsAt.Hour() != 8 || c.EndsAt.Hour() != 9 {
		t.Errorf("%+v", c)
	}
	// The zone stays that of the creation.
	c = decode[closure](w.do(zoned(ctx, "Asia/Tokyo"), "PATCH", path, `{"date_from":"2030-05-01","date_to":"2030-05-02","starts_at":null,"ends_at":null}`).is(200))
	if *c.DateFrom != "2030-05-01" || c.Timezone != "America/New_York" || !c.StartsAt.Equal(time.Date(2030, 5, 1, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", c)
	}
	w.do(ctx, "PATCH", path, `{"starts_at":"2030-05-01T09:00:00Z"}`).is(422, "invalid_request", "ends_at")
	w.do(ctx, "PATCH", path, `{"date_to":null}`).is(422, "invalid_request", "date_to")
	c = decode[closure](w.do(ctx, "PATCH", path, `{"starts_at":"2030-05-01T09:00:00Z","ends_at":"2030-05-02","date_from":null,"date_to":null}`).is(200))
	if c.DateFrom != nil || !c.EndsAt.Equal(time.Date(2030, 5, 2, 4, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", c)
	}
}

// TestAClosureIsWritten checks the responses of writes, their conditions and replays, and the events for the audit log.
func TestAClosureIsWritten(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	n := len(w.Events())
	body := fmt.Sprintf(`{"name":"Winter","date_from":"2030-05-01","date_to":"2030-05-02","unit_ids":[%q]}`, s.ada)
	created := w.do(ctx, "POST", "/closures", body, "Idempotency-Key: k").is(201)
	c := decode[closure](created)
	path := "/closures/" + c.ID
	if created.Header.Get("Location") != "/api/v1"+path || created.Header.Get("ETag") != `"1"` || c.Object != "closure" || !strings.HasPrefix(c.ID, "cl_") {
		t.Errorf("%v %s", created.Header, created.Body)
	}
	again := w.do(ctx, "POST", "/closures", body, "Idempotency-Key: k").is(201)
	if read := w.do(ctx, "GET", path, "").is(200); string(again.Body) != string(created.Body) || string(read.Body) != string(created.Body) {
		t.Errorf("created %s, replayed %s, read %s", created.Body, again.Body, read.Body)
	}
	w.do(ctx, "POST", "/closures", `{"name":"C"}`, "Idempotency-Key: k").is(422, "idempotency_mismatch")
	if same := w.do(ctx, "PATCH", path, `{"name":"Winter"}`).is(200); string(same.Body) != string(created.Body) {
		t.Errorf("a change of nothing returns %s", same.Body)
	}
	w.do(ctx, "PATCH", path, `{"name":"New"}`, `If-Match: "2"`).is(412, "version_mismatch")
	w.do(ctx, "PATCH", path, `{"name":"New"}`, `If-Match: "1"`).is(200)
	w.do(ctx, "DELETE", path, "", `If-Match: "1"`).is(412, "version_mismatch")
	w.do(ctx, "DELETE", path, "", `If-Match: "2"`).is(204)
	w.do(ctx, "DELETE", path, "").is(404, "closure_not_found")
	w.do(ctx, "PATCH", path, `{"name":"New"}`).is(404, "closure_not_found")
	if again := w.do(ctx, "POST", "/closures", body, "Idempotency-Key: k").is(201); string(again.Body) != string(created.Body) {
		t.Errorf("replayed %s", again.Body)
	}
	var got []string
	for _, e := range w.Events()[n:] {
		got = append(got, fmt.Sprint(e.GetType(), e.GetResourceVersion(), string(e.GetPreviousAttributes())))
		if !e.GetInternal() || e.GetObjectId() != c.ID || strings.Contains(string(e.GetObject()), "conflicting") {
			t.Errorf("%v", e)
		}
	}
	if want := `closure.updated1{} closure.updated2{"name":"Winter"} closure.deleted3{}`; strings.Join(got, " ") != want {
		t.Errorf("events %v, want %s", got, want)
	}
}

// TestConflictsAreLimited checks that a closure lists the first 100 bookings that overlap it, the earliest first, whatever their
// length, and none that ended or began outside.
func TestConflictsAreLimited(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	var want []string
	for _, days := range []int{100, 30, 5, 1} { // each reads another index
		unit := w.offer(ctx, "/units", `{"name":"U"}`).ID
		first := time.Date(2030, 5, 1, 4, 0, 0, 0, time.UTC).AddDate(0, 0, 1-days)
		want = append(want, w.book(ctx, `"starts_at":%q,"ends_at":%q,"unit_id":%q`, first.Format(time.RFC3339), first.AddDate(0, 0, days).Format(time.RFC3339), unit).ID)
	}
	w.book(ctx, `"starts_at":"2030-04-29T04:00:00Z","ends_at":"2030-05-01T04:00:00Z","unit_id":%q`, s.cat) // ends when the closure begins
	w.book(ctx, `"starts_at":"2030-05-02T04:00:00Z","ends_at":"2030-05-03T04:00:00Z","unit_id":%q`, s.cat)
	c := w.closes(ctx, `"date_from":"2030-05-01","date_to":"2030-05-01"`)
	if !slices.Equal(c.Conflicts, want) {
		t.Errorf("conflicts %v, want %v", c.Conflicts, want)
	}
	copies := func(n int, unit any) {
		w.Exec(`insert into bookings select (jsonb_populate_record(b, jsonb_build_object('id', gen_random_uuid(), 'number', $1::text || n, 'unit_id', $2::uuid,
				'event_day', '2030-06-01', 'starts_at', '2030-06-01T10:00:00Z'::timestamptz + n * interval '1 second', 'ends_at', '2030-06-01T12:00:00Z'))).*
			from bookings b, generate_series(1, $3) n where b.starts_at = '2030-05-02T04:00:00Z'`, fmt.Sprint(unit), unit, n)
	}
	copies(200, nil)
	copies(domain.MaxConflicts+1, s.docked.UUID())
	c = w.closes(ctx, `"date_from":"2030-06-01","date_to":"2030-06-01"`)
	if len(c.Conflicts) != domain.MaxConflicts {
		t.Errorf("%d conflicts", len(c.Conflicts))
	}
	last := w.Count(`select max(extract(epoch from starts_at - '2030-06-01T10:00:00Z'))::int from bookings where id = any($1::uuid[])`, uuids(t, c.Conflicts))
	if last != domain.MaxConflicts {
		t.Errorf("the last conflict begins after %d s", last)
	}
}

func uuids(t *testing.T, list []string) [][16]byte {
	t.Helper()
	out := make([][16]byte, len(list))
	for i, text := range list {
		id, err := ids.Parse[domain.BookingPrefix](text)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = id.UUID()
	}
	return out
}

// TestListsOfClosures checks the filters of the list, which omits the conflicts.
func TestListsOfClosures(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	s, foreign := w.shop(ctx), w.shop(live)
	all := w.closes(ctx, `"date_from":"2030-05-01","date_to":"2030-05-03"`).ID
	ada := w.closes(ctx, `"date_from":"2030-05-05","date_to":"2030-05-05","unit_ids":[%q]`, s.ada).ID
	timed := w.closes(ctx, `"starts_at":"2030-05-05T23:00:00-04:00","ends_at":"2030-05-06T00:00:00-04:00","unit_ids":[%q]`, s.bee).ID
	w.closes(live, `"date_from":"2030-05-01","date_to":"2030-05-03"`)
	for query, want := range map[string][]string{
		"": {timed, ada, all}, "unit_id=" + s.ada.String(): {ada, all}, "unit_id=" + s.cat.String(): {all},
		"unit_id=" + foreign.ada.String(): nil, "unit_id=x": nil, "unit_id=" + id[domain.UnitPrefix]().String(): nil,
		"from=2030-05-03": {timed, ada, all}, "from=2030-05-04": {timed, ada}, "from=2030-05-06": nil,
		"to=2030-04-30": nil, "to=2030-05-01": {all}, "to=2030-05-05": {timed, ada, all},
		"from=2030-05-05&to=2030-05-05&unit_id=" + s.bee.String(): {timed},
	} {
		if got := w.closureIDs(ctx, query); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
	w.do(ctx, "GET", "/closures?from=2030-02-30", "").is(422, "invalid_request", "from")
	w.do(ctx, "GET", "/closures?to=1899-12-31", "").is(422, "invalid_request", "to")
	w.do(ctx, "GET", "/closures?from=2030-05-02&to=2030-05-01", "").is(422, "invalid_request", "to")
	if a := w.do(ctx, "GET", "/closures", "").is(200); strings.Contains(string(a.Body), "conflicting") {
		t.Errorf("%s", a.Body)
	}
}

// TestClosuresAreLimited checks both caps of closures, of which exactly one of several parallel requests gets the last place. Time and
// the test clock of the caller decide which closures have ended.
func TestClosuresAreLimited(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	fill := func(n int, ends string) {
		w.Exec(`insert into closures (tenant_id, livemode, id, name, starts_at, ends_at, timezone)
			select $1, false, gen_random_uuid(), 'C', '2000-01-01', $2, 'UTC' from generate_series(1, $3)`, tenant.UUID(), ends, n)
	}
	const body, ended = `{"name":"C","date_from":"2030-05-01","date_to":"2030-05-01"}`, `{"name":"C","date_from":"2020-05-01","date_to":"2020-05-01"}`
	fill(limit.Closures.Active.Most-1, "2030-01-01")
	last := w.race(ctx, "/closures", body)
	w.do(ctx, "PATCH", "/closures/"+last, `{"name":"Still"}`).is(200)
	old := decode[closure](w.do(ctx, "POST", "/closures", ended).is(201)).ID
	w.do(ctx, "PATCH", "/closures/"+old, `{"date_to":"2030-05-01"}`).is(422, "limit_reached", "name")
	w.do(live, "POST", "/closures", body).is(201)
	clocked := in(ctx, func(c *caller.Caller) { c.Clock = new(time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC)) })
	w.do(clocked, "POST", "/closures", body).is(201)
	w.do(ctx, "DELETE", "/closures/"+last, "").is(204)
	w.Exec(`delete from closures where ends_at > '2021-01-01' and tenant_id = $1`, tenant.UUID())
	fill(limit.Closures.Inactive.Most-1, "2001-01-01")
	w.do(ctx, "POST", "/closures", ended).is(422, "limit_reached", "name")
	w.do(ctx, "POST", "/closures", body).is(422, "limit_reached", "name")
	w.do(ctx, "DELETE", "/closures/"+old, "").is(204)
	w.do(ctx, "POST", "/closures", body).is(201)
}

// TestAvailabilityShowsClosures checks that slots in a closure are blocked, that the explanation names it, and that exactly the slots
// that are shown as available can be booked.
func TestAvailabilityShowsClosures(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	unit := w.offer(ctx, "/units", fmt.Sprintf(`{"name":"U","service_ids":[%q],"opening_hours":{"wed":[["09:00","17:00"]],"thu":[["09:00","17:00"]]}}`, s.tour)).ID
	query := "from=2030-05-01&to=2030-05-02&service_id=" + s.tour.String() + "&unit_id=" + unit // Wednesday and Thursday, with slots of 2 h 45 min
	book := func(at time.Time) response {
		return w.post(ctx, fmt.Sprintf(`{"starts_at":%q,"service_id":%q,"unit_id":%q}`, at.Format(time.RFC3339), s.tour, unit))
	}
	shown := func(want string, statuses ...string) {
		t.Helper()
		days := w.days(ctx, query)
		if got := days[0].statuses(unit) + " " + days[1].statuses(unit); got != want || days[0].Status != statuses[0] || days[1].Status != statuses[1] {
			t.Errorf("slots %q with days %s and %s, want %q with %v", got, days[0].Status, days[1].Status, want, statuses)
		}
	}
	shown("aaa aaa", "available", "available")
	slots := w.days(ctx, query)[0].Units[0].Slots
	book(slots[1].StartsAt).is(201)
	timed := w.closes(ctx, `"starts_at":"2030-05-01T11:00:00-04:00","ends_at":"2030-05-01T11:45:00-04:00","unit_ids":[%q]`, unit) // only a buffer of the first slot
	shown("aha aaa", "available", "available")
	w.do(ctx, "PATCH", "/closures/"+timed.ID, `{"starts_at":"2030-05-01T10:59:00-04:00"}`).is(200)
	shown("bha aaa", "available", "available")
	whole := w.closes(ctx, `"date_from":"2030-05-02","date_to":"2030-05-02"`)
	shown("bha bbb", "available", "sold_out")
	for i, d := range w.days(ctx, query) {
		for k, slot := range d.Units[0].Slots {
			want := map[string]string{"available": ""}
			if slot.Status == "blocked" {
				want["blocked"] = "closure"
			}
			if i == 0 && k == 1 {
				want["held"] = "held"
			}
			if reason, known := want[slot.Status]; !known || w.reason(ctx, unit, slot.StartsAt.Format(time.RFC3339)) != reason {
				t.Errorf("%s is %s because of %s", slot.StartsAt, slot.Status, w.reason(ctx, unit, slot.StartsAt.Format(time.RFC3339)))
			}
			if slot.Status == "available" {
				book(slot.StartsAt).is(201)
			} else {
				book(slot.StartsAt).is(409, "slot_unavailable")
			}
		}
	}
	w.do(ctx, "DELETE", "/closures/"+whole.ID, "").is(204)
	w.do(ctx, "DELETE", "/closures/"+timed.ID, "").is(204)
	shown("ahh aaa", "available", "available")
}

// TestCalendarsShowClosures checks the closures in the console's calendar and in calendar feeds, which show those of their unit.
func TestCalendarsShowClosures(t *testing.T) {
	t.Parallel()
	w, tenant := newWorld(t), ids.New[ids.TenantPrefix]()
	ctx, live := both(tenant, t)
	s := w.shop(ctx)
	day := func(n int) string { return time.Now().AddDate(0, 0, n).Format(time.DateOnly) }
	all := w.closes(ctx, `"date_from":%q,"date_to":%q`, day(10), day(12))
	bee := w.closes(ctx, `"starts_at":"%sT15:00:00Z","ends_at":"%sT16:30:00Z","unit_ids":[%q]`, day(11), day(11), s.bee)
	w.closes(ctx, `"date_from":%q,"date_to":%q`, day(-120), day(-100)) // before the days of a feed
	w.closes(live, `"date_from":%q,"date_to":%q`, day(10), day(12))

	got := w.calendar(ctx, "from="+day(11)+"&to="+day(11)).Closures
	if len(got) != 2 || got[0].ID != all.ID || got[0].UnitIDs != nil || got[1].ID != bee.ID || !slices.Equal(got[1].UnitIDs, bee.UnitIDs) || got[1].Name != "C" || !got[1].EndsAt.Equal(bee.EndsAt) {
		t.Errorf("%+v", got)
	}
	if got := w.calendar(ctx, "from="+day(13)+"&to="+day(14)).Closures; len(got) != 0 {
		t.Errorf("%+v", got)
	}
	of := func(unit fmt.Stringer) feed { return w.feed(ctx, `{"name":"F","unit_id":%q}`, unit) }
	for name, tc := range map[string]struct {
		feed feed
		want []string
	}{"all": {w.feed(ctx, `{"name":"F"}`), []string{all.ID, bee.ID}}, "bee": {of(s.bee), []string{all.ID, bee.ID}}, "ada": {of(s.ada), []string{all.ID}}} {
		events := w.events(tc.feed)
		if len(events) != len(tc.want) {
			t.Errorf("%s: %d events", name, len(events))
		}
		for _, id := range tc.want {
			if events[id] == nil || events[id].GetProperty(ics.ComponentPropertySummary).Value != "Closed: C" {
				t.Errorf("%s: no event of %s", name, id)
			}
		}
	}
	e := w.events(of(s.bee))
	compact := func(date string) string { return strings.ReplaceAll(date, "-", "") }
	for _, tc := range []struct{ id, from, to string }{
		{all.ID, compact(day(10)), compact(day(13))}, {bee.ID, compact(day(11)) + "T150000Z", compact(day(11)) + "T163000Z"},
	} {
		from, to := e[tc.id].GetProperty(ics.ComponentPropertyDtStart).Value, e[tc.id].GetProperty(ics.ComponentPropertyDtEnd).Value
		if from != tc.from || to != tc.to {
			t.Errorf("%s lasts from %s to %s, want %s to %s", tc.id, from, to, tc.from, tc.to)
		}
	}
}
