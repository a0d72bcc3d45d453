package report_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/domain/report"
)

func date(text string) civil.Date {
	d, err := civil.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return d
}

func days(t testing.TB, zone, from, to string) report.Days {
	t.Helper()
	loc, err := civil.Location(zone)
	if err != nil {
		t.Fatal(err)
	}
	return report.NewDays(availability.Range{From: date(from), To: date(to)}, loc)
}

func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

func unit(status domain.UnitStatus, hours domain.OpeningHours) domain.Unit {
	return domain.Unit{ID: ids.New[domain.UnitPrefix](), Status: status, OpeningHours: hours}
}

// week returns opening hours with these openings on each day.
func week(openings ...domain.Opening) domain.OpeningHours {
	h := domain.OpeningHours{}
	for d := range 7 {
		h[time.Weekday(d)] = openings
	}
	return h
}

// TestSessionsCountOnce checks that the bookings of a session occupy their unit once, and that each of them counts with its money.
func TestSessionsCountOnce(t *testing.T) {
	t.Parallel()
	d, u := days(t, "UTC", "2030-05-01", "2030-05-01"), unit(domain.UnitActive, nil)
	var list []report.Booked
	for _, hour := range []int{10, 10, 10, 12} {
		from := d.Time.From.Add(time.Duration(hour) * time.Hour)
		list = append(list, report.Booked{
			Day: d.From, Status: domain.Confirmed, Currency: "USD", Gross: 5, Unit: u.ID, Timed: true, During: domain.Span{From: from, To: from.Add(2 * time.Hour)},
		})
	}
	got, err := report.Statistics(t.Context(), d, "USD", []domain.Unit{u}, list)
	if err != nil || got[0].Bookings != 4 || got[0].Revenue != 20 || got[0].Booked != 4*time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestMinutes checks the booked and open minutes of a unit on each day.
func TestMinutes(t *testing.T) {
	t.Parallel()
	const ny = "America/New_York"
	office, night := week(domain.Opening{Open: "09:00", Close: "17:00"}), week(domain.Opening{Open: "22:00", Close: "03:00"})
	halves := week(domain.Opening{Open: "13:00", Close: "17:00"}, domain.Opening{Open: "09:00", Close: "12:00"})
	type minutes struct{ booked, open int }
	for name, tc := range map[string]struct {
		zone, from, to string
		unit           domain.Unit
		starts, ends   string // "": a whole day
		want           []minutes
	}{
		"within a day":           {ny, "2026-05-01", "2026-05-02", unit("active", nil), "2026-05-01T14:00:00Z", "2026-05-01T15:30:00Z", []minutes{{90, 1440}, {0, 1440}}},
		"past midnight":          {ny, "2026-05-01", "2026-05-02", unit("active", nil), "2026-05-02T03:00:00Z", "2026-05-02T06:00:00Z", []minutes{{60, 1440}, {120, 1440}}},
		"into the days":          {ny, "2026-05-01", "2026-05-01", unit("active", nil), "2026-04-20T12:00:00Z", "2026-05-01T06:00:00Z", []minutes{{120, 1440}}},
		"out of the days":        {ny, "2026-05-01", "2026-05-01", unit("active", nil), "2026-05-02T02:00:00Z", "2026-06-01T06:00:00Z", []minutes{{120, 1440}}},
		"over all":               {ny, "2026-05-01", "2026-05-02", unit("active", nil), "2025-05-02T02:00:00Z", "2027-06-01T06:00:00Z", []minutes{{1440, 1440}, {1440, 1440}}},
		"in maintenance":         {ny, "2026-05-01", "2026-05-01", unit("maintenance", nil), "2026-05-01T14:00:00Z", "2026-05-01T15:30:00Z", []minutes{{90, 0}}},
		"retired":                {ny, "2026-05-01", "2026-05-01", unit("retired", nil), "2026-05-01T14:00:00Z", "2026-05-01T15:30:00Z", []minutes{{90, 0}}},
		"opening hours":          {ny, "2026-05-01", "2026-05-01", unit("active", office), "2026-05-01T14:00:00Z", "2026-05-01T15:30:00Z", []minutes{{90, 480}}},
		"two openings":           {ny, "2026-05-01", "2026-05-01", unit("active", halves), "2026-05-01T15:00:00Z", "2026-05-01T18:00:00Z", []minutes{{180, 420}}},
		"a night":                {ny, "2026-05-01", "2026-05-02", unit("active", night), "2026-05-02T02:30:00Z", "2026-05-02T06:30:00Z", []minutes{{240, 300}, {0, 300}}},
		"the end of a night":     {ny, "2026-05-01", "2026-05-02", unit("active", night), "2026-05-02T05:00:00Z", "2026-05-02T07:00:00Z", []minutes{{120, 300}, {0, 300}}},
		"a night before":         {ny, "2026-05-02", "2026-05-02", unit("active", night), "2026-05-02T02:30:00Z", "2026-05-02T06:30:00Z", []minutes{{0, 300}}},
		"beyond its opening":     {ny, "2026-05-01", "2026-05-02", unit("active", night), "2026-05-02T02:00:00Z", "2026-05-02T08:00:00Z", []minutes{{300, 300}, {60, 300}}},
		"outside of its hours":   {ny, "2026-05-01", "2026-05-02", unit("active", office), "2026-05-02T02:00:00Z", "2026-05-02T06:00:00Z", []minutes{{120, 480}, {120, 480}}},
		"a whole day":            {ny, "2026-05-01", "2026-05-02", unit("active", office), "", "2026-05-01", []minutes{{480, 480}, {0, 480}}},
		"a whole night":          {ny, "2026-05-01", "2026-05-02", unit("active", night), "", "2026-05-01", []minutes{{300, 300}, {0, 300}}},
		"a whole day of retired": {ny, "2026-05-01", "2026-05-01", unit("retired", office), "", "2026-05-01", []minutes{{480, 0}}},
		"a whole day before":     {ny, "2026-05-02", "2026-05-02", unit("active", nil), "", "2026-05-01", []minutes{{0, 1440}}},
		"short":                  {ny, "2026-03-08", "2026-03-09", unit("active", nil), "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", []minutes{{1380, 1380}, {0, 1440}}},
		"long":                   {ny, "2026-11-01", "2026-11-02", unit("active", nil), "", "2026-11-01", []minutes{{1500, 1500}, {0, 1440}}},
		"short night":            {ny, "2026-03-07", "2026-03-08", unit("active", night), "", "2026-03-07", []minutes{{240, 240}, {0, 300}}},
		"no midnight":            {"America/Santiago", "2026-09-05", "2026-09-06", unit("active", nil), "2026-09-06T03:00:00Z", "2026-09-06T05:00:00Z", []minutes{{60, 1440}, {60, 1380}}},
		"no midnight, hours":     {"America/Santiago", "2026-09-05", "2026-09-06", unit("active", night), "2026-09-06T02:30:00Z", "2026-09-06T05:30:00Z", []minutes{{180, 240}, {0, 300}}},
		"midnight twice":         {"America/Havana", "2026-11-01", "2026-11-01", unit("active", nil), "2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", []minutes{{60, 1500}}},
		"no such day":            {"Pacific/Apia", "2011-12-29", "2011-12-31", unit("active", nil), "2011-12-30T09:00:00Z", "2011-12-30T11:00:00Z", []minutes{{60, 1440}, {0, 0}, {60, 1440}}},
	} {
		d := days(t, tc.zone, tc.from, tc.to)
		b := report.Booked{Unit: tc.unit.ID, Status: domain.Confirmed}
		if tc.starts == "" {
			b.Day = date(tc.ends)
		} else {
			b.Timed, b.During = true, domain.Span{From: instant(tc.starts), To: instant(tc.ends)}
			b.Day = civil.DateOf(b.During.From.In(d.Loc))
		}
		got, err := report.Statistics(t.Context(), d, "USD", []domain.Unit{tc.unit}, []report.Booked{b})
		if err != nil || len(got) != len(tc.want) {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		for i, want := range tc.want {
			if day := got[i]; int(day.Booked.Minutes()) != want.booked || int(day.Open.Minutes()) != want.open || day.Date != date(tc.from).AddDays(i) {
				t.Errorf("%s: day %d is booked for %v of %v, want %v", name, i, day.Booked, day.Open, want)
			}
		}
	}
}

// TestMoney checks that money counts once a booking is confirmed, on the day of the booking and in one currency.
func TestMoney(t *testing.T) {
	t.Parallel()
	d := days(t, "America/New_York", "2026-05-01", "2026-05-02")
	var list []report.Booked
	for i, status := range []domain.Status{domain.Pending, domain.Confirmed, domain.Completed, domain.NoShow} {
		for day := -1; day <= 2; day++ {
			for _, currency := range []string{"USD", "JPY"} {
				amount := int64(1) << (4 * i) // shows which states a sum includes
				list = append(list, report.Booked{Day: d.From.AddDays(day), Status: status, Currency: currency, Gross: amount, Paid: 3 * amount, Refunded: amount})
			}
		}
	}
	got, err := report.Statistics(t.Context(), d, "USD", nil, list)
	for i, day := range got {
		want := report.Day{Date: d.From.AddDays(i), Bookings: 8, Revenue: 0x110, Paid: 0x220}
		if err != nil || day != want {
			t.Errorf("got %+v, %v, want %+v", day, err, want)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d days", len(got))
	}
}

// TestEachMinuteIsCountedOnce checks that each minute of a booking is counted once, regardless of the hours of its unit and of
// clock changes.
func TestEachMinuteIsCountedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		zone := rapid.SampledFrom([]string{"America/New_York", "America/Santiago", "America/Havana", "Africa/Cairo", "Pacific/Apia"}).Draw(r, "zone")
		d := days(t, zone, "2026-08-20", "2026-11-19")
		clocks := rapid.SampledFrom([]civil.Clock{"00:00", "01:30", "09:00", "17:00", "22:00", "23:30"})
		hours := rapid.MapOf(rapid.Map(rapid.IntRange(0, 6), func(n int) time.Weekday { return time.Weekday(n) }),
			rapid.Map(rapid.SliceOfN(clocks, 2, 2), func(c []civil.Clock) []domain.Opening { return []domain.Opening{{Open: c[0], Close: c[1]}} })).Draw(r, "hours")
		from := d.Time.From.Add(time.Duration(rapid.IntRange(2*1440, 80*1440).Draw(r, "from")) * time.Minute)
		b := report.Booked{Timed: true, During: domain.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 6000).Draw(r, "minutes")) * time.Minute)}}
		u := unit(domain.UnitActive, hours)
		b.Unit, b.Day = u.ID, civil.DateOf(from.In(d.Loc))
		got, err := report.Statistics(context.Background(), d, "USD", []domain.Unit{u}, []report.Booked{b})
		var sum time.Duration
		for _, day := range got {
			sum += day.Booked
		}
		if err != nil || sum != b.During.To.Sub(b.During.From) {
			r.Errorf("%v are counted, %v, of %v", sum, err, b.During)
		}
	})
}

func TestStatisticsEndWithTheRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := report.Statistics(ctx, days(t, "UTC", "2026-05-01", "2026-05-02"), "USD", []domain.Unit{unit(domain.UnitActive, nil)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
