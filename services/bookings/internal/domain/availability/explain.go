package availability

import (
	"cmp"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// Start is the instant that a client requests.
type Start struct {
	At      time.Time
	Skipped bool // given as a local time that the operator's clock skips
}

// ParseStart reads an RFC 3339 datetime, or a bare date as the first instant of that day in loc. It returns the errors of domain.
func ParseStart(text string, loc *time.Location) (Start, error) {
	at, err := civil.ParseInstant(text, loc)
	if err != nil {
		return Start{}, err
	}
	return Start{At: at, Skipped: civil.Skips(text, loc)}, nil
}

// Window returns the time whose claims determine the result for the instant.
func (s Start) Window(loc *time.Location) domain.Span {
	d := civil.DateOf(s.At.In(loc))
	return Range{From: d.AddDays(-1), To: d.AddDays(1)}.Window(loc)
}

// Explain returns why the unit's slot that starts at start cannot be booked, and its seats. It returns Free exactly when availability
// shows the slot as available. It applies the terms of the unit's usual service. If no slot starts at that instant, it evaluates the
// time from there for the length of a slot, which has no seats.
func Explain(u domain.Unit, c Catalogue, start Start, claims []Claim, op Operator) (Reason, Seats) {
	g := gridOf(usually(c.Services)(u), nil)
	e := op.evaluator(u, g, takenBy(claims, op.Now)[u.ID])
	shut := closedBy(c.Closures)
	e.closed = shut.of(u.ID)
	if s, ok := slotAt(u, g, start.At, op.Loc); ok {
		return e.slot(s)
	}
	s := domain.Span{From: start.At, To: start.At.Add(max(min(g.duration, longestLook), time.Microsecond))}
	outside, skipped := Free, Free
	if !u.OpeningHours.Cover(s, op.Loc) {
		outside = Closed
	}
	if start.Skipped {
		skipped = DSTGap
	}
	return cmp.Or(e.unit, e.closure(s), e.claims(s), outside, e.policy(s), skipped, NotASlot), Seats{}
}

// longestLook limits the evaluated time for a duration that fits no opening, so that it stays within the window.
const longestLook = 24 * time.Hour

// slotAt returns the slot that starts at the instant. The slot may belong to the day before, if its opening continues past
// midnight, or to the day after, if the clock is set back across midnight.
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
