package availability_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// TestDaysOfZones checks the days on which clocks change, hour by hour.
func TestDaysOfZones(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		zone, day   string
		minutes     int
		slots       int
		first, last string
		status      availability.DayStatus
	}{
		{"America/New_York", "2026-07-04", 60, 24, "2026-07-04T04:00:00Z", "2026-07-05T03:00:00Z", availability.DayAvailable},
		{"America/New_York", "2026-03-08", 60, 23, "2026-03-08T05:00:00Z", "2026-03-09T03:00:00Z", availability.DayAvailable},
		{"America/New_York", "2026-11-01", 60, 25, "2026-11-01T04:00:00Z", "2026-11-02T04:00:00Z", availability.DayAvailable},
		{"America/Santiago", "2026-09-06", 60, 23, "2026-09-06T04:00:00Z", "2026-09-07T02:00:00Z", availability.DayAvailable}, // begins at 01:00
		{"Australia/Lord_Howe", "2026-10-04", 30, 47, "2026-10-03T13:30:00Z", "2026-10-04T12:30:00Z", availability.DayAvailable},
		{"Australia/Lord_Howe", "2026-04-05", 30, 49, "2026-04-04T13:00:00Z", "2026-04-05T13:00:00Z", availability.DayAvailable},
		{"Pacific/Apia", "2011-12-29", 60, 24, "2011-12-29T10:00:00Z", "2011-12-30T09:00:00Z", availability.DayAvailable},
		{"Pacific/Apia", "2011-12-30", 60, 0, "", "", availability.DayClosed},
		{"Pacific/Apia", "2011-12-31", 60, 24, "2011-12-30T10:00:00Z", "2011-12-31T09:00:00Z", availability.DayAvailable},
	} {
		s := tour(&tc.minutes)
		c := availability.Catalogue{Services: []domain.Service{s}, Units: []domain.Unit{boat(nil, s)}, Packages: []domain.Package{pack(s, 100)}}
		got := mustDays(t, availability.Query{Range: days(tc.day, tc.day)}, c, nil, availability.Operator{Loc: zone(t, tc.zone)})
		if len(got) != 1 || got[0].Date != date(tc.day) || got[0].Status != tc.status || got[0].Price == nil {
			t.Fatalf("%s %s: %+v", tc.zone, tc.day, got)
		}
		slots := got[0].Units[0].Slots
		if len(slots) != tc.slots {
			t.Errorf("%s %s has %d slots, want %d", tc.zone, tc.day, len(slots), tc.slots)
			continue
		}
		if tc.slots > 0 && (!slots[0].From.Equal(instant(tc.first)) || !slots[len(slots)-1].From.Equal(instant(tc.last))) {
			t.Errorf("%s %s: %s to %s", tc.zone, tc.day, slots[0].From, slots[len(slots)-1].From)
		}
	}
}

func TestSlotsOfAnOpening(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		zone, hours, day string
		service          domain.Service
		want             string
	}{
		"by duration":                      {"UTC", `{"mon":[["09:00","12:00"]]}`, "2026-05-11", tour(new(60)), "11T09:00 11T10:00 11T11:00"},
		"the last one must fit":            {"UTC", `{"mon":[["09:00","11:59"]]}`, "2026-05-11", tour(new(60)), "11T09:00 11T10:00"},
		"buffers are part of the step":     {"UTC", `{"mon":[["09:00","12:00"]]}`, "2026-05-11", tour(new(60), buffers(15, 30)), "11T09:00 11T10:45"},
		"and not of what must fit":         {"UTC", `{"mon":[["09:00","10:00"]]}`, "2026-05-11", tour(new(60), buffers(15, 30)), "11T09:00"},
		"a step of its own":                {"UTC", `{"mon":[["09:00","11:00"]]}`, "2026-05-11", tour(new(60), step(30), buffers(15, 0)), "11T09:00 11T09:30 11T10:00"},
		"without a duration":               {"UTC", `{"mon":[["09:00","12:00"],["13:00","17:00"]]}`, "2026-05-11", tour(nil, step(30)), "11T09:00 11T13:00"},
		"always open, without a duration":  {"UTC", `null`, "2026-05-11", tour(nil), "11T00:00"},
		"each opening begins again":        {"UTC", `{"mon":[["13:30","16:00"],["09:00","10:30"]]}`, "2026-05-11", tour(new(60)), "11T09:00 11T13:30 11T14:30"},
		"past midnight, of the day before": {"UTC", `{"mon":[["22:00","01:00"]]}`, "2026-05-11", tour(new(60)), "11T22:00 11T23:00 12T00:00"},
		"too long for any opening":         {"UTC", `{"mon":[["00:00","24:00"]]}`, "2026-05-11", tour(new(1441)), ""},
		"always open, over midnight":       {"UTC", `null`, "2026-05-11", tour(new(600), step(420)), "11T00:00 11T07:00 11T14:00 11T21:00"},
		"open all day, over midnight":      {"UTC", `{"mon":[["00:00","24:00"]]}`, "2026-05-11", tour(new(600), step(420)), "11T00:00 11T07:00 11T14:00"},
		"always open, until the next day":  {"UTC", `null`, "2026-05-11", tour(new(1441)), "11T00:00"},
		"always open, not the day after":   {"UTC", `null`, "2026-05-11", tour(new(2160), step(719)), "11T00:00 11T11:59"},
		"two days":                         {"UTC", `null`, "2026-05-11", tour(new(2880)), "11T00:00"},
		"longer than two days":             {"UTC", `null`, "2026-05-11", tour(new(2881)), ""},
		"over midnight into a short day":   {"America/New_York", `null`, "2026-03-07", tour(new(120), step(720)), "07T05:00 07T17:00"},
		"over midnight of a short day":     {"America/New_York", `null`, "2026-03-08", tour(new(180), step(660)), "08T05:00 08T16:00 09T03:00"},
		"over midnight of a long day":      {"America/New_York", `null`, "2026-11-01", tour(new(180), step(720)), "01T04:00 01T16:00 02T04:00"},
		"longer than any clock can count":  {"UTC", `null`, "2026-05-11", tour(new(1 << 31)), ""},
		"as long as the day":               {"UTC", `null`, "2026-05-11", tour(new(1440)), "11T00:00"},
		"elapsed time over a gap":          {"America/New_York", `{"sun":[["01:30","05:00"]]}`, "2026-03-08", tour(new(60)), "08T06:30 08T07:30"},
		"an opening within a gap":          {"America/New_York", `{"sun":[["02:30","05:00"]]}`, "2026-03-08", tour(new(60)), "08T07:00 08T08:00"},
		"elapsed time over an hour twice":  {"America/New_York", `{"sun":[["00:30","02:30"]]}`, "2026-11-01", tour(new(60)), "01T04:30 01T05:30 01T06:30"},
		"a missing weekday":                {"UTC", `{"mon":[["09:00","12:00"]]}`, "2026-05-12", tour(new(60)), ""},
	} {
		c := availability.Catalogue{Services: []domain.Service{tc.service}, Units: []domain.Unit{boat(week(t, tc.hours), tc.service)}}
		got := mustDays(t, availability.Query{Range: days(tc.day, tc.day)}, c, nil, availability.Operator{Loc: zone(t, tc.zone)})[0]
		if starts(got.Units[0].Slots) != tc.want {
			t.Errorf("%s: %s, want %s", name, starts(got.Units[0].Slots), tc.want)
		}
		if (got.Status == availability.DayClosed) != (tc.want == "") {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
}

func TestSlotStatus(t *testing.T) {
	t.Parallel()
	s := tour(new(60), buffers(10, 20), step(60))
	u, other := boat(week(t, `{"mon":[["09:00","13:00"]]}`), s), boat(nil, s)
	now := instant("2026-05-01T12:00:00Z")
	claim := func(unit domain.Unit, status domain.Status, from, to string, expires ...time.Time) availability.Claim {
		c := availability.Claim{Span: span("2026-05-11T"+from+":00Z", "2026-05-11T"+to+":00Z"), Unit: unit.ID, Status: status}
		for _, at := range expires {
			c.HoldExpiresAt = &at
		}
		return c
	}
	for name, tc := range map[string]struct {
		status domain.UnitStatus
		claims []availability.Claim
		policy domain.Policy
		want   string
		day    availability.DayStatus
	}{
		"free":                      {want: "11T09:00 11T10:00 11T11:00 11T12:00", day: "available"},
		"booked":                    {claims: []availability.Claim{claim(u, domain.Confirmed, "10:00", "11:00")}, want: "11T09:00bo 11T10:00bo 11T11:00bo 11T12:00", day: "limited"},
		"touching the after buffer": {claims: []availability.Claim{claim(u, domain.Confirmed, "10:20", "10:50")}, want: "11T09:00 11T10:00bo 11T11:00 11T12:00", day: "available"},
		"a minute into it":          {claims: []availability.Claim{claim(u, domain.Confirmed, "10:19", "10:50")}, want: "11T09:00bo 11T10:00bo 11T11:00 11T12:00", day: "available"},
		"a minute into the before":  {claims: []availability.Claim{claim(u, domain.Confirmed, "10:20", "10:51")}, want: "11T09:00 11T10:00bo 11T11:00bo 11T12:00", day: "available"},
		"held":                      {claims: []availability.Claim{claim(u, domain.Pending, "09:30", "10:30")}, want: "11T09:00he 11T10:00he 11T11:00 11T12:00", day: "available"},
		"booked outranks held":      {claims: []availability.Claim{claim(u, domain.Pending, "09:00", "09:10"), claim(u, domain.Confirmed, "09:10", "09:20")}, want: "11T09:00bo 11T10:00 11T11:00 11T12:00", day: "available"},
		"a hold that runs":          {claims: []availability.Claim{claim(u, domain.Pending, "09:00", "13:00", now.Add(time.Microsecond))}, want: "11T09:00he 11T10:00he 11T11:00he 11T12:00he", day: "sold_out"},
		"a hold that has run out":   {claims: []availability.Claim{claim(u, domain.Pending, "09:00", "13:00", now)}, want: "11T09:00 11T10:00 11T11:00 11T12:00", day: "available"},
		"confirmed does not lapse":  {claims: []availability.Claim{claim(u, domain.Confirmed, "09:00", "13:00", now)}, want: "11T09:00bo 11T10:00bo 11T11:00bo 11T12:00bo", day: "sold_out"},
		"of another unit":           {claims: []availability.Claim{claim(other, domain.Confirmed, "09:00", "13:00")}, want: "11T09:00 11T10:00 11T11:00 11T12:00", day: "available"},
		"a whole day":               {claims: []availability.Claim{claim(u, domain.Confirmed, "00:00", "23:59")}, want: "11T09:00bo 11T10:00bo 11T11:00bo 11T12:00bo", day: "sold_out"},
		"maintenance":               {status: domain.UnitMaintenance, claims: []availability.Claim{claim(u, domain.Confirmed, "09:00", "10:00")}, want: "11T09:00bl 11T10:00bl 11T11:00bl 11T12:00bl", day: "sold_out"},
		"notice":                    {policy: domain.Policy{MinNoticeMinutes: new(9*24*60 + 23*60)}, want: "11T09:00bl 11T10:00bl 11T11:00 11T12:00", day: "available"},
		"advance":                   {policy: domain.Policy{MaxAdvanceDays: new(9)}, want: "11T09:00bl 11T10:00bl 11T11:00bl 11T12:00bl", day: "sold_out"},
		"advance, the last day":     {policy: domain.Policy{MaxAdvanceDays: new(10)}, want: "11T09:00 11T10:00 11T11:00 11T12:00", day: "available"},
		"booked outranks notice":    {policy: domain.Policy{MinNoticeMinutes: new(1 << 31)}, claims: []availability.Claim{claim(u, domain.Confirmed, "09:00", "10:00")}, want: "11T09:00bo 11T10:00bo 11T11:00bl 11T12:00bl", day: "sold_out"},
	} {
		unit := u
		if tc.status != "" {
			unit.Status = tc.status
		}
		c := availability.Catalogue{Services: []domain.Service{s}, Units: []domain.Unit{unit}}
		got := mustDays(t, availability.Query{Range: days("2026-05-11", "2026-05-11")}, c, tc.claims, availability.Operator{Loc: time.UTC, Policy: tc.policy, Now: now})[0]
		if starts(got.Units[0].Slots) != tc.want || got.Status != tc.day {
			t.Errorf("%s: %s, %s; want %s, %s", name, starts(got.Units[0].Slots), got.Status, tc.want, tc.day)
		}
		want := tc.day
		if tc.status == domain.UnitMaintenance {
			want = availability.DayClosed
		}
		if got.Units[0].Status != want {
			t.Errorf("%s: the unit is %s, want %s", name, got.Units[0].Status, want)
		}
	}
}

// TestUnitsShown checks that units are listed by id without retired units, each with the terms of its service.
func TestUnitsShown(t *testing.T) {
	t.Parallel()
	long, short, twin := tour(new(120)), tour(new(45), buffers(0, 15)), tour(new(45))
	bare, idle, lone := tour(nil), tour(new(5)), tour(new(30))
	idle.Active = false
	both := boat(nil, long, twin, short, bare, idle)
	single, free := boat(nil, long), boat(nil)
	retired := boat(nil, long)
	retired.Status = domain.UnitRetired
	// A service lists its units as a unit lists its services.
	long.UnitIDs = []domain.UnitID{both.ID, single.ID, retired.ID}
	short.UnitIDs, twin.UnitIDs, bare.UnitIDs, idle.UnitIDs = []domain.UnitID{both.ID}, []domain.UnitID{both.ID}, []domain.UnitID{both.ID}, []domain.UnitID{both.ID}
	day := pack(long, 100, func(p *domain.Package) { p.DurationMinutes = new(600) })
	only := pack(short, 100, func(p *domain.Package) { p.UnitIDs = []domain.UnitID{single.ID} })
	hidden := pack(long, 10, func(p *domain.Package) { p.Visible = false })
	ended := pack(long, 10, func(p *domain.Package) { p.Active = false })
	stale := pack(idle, 10)
	c := availability.Catalogue{
		Services: []domain.Service{bare, long, twin, short, idle, lone}, Units: []domain.Unit{free, retired, single, both},
		Packages: []domain.Package{day, only, hidden, ended, stale},
	}
	for name, tc := range map[string]struct {
		query availability.Query
		want  string // unit and number of slots
	}{
		"all":                         {availability.Query{}, "both 24 single 12 free 48"}, // of two services that last 45 min, the one that was created first: short
		"service":                     {availability.Query{Service: &long.ID}, "both 12 single 12"},
		"service without a duration":  {availability.Query{Service: &bare.ID}, "both 1"},
		"service that links nothing":  {availability.Query{Service: &lone.ID}, "free 48"},
		"inactive service":            {availability.Query{Service: &idle.ID}, ""},
		"unit":                        {availability.Query{Unit: &single.ID}, "single 12"},
		"unit and service":            {availability.Query{Unit: &both.ID, Service: &twin.ID}, "both 32"},
		"unit that has it not":        {availability.Query{Unit: &single.ID, Service: &twin.ID}, ""},
		"retired unit":                {availability.Query{Unit: &retired.ID}, ""},
		"package":                     {availability.Query{Package: &day.ID}, "both 3 single 3"},
		"package and service":         {availability.Query{Package: &day.ID, Service: &long.ID}, "both 3 single 3"},
		"package of another service":  {availability.Query{Package: &day.ID, Service: &short.ID}, ""},
		"package of one unit":         {availability.Query{Package: &only.ID}, "single 24"},
		"hidden package":              {availability.Query{Package: &hidden.ID}, "both 12 single 12"},
		"inactive package":            {availability.Query{Package: &ended.ID}, ""},
		"package of inactive service": {availability.Query{Package: &stale.ID}, ""},
		"unknown package":             {availability.Query{Package: &domain.PackageID{}}, ""},
		"unknown unit":                {availability.Query{Unit: &domain.UnitID{}}, ""},
		"unknown service":             {availability.Query{Service: &domain.ServiceID{}}, ""},
	} {
		names := map[domain.UnitID]string{both.ID: "both", single.ID: "single", free.ID: "free", retired.ID: "retired"}
		tc.query.Range = days("2026-05-11", "2026-05-11")
		var got []string
		for _, u := range mustDays(t, tc.query, c, nil, availability.Operator{Loc: time.UTC})[0].Units {
			got = append(got, fmt.Sprint(names[u.Unit.ID], " ", len(u.Slots)))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// TestMostSlots checks that a response with 20,000 slots is returned, and that one with 20,001 is refused.
func TestMostSlots(t *testing.T) {
	t.Parallel()
	s := tour(new(72)) // 20 slots a day
	c := availability.Catalogue{Services: []domain.Service{s}}
	for range 1000 {
		c.Units = append(c.Units, boat(nil, s))
	}
	q := availability.Query{Range: days("2026-05-11", "2026-05-11")}
	total := 0
	for _, u := range mustDays(t, q, c, nil, availability.Operator{Loc: time.UTC})[0].Units {
		total += len(u.Slots)
	}
	if total != availability.MaxSlots {
		t.Fatalf("%d slots", total)
	}
	c.Units = append(c.Units, boat(week(t, `{"mon":[["09:00","10:12"]]}`), s))
	if _, err := allDays(q, c, nil, availability.Operator{Loc: time.UTC}); !onField(err, "to") {
		t.Errorf("one more: %v", err)
	}
	q.From, q.To = date("2026-05-12"), date("2026-05-12") // a Tuesday
	if _, err := allDays(q, c, nil, availability.Operator{Loc: time.UTC}); err != nil {
		t.Errorf("a unit more, without slots: %v", err)
	}
}

// TestResponsesAreBounded checks that the size of a response is checked before anything is computed: by units and days, and by the
// length of their names.
func TestResponsesAreBounded(t *testing.T) {
	t.Parallel()
	closed := availability.Catalogue{}
	for range availability.MaxUnitDays / 10 {
		closed.Units = append(closed.Units, boat(domain.OpeningHours{}))
	}
	q, op := availability.Query{Range: days("2026-05-01", "2026-05-10")}, availability.Operator{Loc: time.UTC}
	if got := mustDays(t, q, closed, nil, op); len(got) != 10 {
		t.Errorf("%d days", len(got))
	}
	q.To = q.To.AddDays(1)
	if _, err := allDays(q, closed, nil, op); !onField(err, "to") {
		t.Errorf("a day more: %v", err)
	}

	named := availability.Catalogue{}
	for range 100 {
		u := boat(domain.OpeningHours{})
		u.Name = strings.Repeat("\u0001", 200) // 1,200 bytes in JSON
		named.Units = append(named.Units, u)
	}
	q = availability.Query{Range: days("2026-05-01", "2026-07-01")}
	if got := mustDays(t, q, named, nil, op); len(got) != 62 { // 8,184,000 bytes
		t.Errorf("%d days", len(got))
	}
	named.Units = append(named.Units, named.Units[:3]...)
	if _, err := allDays(q, named, nil, op); !onField(err, "to") {
		t.Errorf("over %d bytes: %v", availability.MaxBytes, err)
	}
	q = availability.Query{Range: days("2026-05-01", "2026-05-01")}
	if _, err := allDays(q, named, make([]availability.Claim, availability.MaxClaims+1), op); !onField(err, "to") {
		t.Errorf("over %d claims: %v", availability.MaxClaims, err)
	}
}

// TestTheEndOfTheRequestEndsTheWork checks that the work stops when the client disconnects.
func TestTheEndOfTheRequestEndsTheWork(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q, op := availability.Query{Range: days("2026-05-01", "2026-07-01")}, availability.Operator{Loc: time.UTC}
	p, err := availability.NewPlan(ctx, q, availability.Catalogue{Units: []domain.Unit{boat(nil)}}, op)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if got, err := p.Days(ctx, nil); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("%d days, %v", len(got), err)
	}
	if _, err := availability.NewPlan(ctx, q, availability.Catalogue{}, op); !errors.Is(err, context.Canceled) {
		t.Errorf("planned: %v", err)
	}
}

func onField(err error, name string) bool {
	var e *apperr.Error
	return errors.As(err, &e) && slices.ContainsFunc(e.Fields, func(f apperr.FieldError) bool { return f.Field == name })
}

func TestParseRange(t *testing.T) {
	t.Parallel()
	apia := zone(t, "Pacific/Apia")
	for _, tc := range []struct {
		from, to string
		loc      *time.Location
		fields   []string
	}{
		{"2026-05-01", "2026-05-01", time.UTC, nil},
		{"2026-05-01", "2026-07-01", time.UTC, nil}, // 62 days
		{"2026-05-01", "2026-07-02", time.UTC, []string{"to"}},
		{"2026-05-02", "2026-05-01", time.UTC, []string{"to"}},
		{"2026-02-29", "2026-02-30", time.UTC, []string{"from", "to"}},
		{"2026-05-01T00:00:00Z", "2026-05-01", time.UTC, []string{"from"}},
		{"1899-12-31", "2200-01-01", time.UTC, []string{"from", "to"}},
		{"2011-12-29", "2011-12-31", apia, nil},
		{"2011-12-30", "2011-12-31", apia, []string{"from"}},
		{"2011-12-29", "2011-12-30", apia, []string{"to"}},
	} {
		got, err := availability.ParseRange(tc.from, tc.to, availability.MaxDays, tc.loc)
		if (err == nil) != (tc.fields == nil) || err == nil && got != days(tc.from, tc.to) {
			t.Errorf("%s to %s: %v, %v", tc.from, tc.to, got, err)
		}
		for _, f := range tc.fields {
			if !onField(err, f) {
				t.Errorf("%s to %s: %v, want %s", tc.from, tc.to, err, f)
			}
		}
	}
}
