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
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/pgtest"
)

type seats struct{ Capacity, Taken, Available int }

// walk is a shared unit with departures of two hours from 10:00 to 16:00 UTC on each day.
type walk struct {
	*world
	ctx           context.Context
	unit, service string
}

func newWalk(t *testing.T, w *world, ctx context.Context, capacity int) walk {
	t.Helper()
	ctx = zoned(ctx, "UTC")
	day := `[["10:00","16:00"]]`
	hours := fmt.Sprintf(`{"mon":%[1]s,"tue":%[1]s,"wed":%[1]s,"thu":%[1]s,"fri":%[1]s,"sat":%[1]s,"sun":%[1]s}`, day)
	u := w.offer(ctx, "/units", fmt.Sprintf(`{"name":"Walk","booking_mode":"seats","capacity":%d,"opening_hours":%s}`, capacity, hours))
	s := w.offer(ctx, "/services", fmt.Sprintf(`{"name":"Walk","duration_minutes":120,"unit_ids":[%q]}`, u.ID))
	return walk{world: w, ctx: ctx, unit: u.ID, service: s.ID}
}

// at returns the fields of a booking of the departure at an hour of May 1.
func (w walk) at(hour, guests int) string {
	return fmt.Sprintf(`"event_date":"2030-05-01","event_start_time":"%02d:00","service_id":%q,"unit_id":%q,"guest_count":%d`, hour, w.service, w.unit, guests)
}

func (w walk) join(hour, guests int, more string) booking {
	w.T.Helper()
	return w.book(w.ctx, "%s", w.at(hour, guests)+more)
}

// full sends a request that must be refused with the number of seats that are left.
func (a response) full(left int) {
	a.T.Helper()
	a.is(409, "slot_unavailable")
	got := decode[struct {
		Error struct {
			SeatsAvailable *int `json:"seats_available"`
		}
	}](a).Error.SeatsAvailable
	if got == nil || *got != left {
		a.T.Errorf("seats_available is %v, want %d: %s", got, left, a.Body)
	}
}

// slots returns the departures of May 1, each as status, taken seats and available seats. Explain must agree.
func (w walk) slots() string {
	w.T.Helper()
	var out []string
	for _, s := range w.days(w.ctx, "from=2030-05-01&to=2030-05-01&unit_id="+w.unit)[0].Units[0].Slots {
		out = append(out, fmt.Sprintf("%s %d/%d", s.Status, s.Seats.Taken, s.Seats.Available))
		got := decode[struct {
			Available bool
			Reason    *string
			Seats     *seats
		}](w.do(w.ctx, "GET", "/availability/explain?unit_id="+w.unit+"&starts_at="+url.QueryEscape(s.StartsAt.Format(time.RFC3339)), "").is(200))
		if got.Seats == nil || *got.Seats != *s.Seats || got.Available != (s.Status == "available") || got.Reason != nil && *got.Reason != s.Status {
			w.T.Errorf("%s is shown %+v and explained %+v", s.StartsAt, s, got)
		}
	}
	return strings.Join(out, ", ")
}

func (w walk) shows(want string) {
	w.T.Helper()
	if got := w.slots(); got != want {
		w.T.Errorf("departures are %s, want %s", got, want)
	}
}

// TestADepartureSellsOutExactly checks that bookings share a slot until its seats are taken, that one that is canceled, expired, or
// completed returns its seats, and that the slot reports what is left.
func TestADepartureSellsOutExactly(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	w.shows("available 0/10, available 0/10, available 0/10")
	six := w.join(10, 6, `,"status":"confirmed"`)
	hold := w.join(10, 3, `,"hold_minutes":5`)
	w.shows("available 9/1, available 0/10, available 0/10")
	w.post(w.ctx, "{"+w.at(10, 2)+"}").full(1)
	one := w.book(w.ctx, `"event_date":"2030-05-01","event_start_time":"10:00","service_id":%q,"unit_id":%q`, w.service, w.unit)
	if one.GuestCount == nil || *one.GuestCount != 1 {
		t.Errorf("guest_count is %v", one.GuestCount)
	}
	w.shows("held 10/0, available 0/10, available 0/10")
	w.post(w.ctx, "{"+w.at(10, 1)+"}").full(0)
	w.patch(w.ctx, one.ID, `{"status":"confirmed"}`).is(200)
	w.clock.move(6 * time.Minute)
	w.shows("available 7/3, available 0/10, available 0/10")
	w.post(w.ctx, "{"+w.at(10, 4)+"}").full(3)
	last := w.join(10, 3, `,"status":"confirmed"`)
	if got := w.get(w.ctx, hold.ID).Status; got != "expired" || !strings.Contains(w.Types(), "updated") {
		t.Errorf("the lapsed hold is %s, events %s", got, w.Types())
	}
	w.shows("booked 10/0, available 0/10, available 0/10")
	w.do(w.ctx, "POST", "/bookings/"+six.ID+"/cancel", "").is(200)
	w.shows("available 4/6, available 0/10, available 0/10")
	w.patch(w.ctx, last.ID, `{"guest_count":10}`).full(6)
	w.patch(w.ctx, last.ID, `{"guest_count":9}`).is(200)
	w.shows("booked 10/0, available 0/10, available 0/10")
	w.patch(w.ctx, last.ID, `{"guest_count":2,"event_start_time":"12:00"}`).is(200)
	w.shows("available 1/9, available 2/8, available 0/10")
	w.clock.moveTo(w.get(w.ctx, last.ID).StartsAt.Add(time.Second))
	w.patch(w.ctx, last.ID, `{"status":"completed"}`).is(200)
	w.patch(w.ctx, one.ID, `{"status":"cancelled"}`).is(200)
	w.shows("available 0/10, available 0/10, available 0/10")
	if n := w.Count(`select count(*) from unit_claims`); n != 0 {
		t.Errorf("%d sessions are open without bookings", n)
	}
}

// TestSeatsNameASlot checks that a booking of a shared unit must name a slot that availability offers for its service and package.
func TestSeatsNameASlot(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	short := w.offer(w.ctx, "/packages", fmt.Sprintf(`{"name":"Short","service_id":%q,"duration_minutes":60,"base_price":{"amount":1000,"currency":"USD"}}`, w.service)).ID
	for _, wrong := range []string{
		`"event_date":"2030-05-01"`, `"event_date":"2030-05-01","event_start_time":"11:00"`, `"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"11:00"`,
		`"event_date":"2030-05-01","event_start_time":"08:00"`, `"starts_at":"2030-05-01T16:00:00Z"`, `"starts_at":"2030-05-01T10:00:00Z","ends_at":"2030-05-01T12:01:00Z"`,
		`"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"12:00","package_id":"` + short + `"`,
	} {
		for _, more := range []string{"", `,"exclusive":true`} {
			w.post(w.ctx, fmt.Sprintf(`{%s,"service_id":%q,"unit_id":%q%s}`, wrong, w.service, w.unit, more)).is(422, "invalid_request", "event_start_time")
		}
	}
	w.post(w.ctx, "{"+w.at(10, 0)+"}").is(422, "invalid_request", "guest_count")
	w.post(w.ctx, "{"+w.at(10, 11)+"}").is(422, "invalid_request", "guest_count")
	w.book(w.ctx, `"starts_at":"2030-05-01T13:00:00Z","unit_id":%q,"package_id":%q`, w.unit, short)
	w.book(w.ctx, `"starts_at":"2030-05-01T10:00:00Z","ends_at":"2030-05-01T12:00:00Z","unit_id":%q`, w.unit)
	b := w.join(10, 2, "")
	w.patch(w.ctx, b.ID, `{"event_start_time":"11:00"}`).is(422, "invalid_request", "event_start_time")
	w.patch(w.ctx, b.ID, `{"event_start_time":"12:00"}`).full(0) // the shorter departure at 13:00 takes the unit
	w.patch(w.ctx, b.ID, `{"guest_count":0}`).is(422, "invalid_request", "guest_count")
	if got := w.patch(w.ctx, b.ID, `{"guest_count":null}`).is(200).booking(); *got.GuestCount != 1 {
		t.Errorf("%+v", got)
	}
	w.shows("available 2/8, held 10/0, available 0/10")
}

// TestPrivateHire checks that a booking of all seats needs an empty slot, and that nobody joins it.
func TestPrivateHire(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	b := w.join(10, 4, "")
	w.post(w.ctx, "{"+w.at(10, 4)+`,"exclusive":true}`).full(6)
	private := w.join(12, 4, `,"exclusive":true,"status":"confirmed"`)
	if !private.Exclusive || b.Exclusive {
		t.Errorf("exclusive is %v and %v", private.Exclusive, b.Exclusive)
	}
	w.post(w.ctx, "{"+w.at(12, 1)+"}").full(0)
	w.post(w.ctx, "{"+w.at(12, 1)+`,"exclusive":true}`).full(0)
	w.shows("available 4/6, booked 10/0, available 0/10")
	w.patch(w.ctx, private.ID, `{"event_start_time":"10:00"}`).full(6)
	w.patch(w.ctx, b.ID, `{"event_start_time":"12:00"}`).full(0)
	w.patch(w.ctx, private.ID, `{"guest_count":9}`).is(200)
	w.patch(w.ctx, private.ID, `{"event_start_time":"14:00"}`).is(200)
	w.patch(w.ctx, b.ID, `{"event_start_time":"12:00"}`).is(200)
	w.shows("available 0/10, available 4/6, booked 10/0")
	w.do(w.ctx, "PATCH", "/units/"+w.unit, `{"capacity":9}`).is(422, "invalid_request", "capacity")
	w.do(w.ctx, "POST", "/bookings/"+private.ID+"/cancel", "").is(200)
	w.shows("available 0/10, available 4/6, available 0/10")
}

// TestCapacityCanBeChanged checks that a change of the seats applies to open sessions, and that it cannot take seats from bookings.
func TestCapacityCanBeChanged(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	w.join(10, 4, "")
	hold := w.join(12, 5, `,"hold_minutes":5`)
	change := func(body string) response { return w.do(w.ctx, "PATCH", "/units/"+w.unit, body) }
	change(`{"capacity":4}`).is(422, "invalid_request", "capacity")
	change(`{"capacity":null}`).is(422, "invalid_request", "capacity")
	change(`{"booking_mode":"exclusive"}`).is(422, "invalid_request", "booking_mode")
	change(`{"capacity":12}`).is(200)
	w.shows("available 4/8, available 5/7, available 0/12")
	change(`{"capacity":5}`).is(200)
	w.shows("available 4/1, held 5/0, available 0/5")
	w.clock.move(6 * time.Minute)
	change(`{"capacity":4}`).is(200)
	if got := w.get(w.ctx, hold.ID).Status; got != "expired" {
		t.Errorf("the lapsed hold is %s", got)
	}
	w.shows("held 4/0, available 0/4, available 0/4")
	w.clock.moveTo(time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC))
	change(`{"booking_mode":"exclusive","capacity":1}`).is(200) // the last departure has ended
	w.post(w.ctx, fmt.Sprintf(`{"event_date":"2030-05-02","unit_id":%q}`, w.unit)).is(201)
	change(`{"booking_mode":"seats"}`).is(422, "invalid_request", "booking_mode")
	w.do(w.ctx, "POST", "/units", `{"name":"U","booking_mode":"seats"}`).is(422, "invalid_request", "capacity")
	w.do(w.ctx, "POST", "/units", `{"name":"U","booking_mode":"seats","capacity":0}`).is(422, "invalid_request", "capacity")
}

// TestMovesBetweenModes checks that a booking takes seats or a whole unit after it moves, and returns what it held.
func TestMovesBetweenModes(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	boat := w.offer(w.ctx, "/units", fmt.Sprintf(`{"name":"Boat","service_ids":[%q]}`, w.service)).ID
	b := w.join(10, 4, "")
	w.patch(w.ctx, b.ID, fmt.Sprintf(`{"unit_id":%q}`, boat)).is(200)
	w.shows("available 0/10, available 0/10, available 0/10")
	w.post(w.ctx, strings.ReplaceAll("{"+w.at(10, 1)+"}", w.unit, boat)).is(409, "slot_unavailable")
	w.patch(w.ctx, b.ID, fmt.Sprintf(`{"unit_id":%q}`, w.unit)).is(200)
	w.shows("available 4/6, available 0/10, available 0/10")
	other := w.book(w.ctx, "%s", strings.ReplaceAll(w.at(10, 3), w.unit, boat))
	w.patch(w.ctx, other.ID, fmt.Sprintf(`{"unit_id":%q}`, w.unit)).is(200)
	w.shows("available 7/3, available 0/10, available 0/10")
	w.patch(w.ctx, b.ID, `{"unit_id":null}`).is(200)
	w.patch(w.ctx, other.ID, `{"event_start_time":"14:00","status":"cancelled"}`).is(200)
	w.shows("available 0/10, available 0/10, available 0/10")
	if n := w.Count(`select count(*) from unit_claims`); n != 0 {
		t.Errorf("%d claims are left", n)
	}
}

// TestOverlappingMoveOfASession checks that the only booking of a departure can move to one that overlaps it.
func TestOverlappingMoveOfASession(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	w.do(w.ctx, "PATCH", "/services/"+w.service, `{"slot_step_minutes":60}`).is(200)
	b := w.join(10, 4, "")
	w.patch(w.ctx, b.ID, `{"event_start_time":"11:00"}`).is(200)
	w.shows("held 10/0, available 4/6, held 10/0, available 0/10, available 0/10")
	w.join(11, 1, "")
	w.patch(w.ctx, b.ID, `{"event_start_time":"12:00"}`).full(0)
}

// TestPricePerGuest checks that a price per guest is multiplied and rounded once, that the snapshot keeps it, and that only a new price
// takes another number of guests.
func TestPricePerGuest(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	p := w.offer(w.ctx, "/packages", fmt.Sprintf(`{"name":"Seat","service_id":%q,"pricing":"per_guest","base_price":{"amount":5,"currency":"USD"},"deposit_type":"flat","deposit_value":11}`, w.service)).ID
	w.offer(w.ctx, "/holiday-rules", `{"name":"May","date_from":"2030-05-01","date_to":"2030-05-31","multiplier_bps":11250}`)
	price := func(b booking, total, deposit int64, guests int) {
		t.Helper()
		s := b.PackageSnapshot
		if b.TotalAmount.Amount != total || b.DepositAmount.Amount != deposit || s.Pricing != "per_guest" || s.GuestCount == nil || *s.GuestCount != guests {
			t.Errorf("%+v and %+v of %+v, want %d and %d for %d", b.TotalAmount, b.DepositAmount, s, total, deposit, guests)
		}
	}
	b := w.join(10, 3, `,"package_id":"`+p+`"`)
	price(b, 17, 11, 3) // 16.875
	b = w.patch(w.ctx, b.ID, `{"guest_count":4}`).is(200).booking()
	price(b, 17, 11, 3)
	price(w.do(w.ctx, "POST", "/bookings/"+b.ID+"/reprice", "").is(200).booking(), 23, 11, 4) // 22.5
	price(w.book(w.ctx, `"event_date":"2030-05-01","package_id":%q`, p), 6, 6, 1)             // 5.625
	if d := w.days(w.ctx, "from=2030-05-01&to=2030-05-01&package_id="+p)[0]; d.PriceFrom.Amount != 6 {
		t.Errorf("price_from is %+v", d.PriceFrom)
	}
	w.post(w.ctx, fmt.Sprintf(`{"event_date":"2030-05-01","package_id":%q,"guest_count":0}`, p)).is(422, "invalid_request", "guest_count")
	alone := w.book(w.ctx, `"event_date":"2030-05-01","package_id":%q`, p)
	w.patch(w.ctx, alone.ID, `{"guest_count":0}`).is(422, "invalid_request", "guest_count")
	none := w.book(w.ctx, `"event_date":"2030-05-01","guest_count":0`)
	w.patch(w.ctx, none.ID, fmt.Sprintf(`{"package_id":%q}`, p)).is(422, "invalid_request", "guest_count")
	w.Exec(`update bookings set guest_count = 0 where id = $1`, must(t, alone.ID)) // as earlier versions accepted it
	w.patch(w.ctx, alone.ID, `{"guest_count":0,"notes":"x"}`).is(200)
	w.do(w.ctx, "POST", "/bookings/"+alone.ID+"/reprice", "").is(422, "invalid_request", "guest_count")
	w.do(w.ctx, "PATCH", "/packages/"+p, `{"base_price":{"amount":99999999999,"currency":"USD"}}`).is(200)
	w.post(w.ctx, "{"+w.at(12, 2)+`,"package_id":"`+p+`"}`).is(422, "invalid_request", "package_id")
}

// TestFiftyForThreeSeats checks that of many parallel requests exactly as many succeed as seats are left.
func TestFiftyForThreeSeats(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	w.join(10, 7, "")
	got := atOnce(50, func(int) response { return w.post(w.ctx, "{"+w.at(10, 1)+"}") })
	if got[201] != 3 || got[409] != 47 {
		t.Errorf("responses %v", got)
	}
	got = atOnce(20, func(int) response { return w.post(w.ctx, "{"+w.at(12, 3)+"}") }) // who opens the session
	if got[201] != 3 || got[409] != 17 {
		t.Errorf("responses %v", got)
	}
	got = atOnce(20, func(i int) response {
		return w.post(w.ctx, "{"+w.at(14, 1)+fmt.Sprintf(`,"exclusive":%v}`, i%2 == 0))
	})
	if taken := w.slots(); got[201] != 1 && got[201] != 10 || got[201]+got[409] != 20 || !slices.Contains([]string{"held 10/0, available 9/1, held 10/0"}, taken) {
		t.Errorf("responses %v, then %s", got, taken)
	}
}

// TestJoinsFollowASessionThatCloses checks that a booking that joins a departure while its last booking returns its seats waits for the
// session, and then opens a new one. A booking with a lapsed hold returns its seats without a lock of the unit.
func TestJoinsFollowASessionThatCloses(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	last := w.join(10, 9, "")
	leave, err := w.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leave.Exec(t.Context(), `update bookings set status = 'expired' where id = $1`, row(t, last)); err != nil {
		t.Fatal(err)
	}
	done := make(chan response)
	go func() { done <- w.post(w.ctx, "{"+w.at(10, 10)+"}") }()
	for w.Count(`select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := leave.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	(<-done).is(201)
	w.shows("held 10/0, available 0/10, available 0/10")
}

// TestDatabaseEnforcesSeats checks that the database itself refuses a seat too many, a booking in a session of another slot, and a session
// that overlaps another claim, and that it counts the seats of a booking that any code writes.
func TestDatabaseEnforcesSeats(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	a, b := w.join(10, 4, ""), w.join(12, 3, "")
	w.join(10, 5, "")
	for sql, want := range map[string]string{
		`update bookings set seats = 6 where id = $1`:                                                      "23514", // one too many
		`update bookings set seats = 0 where id = $1`:                                                      "23514",
		`update bookings set session_id = (select session_id from bookings where seats = 3) where id = $1`: "23503",
		`update bookings set starts_at = starts_at + interval '1 hour' where id = $1`:                      "23503",
		`update unit_claims set capacity = 8 where taken = 9 and $1::uuid is not null`:                     "23514",
		`insert into unit_claims (tenant_id, livemode, booking_id, unit_id, starts_at, ends_at)
			select tenant_id, livemode, id, unit_id, starts_at, ends_at from bookings where id = $1`: "23P01",
	} {
		_, err := w.Owner().Exec(t.Context(), sql, row(t, a))
		if pg.Code(err) != want {
			t.Errorf("%s: %v, want %s", sql, err, want)
		}
	}
	w.shows("available 9/1, available 3/7, available 0/10")
	w.Exec(`update bookings set status = 'cancelled' where seats = 4`)
	w.Exec(`update bookings set status = 'expired' where seats = 3`)
	w.shows("available 5/5, available 0/10, available 0/10")
	if n := w.Count(wrongSums) + w.Count(`select count(*) from unit_claims where starts_at = $1`, *b.StartsAt); n != 0 {
		t.Errorf("%d sessions are wrong", n)
	}
}

// TestSeatsOfTenantsAndModes checks that the seats of a tenant and a mode are its own, although their times are the same.
func TestSeatsOfTenantsAndModes(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	test, live := both(ids.New[ids.TenantPrefix](), t)
	var all []walk
	for _, ctx := range []context.Context{test, live, pgtest.Ctx(t, caller.Test), pgtest.Ctx(t, caller.Live)} {
		all = append(all, newWalk(t, world, ctx, 10))
	}
	for n, w := range all {
		w.join(10, n+1, "")
	}
	for n, w := range all {
		w.shows(fmt.Sprintf("available %d/%d, available 0/10, available 0/10", n+1, 9-n))
		for k, other := range all {
			if k != n {
				w.post(w.ctx, strings.ReplaceAll("{"+w.at(10, 1)+"}", w.unit, other.unit)).is(422, "invalid_request", "unit_id")
			}
		}
		got := atOnce(12, func(int) response { return w.post(w.ctx, "{"+w.at(10, 1)+"}") })
		if got[201] != 9-n {
			t.Errorf("responses %v", got)
		}
	}
}

// TestSeatsAreReplayed checks that a repeated request takes no more seats.
func TestSeatsAreReplayed(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newWorld(t), pgtest.Ctx(t, caller.Test), 10)
	const key = "Idempotency-Key: seats"
	got := atOnce(8, func(int) response { return w.post(w.ctx, "{"+w.at(10, 6)+"}", key) })
	w.post(w.ctx, "{"+w.at(10, 5)+"}", key).is(422, "idempotency_mismatch", "Idempotency-Key")
	b := w.list(w.ctx, "/bookings").Data[0]
	w.patch(w.ctx, b.ID, `{"guest_count":2}`, `If-Match: "2"`).is(412, "version_mismatch")
	w.patch(w.ctx, b.ID, `{"guest_count":11}`, `If-Match: "1"`).is(422, "invalid_request", "guest_count")
	w.shows("available 6/4, available 0/10, available 0/10")
	if got[201] != 8 {
		t.Errorf("responses %v", got)
	}
}

// row returns the id of a booking as it is stored.
func row(t *testing.T, b booking) ids.Booking {
	t.Helper()
	id, err := ids.Parse[ids.BookingPrefix](b.ID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
