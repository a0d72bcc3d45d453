package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// unitService contains units of one active service, of two, and of none.
type unitService struct {
	tour, pack     string // a tour of an hour with a buffer of 15 minutes, and its package of 20 minutes
	one, two, none string
}

func (w *world) unitServices(ctx context.Context) (s unitService) {
	s.tour = w.offer(ctx, "/services", `{"name":"Tour","duration_minutes":60,"buffer_after_minutes":15}`).ID
	class := w.offer(ctx, "/services", `{"name":"Class","duration_minutes":30}`).ID
	idle := w.offer(ctx, "/services", `{"name":"Idle","duration_minutes":45}`).ID
	w.do(ctx, "PATCH", "/services/"+idle, `{"active":false}`).is(200)
	unit := func(services ...string) string {
		list, err := json.Marshal(services)
		if err != nil {
			w.T.Fatal(err)
		}
		return w.offer(ctx, "/units", fmt.Sprintf(`{"name":"Boat","service_ids":%s}`, list)).ID
	}
	s.one, s.two, s.none = unit(s.tour, idle), unit(s.tour, class), unit(idle)
	s.pack = w.offer(ctx, "/packages", fmt.Sprintf(`{"name":"Half","service_id":%q,"duration_minutes":20,"base_price":{"amount":100,"currency":"USD"}}`, s.tour)).ID
	return s
}

// service returns the id of the booking's service, or "".
func (b booking) service() string {
	if b.ServiceID == nil {
		return ""
	}
	return *b.ServiceID
}

func (b booking) minutes() int { return int(b.EndsAt.Sub(*b.StartsAt) / time.Minute) }

// TestServiceOfTheUnit checks when a new booking gets the only active service of its unit: if its end follows from a duration and it
// names neither a service nor a package.
func TestServiceOfTheUnit(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.unitServices(ctx)
	const clock, instant = `{"event_date":"2030-05-01","event_start_time":"%02d:00","unit_id":"%s"%s}`, `{"starts_at":"2030-05-02T%02d:00:00Z","unit_id":"%s"%s}`
	for n, tc := range []struct {
		format, unit, more string
		service            string
		minutes            int
		wrong              string
	}{
		{clock, s.one, "", s.tour, 60, ""},
		{instant, s.one, "", s.tour, 60, ""},
		{clock, s.one, `,"event_end_time":null`, s.tour, 60, ""},
		{clock, s.one, `,"package_id":"` + s.pack + `"`, s.tour, 20, ""},
		{clock, s.one, `,"event_end_time":"11:00"`, "", 60, ""},
		{clock, s.one, `,"service_id":null`, "", 0, "event_end_time"},
		{instant, s.one, `,"service_id":null`, "", 0, "ends_at"},
		{clock, s.two, "", "", 0, "event_end_time"},
		{clock, s.none, "", "", 0, "event_end_time"},
	} {
		body := fmt.Sprintf(tc.format, 2+2*n, tc.unit, tc.more)
		a := w.post(ctx, body)
		if tc.wrong != "" {
			a.is(422, "invalid_request", tc.wrong)
			continue
		}
		if b := a.is(201).booking(); b.service() != tc.service || b.minutes() != tc.minutes {
			t.Errorf("%s: service %q, %d minutes", body, b.service(), b.minutes())
		}
	}
	if day := w.book(ctx, `"event_date":"2030-06-01","unit_id":%q`, s.one); day.service() != "" {
		t.Errorf("a whole day has the service %s", day.service())
	}
	for day, origin := range map[int]string{2: ofQuote(100, 50), 3: ofLead()} {
		b := w.link(ctx, origin, fmt.Sprintf(`"event_date":"2030-06-%02d","event_start_time":"10:00","unit_id":%q`, day, s.one)).is(200).booking()
		if b.service() != s.tour || b.minutes() != 60 {
			t.Errorf("%s: service %q, %d minutes", origin, b.service(), b.minutes())
		}
	}
	// The buffer of the service applies: the booking from 02:00 to 03:00 takes the unit until 03:15.
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","event_start_time":"03:10","event_end_time":"03:40","unit_id":%q}`, s.one)).is(409, "slot_unavailable")
}

// TestServiceOfTheUnitOfAMove checks that a change gives a booking the service of its unit only if its end follows from a duration.
func TestServiceOfTheUnitOfAMove(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.unitServices(ctx)
	const day, timed = `"event_date":"2030-06-%02d","unit_id":%q`, `"event_date":"2030-06-%02d","unit_id":%q,"event_start_time":"10:00","event_end_time":"14:00"`
	for n, tc := range []struct {
		booking, change string
		service         string
		minutes         int
		wrong           string
	}{
		{day, `{"event_start_time":"10:00"}`, s.tour, 60, ""},
		{timed, `{"event_end_time":null}`, s.tour, 60, ""},
		{timed, `{"ends_at":null}`, s.tour, 60, ""},
		{timed, `{"event_start_time":"11:00"}`, "", 240, ""},
		{timed, `{"starts_at":"2030-07-01T10:00:00Z"}`, "", 240, ""},
		{timed, `{"event_start_time":null,"event_end_time":null}`, "", 1440, ""},
		{timed, `{"event_end_time":null,"service_id":null}`, "", 0, "event_end_time"},
	} {
		b := w.book(ctx, tc.booking, n+1, s.one)
		a := w.patch(ctx, b.ID, tc.change)
		if tc.wrong != "" {
			a.is(422, "invalid_request", tc.wrong)
			continue
		}
		if b := a.is(200).booking(); b.service() != tc.service || b.minutes() != tc.minutes {
			t.Errorf("%s: service %q, %d minutes", tc.change, b.service(), b.minutes())
		}
	}
}
