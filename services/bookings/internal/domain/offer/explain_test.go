package offer_test

import (
	"errors"
	"testing"
	"time"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/offer"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	s := tour(new(60), buffers(10, 20), step(30))
	hours := `{"mon":[["09:00","12:00"],["22:00","02:00"]],"sun":[["01:00","05:00"]]}`
	now := "2026-03-01T00:00:00Z"
	confirmed := offer.Claim{Span: span("2026-03-09T13:00:00Z", "2026-03-09T14:00:00Z"), Status: domain.Confirmed}
	pending := offer.Claim{Span: span("2026-03-09T13:00:00Z", "2026-03-09T14:00:00Z"), Status: domain.Pending}
	lapsed := pending
	lapsed.HoldExpiresAt = new(instant(now))
	notice, advance := domain.Policy{MinNoticeMinutes: new(1 << 20)}, domain.Policy{MaxAdvanceDays: new(7)}
	for name, tc := range map[string]struct {
		at     string // New York is at UTC-4 from 8 March on
		status domain.UnitStatus
		claims []offer.Claim
		policy domain.Policy
		want   offer.Reason
	}{
		"free":                               {at: "2026-03-09T13:00:00Z", want: offer.Free},
		"free, in another offset":            {at: "2026-03-09T15:30:00+02:00", want: offer.Free},
		"the last that fits":                 {at: "2026-03-09T15:00:00Z", want: offer.Free},
		"does not fit any more":              {at: "2026-03-09T15:30:00Z", want: offer.Closed},
		"past midnight":                      {at: "2026-03-10T05:00:00Z", want: offer.Free},
		"the night before, closed":           {at: "2026-03-09T05:00:00Z", want: offer.Closed},
		"open, no slot":                      {at: "2026-03-09T13:10:00Z", want: offer.NotASlot},
		"not on a whole minute":              {at: "2026-03-09T13:00:00.000001Z", want: offer.NotASlot},
		"booked":                             {at: "2026-03-09T13:00:00Z", claims: []offer.Claim{confirmed}, want: offer.Booked},
		"booked by its own buffer":           {at: "2026-03-09T14:00:00Z", claims: []offer.Claim{confirmed}, want: offer.Booked},
		"touches":                            {at: "2026-03-09T14:30:00Z", claims: []offer.Claim{confirmed}, want: offer.Free},
		"booked, no slot":                    {at: "2026-03-09T13:10:00Z", claims: []offer.Claim{confirmed}, want: offer.Booked},
		"held":                               {at: "2026-03-09T13:00:00Z", claims: []offer.Claim{pending}, want: offer.Held},
		"held outranks notice":               {at: "2026-03-09T13:00:00Z", claims: []offer.Claim{pending}, policy: notice, want: offer.Held},
		"a hold that has run out":            {at: "2026-03-09T13:00:00Z", claims: []offer.Claim{lapsed}, want: offer.Free},
		"maintenance outranks booked":        {at: "2026-03-09T13:00:00Z", status: domain.UnitMaintenance, claims: []offer.Claim{confirmed}, want: offer.Maintenance},
		"maintenance, closed":                {at: "2026-03-09T05:00:00Z", status: domain.UnitMaintenance, want: offer.Maintenance},
		"retired":                            {at: "2026-03-09T13:00:00Z", status: domain.UnitRetired, want: offer.Retired},
		"notice":                             {at: "2026-03-09T13:00:00Z", policy: notice, want: offer.Notice},
		"notice outranks the grid":           {at: "2026-03-09T13:10:00Z", policy: notice, want: offer.Notice},
		"closed outranks notice":             {at: "2026-03-09T05:00:00Z", policy: notice, want: offer.Closed},
		"advance":                            {at: "2026-03-09T13:00:00Z", policy: advance, want: offer.Advance},
		"the last day in advance":            {at: "2026-03-08T06:00:00Z", policy: domain.Policy{MaxAdvanceDays: new(8)}, want: offer.Free},
		"a local time left out, and a slot":  {at: "2026-03-08T02:30:00-05:00", want: offer.Free}, // the instant counts: 03:30
		"a local time left out, and no slot": {at: "2026-03-08T02:40:00-05:00", want: offer.DSTGap},
		"the same instant by the clock":      {at: "2026-03-08T03:40:00-04:00", want: offer.NotASlot},
		"the same instant":                   {at: "2026-03-08T07:40:00Z", want: offer.NotASlot},
		"a bare date":                        {at: "2026-03-09", want: offer.Closed},
	} {
		loc := zone(t, "America/New_York")
		u := boat(week(t, hours), s)
		if tc.status != "" {
			u.Status = tc.status
		}
		for i := range tc.claims {
			tc.claims[i].Unit = u.ID
		}
		start, err := offer.ParseStart(tc.at, loc)
		if err != nil {
			t.Fatal(err)
		}
		got := offer.Explain(u, []domain.Service{s}, start, tc.claims, offer.Operator{Loc: loc, Policy: tc.policy, Now: instant(now).In(time.UTC)})
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if _, err := offer.ParseStart("2011-12-30", zone(t, "Pacific/Apia")); !errors.Is(err, domain.ErrNoSuchDay) {
		t.Errorf("a date that did not exist: %v", err)
	}
}

func TestExplainWithoutDuration(t *testing.T) {
	t.Parallel()
	u := boat(nil)
	booked := offer.Claim{Unit: u.ID, Span: span("2026-05-11T09:00:00Z", "2026-05-11T10:00:00Z"), Status: domain.Confirmed}
	for at, want := range map[string]offer.Reason{
		"2026-05-10": offer.Free, "2026-05-11": offer.Booked, "2026-05-10T01:00:00Z": offer.NotASlot,
		"2026-05-11T09:30:00Z": offer.Booked, "2026-05-11T10:00:00Z": offer.NotASlot,
	} {
		start, err := offer.ParseStart(at, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if got := offer.Explain(u, nil, start, []offer.Claim{booked}, offer.Operator{Loc: time.UTC}); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}
