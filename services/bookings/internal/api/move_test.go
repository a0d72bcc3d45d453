package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"

	"holdfast.dev/services/bookings/internal/domain"
)

// shownTimes are the fields of a booking that determine its time, as GET returns them.
var shownTimes = []string{"event_date", "event_start_time", "event_end_time", "starts_at", "ends_at"}

// TestMove checks the rule of moved bookings: only an end that is named changes the length.
func TestMove(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test) // New York
	s := w.shop(ctx)
	tour := fmt.Sprintf(`,"service_id":"%s"`, s.tour)
	unit := fmt.Sprintf(`,"unit_id":"%s"`, s.cat)
	const week = `"starts_at":"2030-07-01T14:00:00Z","ends_at":"2030-07-08T15:30:00Z"` // 10:00 to 11:30
	for _, tc := range []struct{ fields, patch, start, end, wrong string }{
		{week, `"event_date":"2030-07-01T14:00:00Z"`, "2030-07-01T14:00:00Z", "2030-07-08T15:30:00Z", ""},
		{week, `"event_date":"2030-07-01"`, "2030-07-01T14:00:00Z", "2030-07-08T15:30:00Z", ""},
		{week, `"event_start_time":"10:00","event_end_time":"11:30"`, "2030-07-01T14:00:00Z", "2030-07-08T15:30:00Z", ""},
		{week, `"event_date":"2030-07-03"`, "2030-07-03T14:00:00Z", "2030-07-10T15:30:00Z", ""},
		{week, `"event_date":"2030-07-03","event_start_time":"10:00","event_end_time":"11:30"`, "2030-07-03T14:00:00Z", "2030-07-10T15:30:00Z", ""},
		{week, `"event_date":"2030-10-30"`, "2030-10-30T14:00:00Z", "2030-11-06T16:30:00Z", ""}, // over the autumn change
		{week, `"event_start_time":"13:00"`, "2030-07-01T17:00:00Z", "2030-07-08T18:30:00Z", ""},
		{week, `"event_end_time":"09:00"`, "2030-07-01T14:00:00Z", "2030-07-08T13:00:00Z", ""},
		{week, `"event_start_time":"12:00","event_end_time":"09:00"`, "2030-07-01T16:00:00Z", "2030-07-08T13:00:00Z", ""},
		{week, `"event_start_time":null`, "", "", "event_end_time"},
		{week, `"event_start_time":null,"event_end_time":null`, "", "", ""},
		{week, `"starts_at":"2030-07-02T14:00:00Z"`, "2030-07-02T14:00:00Z", "2030-07-09T15:30:00Z", ""},
		{week, `"starts_at":"2030-10-30T14:00:00Z"`, "2030-10-30T14:00:00Z", "2030-11-06T16:30:00Z", ""},
		{week, `"ends_at":"2030-07-05T12:00:00Z"`, "2030-07-01T14:00:00Z", "2030-07-05T12:00:00Z", ""},
		{week, `"starts_at":"2030-07-02T14:00:00Z","ends_at":"2030-07-08T15:30:00Z"`, "2030-07-02T14:00:00Z", "2030-07-08T15:30:00Z", ""},
		{week, `"starts_at":"2030-07-02T14:00:00Z","event_date":"2030-07-01T14:00:00Z","event_start_time":"10:00"`, "2030-07-02T14:00:00Z", "2030-07-09T15:30:00Z", ""},
		{week, `"event_date":"2030-07-02","starts_at":"2030-07-01T14:00:00Z","ends_at":"2030-07-08T15:30:00Z"`, "2030-07-02T14:00:00Z", "2030-07-09T15:30:00Z", ""},
		{week, `"event_date":"2030-07-02","starts_at":"2030-07-03T14:00:00Z"`, "", "", "starts_at"},
		{week, `"event_start_time":"12:00","ends_at":"2030-07-09T14:00:00Z"`, "", "", "starts_at"},
		{week, `"ends_at":"2030-07-01T14:00:00Z"`, "", "", "ends_at"},
		{week, `"starts_at":null`, "", "", "starts_at"},
		{week, `"ends_at":null`, "", "", "ends_at"},
		{week + tour, `"ends_at":null`, "2030-07-01T14:00:00Z", "2030-07-01T16:00:00Z", ""},
		{week, `"ends_at":"2031-07-03T14:00:00Z"`, "", "", "ends_at"},
		{week, `"ends_at":"2031-07-02T14:00:00Z"`, "2030-07-01T14:00:00Z", "2031-07-02T14:00:00Z", ""}, // 366 days
		{week, `"event_date":"2199-12-30"`, "", "", "event_end_time"},
		{`"starts_at":"2030-06-01","ends_at":"2030-06-02"`, `"event_date":"2030-11-03"`, "2030-11-03T04:00:00Z", "2030-11-04T05:00:00Z", ""}, // 25 hours

		{`"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"12:00"`, `"event_start_time":"13:00"`, "2030-05-01T17:00:00Z", "2030-05-01T19:00:00Z", ""},
		{`"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"12:00"`, `"event_start_time":"11:00","event_end_time":"12:00"`, "2030-05-01T15:00:00Z", "2030-05-01T16:00:00Z", ""},
		{`"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"12:00"`, `"event_end_time":"09:00"`, "2030-05-01T14:00:00Z", "2030-05-02T13:00:00Z", ""},
		{`"event_date":"2030-05-01","event_start_time":"22:00","event_end_time":"04:00"`, `"event_date":"2030-11-02"`, "2030-11-03T02:00:00Z", "2030-11-03T08:00:00Z", ""}, // elapsed time
		{`"event_date":"2030-05-01","event_start_time":"22:00","event_end_time":"04:00"`, `"event_date":"2030-11-02","event_end_time":"04:00"`, "2030-11-03T02:00:00Z", "2030-11-03T09:00:00Z", ""},
		{`"event_date":"2030-05-01","event_start_time":"10:00"` + tour, `"event_start_time":"11:00"`, "2030-05-01T15:00:00Z", "2030-05-01T17:00:00Z", ""},
		{`"event_date":"2030-05-01","event_start_time":"10:00"` + tour, `"event_end_time":"10:30"`, "2030-05-01T14:00:00Z", "2030-05-01T14:30:00Z", ""},
		{`"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"10:30"` + tour, `"event_end_time":null`, "2030-05-01T14:00:00Z", "2030-05-01T16:00:00Z", ""},

		{`"starts_at":"2026-11-01T06:30:00Z","ends_at":"2026-11-01T08:00:00Z"`, `"event_start_time":"01:30"`, "2026-11-01T06:30:00Z", "2026-11-01T08:00:00Z", ""}, // the second 01:30
		{`"starts_at":"2026-11-01T06:30:00Z","ends_at":"2026-11-01T08:00:00Z"`, `"event_start_time":"01:30","event_end_time":"05:00"`, "2026-11-01T06:30:00Z", "2026-11-01T10:00:00Z", ""},
		{`"starts_at":"2026-11-01T04:00:00Z","ends_at":"2026-11-01T06:30:00Z"`, `"event_start_time":"00:30","event_end_time":"01:30"`, "2026-11-01T04:30:00Z", "2026-11-01T06:30:00Z", ""},
		{`"event_date":"2026-03-01","event_start_time":"10:00","event_end_time":"12:00"`, `"event_date":"2026-03-08","event_start_time":"02:30"`, "", "", "event_start_time"},

		{`"event_date":"2030-05-01"` + unit, `"starts_at":"2030-05-02"`, "2030-05-02T04:00:00Z", "2030-05-03T04:00:00Z", ""},
		{`"event_date":"2030-05-01"` + unit, `"event_date":"2030-11-03"`, "2030-11-03T04:00:00Z", "2030-11-04T05:00:00Z", ""},
		{`"event_date":"2030-05-01"`, `"event_start_time":"10:00","event_end_time":"11:00"`, "2030-05-01T14:00:00Z", "2030-05-01T15:00:00Z", ""},
		{`"event_date":"2030-05-01"`, `"event_start_time":"10:00"`, "", "", "event_end_time"},
		{`"event_date":"2030-05-01"` + tour, `"event_start_time":"10:00"`, "2030-05-01T14:00:00Z", "2030-05-01T16:00:00Z", ""},
		{`"event_date":"2030-05-01"`, `"ends_at":"2030-05-02"`, "", "", "starts_at"},
		{`"event_date":"2030-05-01"`, `"starts_at":"2030-05-02T10:00:00Z","ends_at":"2030-05-02T11:00:00Z"`, "2030-05-02T10:00:00Z", "2030-05-02T11:00:00Z", ""},
	} {
		b := w.book(ctx, "%s", tc.fields)
		got := w.patch(ctx, b.ID, "{"+tc.patch+"}")
		if tc.wrong != "" {
			got.is(422, "invalid_request", tc.wrong)
		} else if b := got.is(200).booking(); [2]string{at(b.StartsAt), at(b.EndsAt)} != [2]string{tc.start, tc.end} {
			t.Errorf("%s, then %s: from %s to %s, want %s to %s", tc.fields, tc.patch, at(b.StartsAt), at(b.EndsAt), tc.start, tc.end)
		}
		w.do(ctx, "POST", "/bookings/"+b.ID+"/cancel", `{}`).is(200)
	}
}

// TestLastDay checks event_local_end_date and the longest booking.
func TestLastDay(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	for _, tc := range []struct{ fields, last string }{
		{`"event_date":"2030-05-01"`, "2030-05-01"},
		{fmt.Sprintf(`"event_date":"2030-05-01","unit_id":"%s"`, s.cat), "2030-05-01"},
		{`"event_date":"2030-05-01","event_start_time":"10:00","event_end_time":"11:00"`, "2030-05-01"},
		{`"event_date":"2030-05-01","event_start_time":"22:00","event_end_time":"02:00"`, "2030-05-02"},
		{`"starts_at":"2030-07-01T14:00:00Z","ends_at":"2030-07-08T03:59:00Z"`, "2030-07-07"},
		{`"starts_at":"2030-07-01T14:00:00Z","ends_at":"2030-07-08T14:00:00Z"`, "2030-07-08"},
	} {
		if got := w.book(ctx, "%s", tc.fields); got.EventLocalEndDate != tc.last {
			t.Errorf("%s ends on %s, want %s", tc.fields, got.EventLocalEndDate, tc.last)
		}
	}
	w.post(ctx, `{"starts_at":"2030-07-01T14:00:00Z","ends_at":"2127-07-01T14:00:00Z"}`).is(422, "invalid_request", "ends_at")
	w.post(ctx, `{"starts_at":"2030-07-01T14:00:00Z","ends_at":"2031-07-02T14:01:00Z"}`).is(422, "invalid_request", "ends_at")
	w.post(ctx, `{"starts_at":"2030-07-01T14:00:00Z","ends_at":"2031-07-02T14:00:00Z"}`).is(201)
	w.Exec(`update services set duration_minutes = 366 * 1440 + 1 where name = 'Tour'`)
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-01","event_start_time":"10:00","service_id":"%s"}`, s.tour)).is(422, "invalid_request", "event_end_time")
	w.post(ctx, fmt.Sprintf(`{"starts_at":"2030-05-01T10:00:00Z","service_id":"%s"}`, s.tour)).is(422, "invalid_request", "ends_at")
}

// TestMissingDuration checks that the error of a missing end names the services of the unit.
func TestMissingDuration(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	service := w.offer(ctx, "/services", `{"name":"Tour","duration_minutes":60}`).ID
	other := w.offer(ctx, "/services", `{"name":"Class","duration_minutes":30}`).ID
	unit := w.offer(ctx, "/units", fmt.Sprintf(`{"name":"Boat","service_ids":[%q,%q]}`, service, other)).ID
	const start = `{"event_date":"2030-05-01","event_start_time":"10:00"`
	for body, named := range map[string]bool{start + `}`: false, start + fmt.Sprintf(`,"unit_id":%q}`, unit): true} {
		if got := string(w.post(ctx, body).is(422, "invalid_request", "event_end_time").Body); strings.Contains(got, service) != named {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// TestUnchangedTimes checks a booking in the past under a policy that would not accept a move: its own values are not a move.
func TestUnchangedTimes(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	b := w.book(ctx, `"event_date":"2001-05-01","event_start_time":"10:00","event_end_time":"12:00"`)
	w.tenants.Set(noPast())
	w.patch(ctx, b.ID, `{"event_date":"2001-05-01","event_start_time":"10:00","notes":"x"}`).is(200)
	w.patch(ctx, b.ID, `{"event_end_time":"13:00"}`).is(200)
	w.patch(ctx, b.ID, `{"event_start_time":"11:00"}`).is(422, "invalid_request", "event_date")
}

// TestMovedBookings checks for random bookings, in zones with and without daylight saving time, that the values that GET returns
// change nothing, and that a new start alone keeps the length.
func TestMovedBookings(t *testing.T) {
	t.Parallel()
	w, base := newWorld(t), pgtest.Ctx(t, caller.Test)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	moved := 0
	for range 150 {
		zone := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"}[r.IntN(5)]
		ctx := zoned(base, zone)
		created := w.post(ctx, randomBooking(r))
		if created.Status == 422 { // a local time that the clock skips
			continue
		}
		b := created.is(201)
		id := b.booking().ID
		for range 3 {
			if got := w.patch(ctx, id, subset(r, b.Body)).is(200); string(got.Body) != string(b.Body) {
				t.Fatalf("seed %d: a subset of %s changed it to %s", seed, b.Body, got.Body)
			}
		}
		moved += w.moves(ctx, r, b.booking(), seed)
	}
	if moved < 100 {
		t.Errorf("seed %d: only %d moves", seed, moved)
	}
}

// randomBooking returns a booking of a whole day, of some hours, or of one to thirty days.
func randomBooking(r *rand.Rand) string {
	day := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.IntN(800))
	clock := func() string { return fmt.Sprintf("%02d:%02d", r.IntN(24), 30*r.IntN(2)) }
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"event_date":%q}`, day.Format(time.DateOnly))
	case 1:
		return fmt.Sprintf(`{"event_date":%q,"event_start_time":%q,"event_end_time":%q}`, day.Format(time.DateOnly), clock(), clock())
	default:
		from := day.Add(time.Duration(r.IntN(86_400)) * time.Second)
		to := from.Add(time.Duration(1+r.IntN(30*24*60)) * time.Minute)
		return fmt.Sprintf(`{"starts_at":%q,"ends_at":%q}`, from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
}

// subset returns some of the times of a booking as GET returned them.
func subset(r *rand.Rand, body []byte) string {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return err.Error()
	}
	var fields []string
	for _, name := range shownTimes {
		if r.IntN(2) == 0 {
			fields = append(fields, fmt.Sprintf("%q:%s", name, all[name]))
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// moves moves only the start of a booking and checks its length. It returns the number of moves that the clock allowed.
func (w *world) moves(ctx context.Context, r *rand.Rand, b booking, seed uint64) (n int) {
	w.T.Helper()
	if b.StartsAt == nil {
		return 0
	}
	loc, err := time.LoadLocation(caller.FromContext(ctx).Timezone)
	if err != nil {
		w.T.Fatal(err)
	}
	day := b.StartsAt.AddDate(0, 0, r.IntN(400)-200)
	for _, patch := range []string{
		fmt.Sprintf(`{"event_date":%q}`, day.Format(time.DateOnly)),
		fmt.Sprintf(`{"event_start_time":"%02d:30"}`, r.IntN(24)),
		fmt.Sprintf(`{"starts_at":%q}`, day.Add(time.Duration(r.IntN(2000))*time.Minute).Format(time.RFC3339)),
	} {
		got := w.patch(ctx, b.ID, patch)
		if got.Status == 422 {
			continue
		}
		next := got.is(200).booking()
		elapsed := [2]time.Duration{b.EndsAt.Sub(*b.StartsAt), next.EndsAt.Sub(*next.StartsAt)}
		local := [2]time.Duration{localLength(b, loc), localLength(next, loc)}
		if retained := elapsed; local[0] >= 24*time.Hour {
			retained = local
			if retained[0] != retained[1] {
				w.T.Fatalf("seed %d: %s of %s–%s: %s", seed, patch, b.StartsAt.In(loc), b.EndsAt.In(loc), got.Body)
			}
		} else if retained[0] != retained[1] {
			w.T.Fatalf("seed %d: %s of %s–%s: %s", seed, patch, b.StartsAt.In(loc), b.EndsAt.In(loc), got.Body)
		}
		b = next
		n++
	}
	return n
}

// localLength returns the time between start and end on the clock of loc.
func localLength(b booking, loc *time.Location) time.Duration {
	shown := make([]time.Time, 0, 2)
	for _, t := range []*time.Time{b.StartsAt, b.EndsAt} {
		l, _ := time.Parse("2006-01-02T15:04:05", t.In(loc).Format("2006-01-02T15:04:05"))
		shown = append(shown, l)
	}
	slices.SortFunc(shown, time.Time.Compare)
	return shown[1].Sub(shown[0])
}

func noPast() domain.Policy { return domain.Policy{MinNoticeMinutes: new(0)} }
