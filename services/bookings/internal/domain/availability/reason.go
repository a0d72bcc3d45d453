package availability

import (
	"cmp"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// Reason is the reason why a unit is not available at a time; "" means that it is available.
type Reason string

// The reasons, in order of precedence. States of the unit that do not depend on the time come first, then closures, then other
// bookings, then the calendar. A closure precedes a booking, because the time stays closed when the booking is canceled. The grid of slots
// is the reason only when no other reason applies.
const (
	Free        Reason = ""
	Retired     Reason = "retired"     // the unit no longer accepts bookings
	Maintenance Reason = "maintenance" // the unit temporarily accepts no bookings
	InClosure   Reason = "closure"     // the operator closed the unit at that time; buffers do not count
	Booked      Reason = "booked"      // a confirmed booking, or its buffers, overlaps the time or the slot's own buffers
	Held        Reason = "held"        // a pending booking overlaps it
	Closed      Reason = "closed"      // outside of opening hours, or too long for the rest of them
	Notice      Reason = "notice"      // sooner than the booking policy allows
	Advance     Reason = "advance"     // later than the booking policy allows
	DSTGap      Reason = "dst_gap"     // a local time that the operator's clock skips
	NotASlot    Reason = "not_a_slot"  // open and free, but no slot starts then
)

// status returns the status of a slot with this reason in availability.
func (r Reason) status() SlotStatus {
	switch r {
	case Free:
		return SlotAvailable
	case Booked:
		return SlotBooked
	case Held:
		return SlotHeld
	default:
		return SlotBlocked
	}
}

// Operator contains the operator's rules and time: the policy, the current time, and the local calendar that apply to bookings.
type Operator struct {
	Loc    *time.Location
	Policy domain.Policy
	Now    time.Time
}

// evaluator evaluates times of one unit by the same rules as a write of a booking.
type evaluator struct {
	unit     Reason
	seats    int // of a slot of a shared unit; 0: not shared
	grid     grid
	taken    *taken  // nil: nothing is taken
	closed   []*line // the closures of the unit
	loc      *time.Location
	earliest time.Time // zero: no limit
	last     civil.Date
	horizon  time.Time // the end of last; zero: no limit
}

func (o Operator) evaluator(u domain.Unit, g grid, t *taken) evaluator {
	e := evaluator{grid: g, taken: t, loc: o.Loc}
	if u.Shared() {
		e.seats = *u.Capacity
	}
	switch u.Status {
	case domain.UnitActive:
	case domain.UnitMaintenance:
		e.unit = Maintenance
	case domain.UnitRetired:
		e.unit = Retired
	}
	e.earliest, _ = o.Policy.Earliest(o.Now)
	if last, limited := o.Policy.LastDay(o.Now, o.Loc); limited {
		e.last, e.horizon = last, last.End(o.Loc)
	}
	return e
}

// slot evaluates a time at which a slot starts.
func (e *evaluator) slot(s domain.Span) (Reason, Seats) {
	claims, seats := e.claims(s), Seats{Capacity: e.seats}
	if e.seats > 0 {
		claims, seats = e.session(s, claims)
	}
	return cmp.Or(e.unit, e.closure(s), claims, e.policy(s)), seats
}

// session evaluates a slot of a shared unit that claims have the reason for. The claim of the slot's own session does not count, as
// long as seats are left.
func (e *evaluator) session(s domain.Span, claims Reason) (Reason, Seats) {
	seats := Seats{Capacity: e.seats}
	if claims == Free {
		return Free, seats
	}
	own := e.taken.session(s)
	if own == nil {
		seats.Taken = seats.Capacity
		return claims, seats
	}
	seats = Seats{Capacity: own.Capacity, Taken: own.Taken}
	switch {
	case own.Taken < own.Capacity:
		return Free, seats
	case own.Held > 0:
		return Held, seats
	}
	return Booked, seats
}

func (e *evaluator) closure(s domain.Span) Reason {
	for _, l := range e.closed {
		if l.meets(s) {
			return InClosure
		}
	}
	return Free
}

func (e *evaluator) claims(s domain.Span) Reason {
	if e.taken == nil {
		return Free
	}
	claim := e.grid.claim(s)
	switch {
	case e.taken.booked.meets(claim):
		return Booked
	case e.taken.held.meets(claim):
		return Held
	}
	return Free
}

func (e *evaluator) policy(s domain.Span) Reason {
	switch {
	case s.From.Before(e.earliest):
		return Notice
	case e.horizon.IsZero() || s.From.Before(e.horizon):
		return Free
	case e.last.Before(civil.DateOf(s.From.In(e.loc))): // compares dates: a date may recur after its end
		return Advance
	}
	return Free
}
