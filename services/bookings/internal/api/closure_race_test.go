package api_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestClosureAgainstBookings checks that a booking that is created or moved in parallel with a closure of its time is either in the
// closure's conflicts or refused.
func TestClosureAgainstBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	stayed, refused := 0, 0
	for round := range 30 {
		day := time.Date(2030, 5, 1+2*round, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		var elsewhere []booking
		for n := range 4 {
			elsewhere = append(elsewhere, w.book(ctx, `"starts_at":"%d-01-%02dT10:00:00Z","ends_at":"%d-01-%02dT11:00:00Z","unit_id":%q`, 2031+n, round+1, 2031+n, round+1, s.ada))
		}
		wider := decode[closure](w.do(ctx, "POST", "/closures", `{"name":"C","date_from":"2029-01-01","date_to":"2029-01-01"}`).is(201))
		var created, moved [8]response
		var closing response
		var all sync.WaitGroup
		for i := range created {
			unit := []fmt.Stringer{s.ada, s.bee}[i%2]
			all.Go(func() {
				created[i] = w.post(ctx, fmt.Sprintf(`{"starts_at":"%sT%02d:00:00-04:00","ends_at":"%sT%02d:30:00-04:00","unit_id":%q}`, day, 1+i, day, 1+i, unit))
			})
			if i < len(elsewhere) {
				all.Go(func() {
					moved[i] = w.patch(ctx, elsewhere[i].ID, fmt.Sprintf(`{"event_date":%q,"event_start_time":"%02d:00","event_end_time":"%02d:30"}`, day, 12+i, 12+i))
				})
			}
			if i == round%len(created) {
				all.Go(func() { closing = w.closing(ctx, round, wider.ID, day) })
			}
		}
		all.Wait()
		conflicts := decode[closure](closing).Conflicts
		want := 0
		for i, a := range append(created[:], moved[:len(elsewhere)]...) {
			switch {
			case a.Status == 409:
				a.is(409, "slot_unavailable")
				refused++
			case a.Status != 200 && a.Status != 201:
				t.Errorf("%d: %s", i, a.Body)
			case !slices.Contains(conflicts, a.booking().ID):
				t.Errorf("round %d: booking %d is neither a conflict nor refused", round, i)
			default:
				want++
			}
		}
		if stayed += want; len(conflicts) != want {
			t.Errorf("round %d: %d conflicts, want %d", round, len(conflicts), want)
		}
		w.post(ctx, fmt.Sprintf(`{"starts_at":"%sT20:00:00-04:00","ends_at":"%sT21:00:00-04:00","unit_id":%q}`, day, day, s.ada)).is(409, "slot_unavailable")
	}
	if stayed == 0 || refused == 0 {
		t.Errorf("no race: %d bookings before and %d after their closure", stayed, refused)
	}
}

// closing closes a day by a new closure or by the change of another one, of all units or of two.
func (w *world) closing(ctx context.Context, round int, other, day string) response {
	switch round % 3 {
	case 0:
		return w.do(ctx, "POST", "/closures", fmt.Sprintf(`{"name":"C","date_from":%q,"date_to":%q}`, day, day)).is(201)
	case 1:
		return w.do(ctx, "PATCH", "/closures/"+other, fmt.Sprintf(`{"date_from":%q,"date_to":%q}`, day, day)).is(200)
	default:
		return w.do(ctx, "POST", "/closures", fmt.Sprintf(`{"name":"C","starts_at":"%sT04:00:00Z","ends_at":"%sT23:59:00-04:00"}`, day, day)).is(201)
	}
}

// TestAClosureWaitsForBookings checks both orders of a closure and a booking in flight: a closure waits for a booking that has locked
// its unit, and a booking waits for a closure that has.
func TestAClosureWaitsForBookings(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	s := w.shop(ctx)
	b := w.book(ctx, `"event_date":"2030-05-01","unit_id":%q`, s.bee)
	moving, err := w.Owner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`select from units where id = $1 for no key update`, `update bookings set event_day = '2030-05-02', starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day' where unit_id = $1`} {
		if _, err := moving.Exec(t.Context(), sql, s.bee); err != nil {
			t.Fatal(err)
		}
	}
	const body = `{"name":"C","date_from":"2030-05-02","date_to":"2030-05-02"}`
	closed, booked, added := make(chan response), make(chan response), make(chan response)
	go func() { closed <- w.do(ctx, "POST", "/closures", body) }()
	w.Waiting("transactionid")
	go func() { added <- w.do(ctx, "POST", "/units", `{"name":"Later"}`) }() // waits for the catalogue, so that it cannot be booked
	w.Waiting("advisory transactionid")
	go func() { booked <- w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-02","unit_id":%q}`, s.ada)) }() // waits for the closure, which has locked it
	w.Waiting("advisory transactionid transactionid")
	if err := moving.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := decode[closure]((<-closed).is(201)); !slices.Equal(got.Conflicts, []string{b.ID}) {
		t.Errorf("conflicts %v, want %s", got.Conflicts, b.ID)
	}
	(<-booked).is(409, "slot_unavailable")
	later := decode[offered]((<-added).is(201)).ID
	w.post(ctx, fmt.Sprintf(`{"event_date":"2030-05-02","unit_id":%q}`, later)).is(409, "slot_unavailable")
}
