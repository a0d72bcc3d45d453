package api_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// TestBookingsAreFoundByEachOfTheirDays checks that event_date_from and event_date_to find a booking by each of its local days,
// regardless of its length. A booking that ends at midnight does not touch the day that begins then.
func TestBookingsAreFoundByEachOfTheirDays(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test) // in New York
	names := map[string]string{}
	for name, times := range map[string][2]string{
		"night":    {"2030-06-10T22:00:00-04:00", "2030-06-11T02:00:00-04:00"},
		"midnight": {"2030-06-10T20:00:00-04:00", "2030-06-11T00:00:00-04:00"},
		"instant":  {"2030-06-10T20:00:00-04:00", "2030-06-11T00:00:00.000001-04:00"},
		"two days": {"2030-06-08T12:00:00-04:00", "2030-06-10T00:00:00-04:00"},
		"week":     {"2030-06-05T12:00:00-04:00", "2030-06-12T09:00:00-04:00"},
		"month":    {"2030-05-10T12:00:00-04:00", "2030-06-10T09:00:00-04:00"},
		"season":   {"2030-03-01T12:00:00-05:00", "2030-06-11T00:00:00-04:00"},
		"autumn":   {"2030-11-02T12:00:00-04:00", "2030-11-04T00:00:00-05:00"}, // the 3rd has 25 hours
	} {
		names[w.book(ctx, `"starts_at":"%s","ends_at":"%s"`, times[0], times[1]).ID] = name
	}
	names[w.book(ctx, `"event_date":"2030-06-10"`).ID] = "day"
	for query, want := range map[string][]string{
		"event_date_from=2030-06-09&event_date_to=2030-06-09":                          {"month", "season", "two days", "week"},
		"event_date_from=2030-06-10&event_date_to=2030-06-10":                          {"day", "instant", "midnight", "month", "night", "season", "week"},
		"event_date_from=2030-06-11&event_date_to=2030-06-11":                          {"instant", "night", "week"},
		"event_date_from=2030-06-12&event_date_to=2030-06-30":                          {"week"},
		"event_date_from=2030-06-13":                                                   {"autumn"},
		"event_date_from=2030-11-03&event_date_to=2030-11-03":                          {"autumn"},
		"event_date_from=2030-11-04":                                                   {},
		"event_date_to=2030-03-01":                                                     {"season"},
		"event_date_to=2030-02-28":                                                     {},
		"event_date_from=2030-06-11&event_date_to=2030-06-09":                          {},
		"event_date_from=2030-06-11&event_date_to=2030-06-11&status=pending,confirmed": {"instant", "night", "week"},
		"event_date_from=2030-06-11&event_date_to=2030-06-11&status=cancelled":         {},
	} {
		for _, sort := range []string{"", "&sort=updated_at"} {
			got := []string{}
			for _, row := range w.synced(ctx, "/bookings?limit=100&"+query+sort, len(want)) {
				got = append(got, names[row.ID])
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s%s: got %v, want %v", query, sort, got, want)
			}
		}
	}
	if got := w.pages(ctx, "limit=2&event_date_from=2030-06-11&event_date_to=2030-06-11", nil); len(got) != 3 || distinct(got) != 3 {
		t.Errorf("pages: %d rows", len(got))
	}
}

// TestSlotsOverMidnightCanBeBooked checks that a unit that is always open is offered across midnight, and that each slot shown can
// be booked, including on days of 23 and 25 hours.
func TestSlotsOverMidnightCanBeBooked(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test)
	loc, err := time.LoadLocation(caller.FromContext(ctx).Timezone) // New York
	if err != nil {
		t.Fatal(err)
	}
	s := w.offer(ctx, "/services", `{"name":"Night","duration_minutes":140}`)
	unit := w.offer(ctx, "/units", fmt.Sprintf(`{"name":"Always","service_ids":[%q]}`, s.ID))
	for _, date := range []string{"2030-06-10", "2030-06-11", "2030-03-09", "2030-03-10", "2030-03-11", "2030-11-02", "2030-11-03", "2030-11-04"} {
		slots := w.days(ctx, "from="+date+"&to="+date+"&unit_id="+unit.ID)[0].Units[0].Slots
		if last := slots[len(slots)-1]; last.EndsAt.In(loc).Format(time.DateOnly) <= date || last.StartsAt.In(loc).Format(time.DateOnly) != date {
			t.Errorf("%s: the last slot is %v", date, last)
		}
		for i, slot := range slots {
			if slot.Status == "booked" && i == 0 {
				continue // overlaps a slot of the night before
			}
			if got := w.reason(ctx, unit.ID, slot.StartsAt.Format(time.RFC3339)); slot.Status != "available" || got != "" {
				t.Errorf("%v is explained as %q", slot, got)
			}
			b := w.book(ctx, `"starts_at":%q,"ends_at":%q,"unit_id":%q,"service_id":%q,"status":"confirmed"`,
				slot.StartsAt.Format(time.RFC3339), slot.EndsAt.Format(time.RFC3339), unit.ID, s.ID)
			if b.EventLocalDate != date {
				t.Errorf("%v of %s is booked on %s", slot, date, b.EventLocalDate)
			}
		}
	}
}
