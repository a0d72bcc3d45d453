package availability

import (
	"cmp"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// Start is a moment that a client asks about.
type Start struct {
	At      time.Time
	Skipped bool // written as a local time that the operator's clock leaves out
}

// ParseStart reads an RFC 3339 datetime, or a bare date as the first instant of that day in loc. The errors
// are domain's.
func ParseStart(text string, loc *time.Location) (Start, error) {
	at, err := civil.ParseInstant(text, loc)
	if err != nil {
		return Start{}, err
	}
	return Start{At: at, Skipped: civil.Skips(text, loc)}, nil
}

// Window is the time whose claims decide about the moment.
func (s Start) Window(loc *time.Location) domain.Span {
	d := civil.DateOf(s.At.In(loc))
	return Range{From: d.AddDays(-1), To: d.AddDays(1)}.Window(loc)
}

// Explain says why the unit's slot that starts then cannot be booked; Free is that it can, exactly when
// availability shows it so. The unit is taken in the terms of its usual service. Of a moment at which no
// slot starts the time from there is judged, as long as a slot would be.
func Explain(u domain.Unit, services []domain.Service, start Start, claims []Claim, op Operator) Reason {
	g := gridOf(usually(services)(u), nil)
	e := op.evaluator(u, g, takenBy(claims, op.Now)[u.ID])
	if s, ok := slotAt(u, g, start.At, op.Loc); ok {
		return e.slot(s)
	}
	s := domain.Span{From: start.At, To: start.At.Add(max(min(g.duration, longestLook), time.Microsecond))}
	closed, skipped := Free, Free
	if !u.OpeningHours.Cover(s, op.Loc) {
		closed = Closed
	}
	if start.Skipped {
		skipped = DSTGap
	}
	return cmp.Or(e.unit, e.claims(s), closed, e.policy(s), skipped, NotASlot)
}

// longestLook bounds what is judged of a duration that fits no opening anyway, to stay within the window.
const longestLook = 24 * time.Hour

// slotAt is the slot that starts at the instant. It may belong to the day before, whose opening runs on, and
// where the clock falls back over midnight to the day after.
func slotAt(u domain.Unit, g grid, at time.Time, loc *time.Location) (domain.Span, bool) {
	d := civil.DateOf(at.In(loc))
	for n := -1; n <= 1; n++ {
		for _, o := range openings(u.OpeningHours, d.AddDays(n), loc) {
			if s, ok := g.find(o, at); ok {
				return s, true
			}
		}
	}
	return domain.Span{}, false
}
