package availability

import (
	"slices"
	"time"

	"holdfast.dev/services/bookings/internal/domain"
)

// Claim is a row of the claims table with data of the booking's row. Its span includes the buffers and is half open, as in the
// table's exclusion constraint.
type Claim struct {
	domain.Span
	Unit          domain.UnitID
	Status        domain.Status
	HoldExpiresAt *time.Time
	Session       *Session // of the claim of a session, which has no status of its own; nil: of a booking
}

// Session contains the seats of a slot of a shared unit.
type Session struct {
	Slot     domain.Span // without buffers
	Capacity int
	Taken    int
	Held     int // of those taken: by pending bookings
	Lapsed   int // of those taken: by pending bookings whose hold has lapsed; not in Held
}

// held reports whether the claim belongs to a pending booking. All other claims block their unit too.
func (c Claim) held() bool { return c.Status == domain.Pending }

// lapsed reports whether the hold has lapsed. The next booking that needs its time expires it.
func (c Claim) lapsed(now time.Time) bool {
	return domain.Booking{Status: c.Status, HoldExpiresAt: c.HoldExpiresAt}.Lapsed(now)
}

// line is a list of spans in the order of their starts, in microseconds, the precision of the table. ends[i] is the latest end of
// the first i+1 spans. One lookup therefore shows whether a time overlaps any of them, even if the spans overlap one another.
type line struct{ starts, ends []int64 }

func (l *line) add(s domain.Span) {
	end := s.To.UnixMicro()
	if n := len(l.ends); n > 0 {
		end = max(end, l.ends[n-1])
	}
	l.starts, l.ends = append(l.starts, s.From.UnixMicro()), append(l.ends, end)
}

// meets reports whether a span of the line overlaps s.
func (l *line) meets(s domain.Span) bool {
	before, _ := slices.BinarySearch(l.starts, s.To.UnixMicro())
	return before > 0 && l.ends[before-1] > s.From.UnixMicro()
}

// taken holds the times at which one unit is not available, and the sessions among them, in the order of their slots.
type taken struct {
	booked, held line
	sessions     []Session
}

// session returns the session of a slot, or nil.
func (t *taken) session(s domain.Span) *Session {
	i, found := slices.BinarySearchFunc(t.sessions, s.From, func(x Session, from time.Time) int { return x.Slot.From.Compare(from) })
	if !found || !t.sessions[i].Slot.To.Equal(s.To) {
		return nil
	}
	return &t.sessions[i]
}

// add adds a claim that is not lapsed.
func (t *taken) add(c Claim) {
	held := c.held()
	if s := c.Session; s != nil {
		left := *s
		left.Taken, left.Lapsed = s.Taken-s.Lapsed, 0
		if left.Taken <= 0 {
			return
		}
		t.sessions = append(t.sessions, left)
		held = left.Held == left.Taken
	}
	if held {
		t.held.add(c.Span)
	} else {
		t.booked.add(c.Span)
	}
}

// takenBy groups the claims that count at now by their units.
func takenBy(claims []Claim, now time.Time) map[domain.UnitID]*taken {
	inOrder := func(a, b Claim) int { return a.From.Compare(b.From) }
	if !slices.IsSortedFunc(claims, inOrder) {
		claims = slices.Clone(claims)
		slices.SortFunc(claims, inOrder)
	}
	units := make(map[domain.UnitID]*taken)
	for _, c := range claims {
		if c.lapsed(now) || !c.From.Before(c.To) { // the constraint also ignores an empty range
			continue
		}
		t := units[c.Unit]
		if t == nil {
			t = &taken{}
			units[c.Unit] = t
		}
		t.add(c)
	}
	return units
}
