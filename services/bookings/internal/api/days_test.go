package api_test

import (
	"slices"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/pgtest"
)

// event_date_from and event_date_to find a booking by each of its local days, however long it is. One that ends at midnight does
// not touch the day that begins then.
func TestBookingsAreFoundByEachOfTheirDays(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), pgtest.Ctx(t, caller.Test) // in New York
	made := map[string]string{}
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
		made[w.book(ctx, `"starts_at":"%s","ends_at":"%s"`, times[0], times[1]).ID] = name
	}
	made[w.book(ctx, `"event_date":"2030-06-10"`).ID] = "day"
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
				got = append(got, made[row.ID])
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
