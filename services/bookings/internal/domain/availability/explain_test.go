package availability_test

import (
	"errors"
	"testing"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	s := tour(new(60), buffers(10, 20), step(30))
	hours := `{"mon":[["09:00","12:00"],["22:00","02:00"]],"sun":[["01:00","05:00"]]}`
	now := "2026-03-01T00:00:00Z"
	confirmed := availability.Claim{Span: span("2026-03-09T13:00:00Z", "2026-03-09T14:00:00Z"), Status: domain.Confirmed}
	pending := availability.Claim{Span: span("2026-03-09T13:00:00Z", "2026-03-09T14:00:00Z"), Status: domain.Pending}
	closed := []availability.Closure{{Span: span("2026-03-09T13:59:00Z", "2026-03-09T14:30:00Z")}}
	elsewhere := []availability.Closure{{Span: closed[0].Span, Units: []domain.UnitID{id[domain.UnitPrefix]()}}}
	lapsed := pending
	lapsed.HoldExpiresAt = new(instant(now))
	notice, advance := domain.Policy{MinNoticeMinutes: new(1 << 20)}, domain.Policy{MaxAdvanceDays: new(7)}
	for name, tc := range map[string]struct {
		at       string // New York is at UTC-4 from March 8 on
		status   domain.UnitStatus
		claims   []availability.Claim
		policy   domain.Policy
		closures []availability.Closure
		want     availability.Reason
	}{
		"free":                               {at: "2026-03-09T13:00:00Z", want: availability.Free},
		"free, in another offset":            {at: "2026-03-09T15:30:00+02:00", want: availability.Free},
		"the last that fits":                 {at: "2026-03-09T15:00:00Z", want: availability.Free},
		"does not fit any more":              {at: "2026-03-09T15:30:00Z", want: availability.Closed},
		"past midnight":                      {at: "2026-03-10T05:00:00Z", want: availability.Free},
		"the night before, closed":           {at: "2026-03-09T05:00:00Z", want: availability.Closed},
		"open, no slot":                      {at: "2026-03-09T13:10:00Z", want: availability.NotASlot},
		"not on a whole minute":              {at: "2026-03-09T13:00:00.000001Z", want: availability.NotASlot},
		"booked":                             {at: "2026-03-09T13:00:00Z", claims: []availability.Claim{confirmed}, want: availability.Booked},
		"booked by its own buffer":           {at: "2026-03-09T14:00:00Z", claims: []availability.Claim{confirmed}, want: availability.Booked},
		"touches":                            {at: "2026-03-09T14:30:00Z", claims: []availability.Claim{confirmed}, want: availability.Free},
		"booked, no slot":                    {at: "2026-03-09T13:10:00Z", claims: []availability.Claim{confirmed}, want: availability.Booked},
		"held":                               {at: "2026-03-09T13:00:00Z", claims: []availability.Claim{pending}, want: availability.Held},
		"held outranks notice":               {at: "2026-03-09T13:00:00Z", claims: []availability.Claim{pending}, policy: notice, want: availability.Held},
		"a hold that has run out":            {at: "2026-03-09T13:00:00Z", claims: []availability.Claim{lapsed}, want: availability.Free},
		"closure":                            {at: "2026-03-09T13:00:00Z", closures: closed, want: availability.InClosure},
		"closure outranks booked":            {at: "2026-03-09T13:00:00Z", closures: closed, claims: []availability.Claim{confirmed}, want: availability.InClosure},
		"closure outranks closed and notice": {at: "2026-03-09T13:10:00Z", closures: closed, policy: notice, want: availability.InClosure},
		"maintenance outranks closure":       {at: "2026-03-09T13:00:00Z", closures: closed, status: domain.UnitMaintenance, want: availability.Maintenance},
		"only a buffer in a closure":         {at: "2026-03-09T14:30:00Z", closures: closed, want: availability.Free},
		"closure of another unit":            {at: "2026-03-09T13:00:00Z", closures: elsewhere, want: availability.Free},
		"maintenance outranks booked":        {at: "2026-03-09T13:00:00Z", status: domain.UnitMaintenance, claims: []availability.Claim{confirmed}, want: availability.Maintenance},
		"maintenance, closed":                {at: "2026-03-09T05:00:00Z", status: domain.UnitMaintenance, want: availability.Maintenance},
		"retired":                            {at: "2026-03-09T13:00:00Z", status: domain.UnitRetired, want: availability.Retired},
		"notice":                             {at: "2026-03-09T13:00:00Z", policy: notice, want: availability.Notice},
		"notice outranks the grid":           {at: "2026-03-09T13:10:00Z", policy: notice, want: availability.Notice},
		"closed outranks notice":             {at: "2026-03-09T05:00:00Z", policy: notice, want: availability.Closed},
		"advance":                            {at: "2026-03-09T13:00:00Z", policy: advance, want: availability.Advance},
		"the last day in advance":            {at: "2026-03-08T06:00:00Z", policy: domain.Policy{MaxAdvanceDays: new(8)}, want: availability.Free},
		"a local time left out, and a slot":  {at: "2026-03-08T02:30:00-05:00", want: availability.Free}, // the instant counts: 03:30
		"a local time left out, and no slot": {at: "2026-03-08T02:40:00-05:00", want: availability.DSTGap},
		"the same instant by the clock":      {at: "2026-03-08T03:40:00-04:00", want: availability.NotASlot},
		"the same instant":                   {at: "2026-03-08T07:40:00Z", want: availability.NotASlot},
		"a bare date":                        {at: "2026-03-09", want: availability.Closed},
	} {
		loc := zone(t, "America/New_York")
		u := boat(week(t, hours), s)
		if tc.status != "" {
			u.Status = tc.status
		}
		for i := range tc.claims {
			tc.claims[i].Unit = u.ID
		}
		start, err := availability.ParseStart(tc.at, loc)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := availability.Explain(u, availability.Catalogue{Services: []domain.Service{s}, Closures: tc.closures}, start, tc.claims, availability.Operator{Loc: loc, Policy: tc.policy, Now: instant(now).In(time.UTC)})
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if _, err := availability.ParseStart("2011-12-30", zone(t, "Pacific/Apia")); !errors.Is(err, civil.ErrNoSuchDay) {
		t.Errorf("a date that did not exist: %v", err)
	}
}

func TestExplainWithoutDuration(t *testing.T) {
	t.Parallel()
	u := boat(nil)
	booked := availability.Claim{Unit: u.ID, Span: span("2026-05-11T09:00:00Z", "2026-05-11T10:00:00Z"), Status: domain.Confirmed}
	for at, want := range map[string]availability.Reason{
		"2026-05-10": availability.Free, "2026-05-11": availability.Booked, "2026-05-10T01:00:00Z": availability.NotASlot,
		"2026-05-11T09:30:00Z": availability.Booked, "2026-05-11T10:00:00Z": availability.NotASlot,
	} {
		start, err := availability.ParseStart(at, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := availability.Explain(u, availability.Catalogue{}, start, []availability.Claim{booked}, availability.Operator{Loc: time.UTC}); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}
