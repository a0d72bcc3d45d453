package availability

import (
	"cmp"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// Reason says why a unit cannot be had at a time; "" is that it can.
type Reason string

// The reasons, in the order in which they outrank one another. What is true of the unit at any time comes
// first, then what others have taken, then the calendar; the grid of slots is named only when nothing else is.
const (
	Free        Reason = ""
	Retired     Reason = "retired"     // the unit takes no bookings any more
	Maintenance Reason = "maintenance" // the unit takes no bookings for now
	Booked      Reason = "booked"      // a confirmed booking, or its buffers, has the time or the slot's own buffers
	Held        Reason = "held"        // a pending booking has it
	Closed      Reason = "closed"      // outside of opening hours, or too long for what is left of them
	Notice      Reason = "notice"      // sooner than the booking policy takes
	Advance     Reason = "advance"     // later than the booking policy takes
	DSTGap      Reason = "dst_gap"     // a local time that the operator's clock leaves out
	NotASlot    Reason = "not_a_slot"  // open and free, and no slot starts then
)

// status is how availability shows a slot.
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

// Operator is whose units these are, at what time: the policy and the local calendar that bookings are
// measured by.
type Operator struct {
	Loc    *time.Location
	Policy domain.Policy
	Now    time.Time
}

// evaluator decides about one unit's times, as the writing of a booking would.
type evaluator struct {
	unit     Reason
	grid     grid
	taken    *taken // nil: nothing is
	loc      *time.Location
	earliest time.Time // zero: any
	last     civil.Date
	horizon  time.Time // the end of last; zero: any
}

func (o Operator) evaluator(u domain.Unit, g grid, t *taken) evaluator {
	e := evaluator{grid: g, taken: t, loc: o.Loc}
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

// slot decides about a time at which a slot starts.
func (e *evaluator) slot(s domain.Span) Reason {
	return cmp.Or(e.unit, e.claims(s), e.policy(s))
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
	case e.last.Before(civil.DateOf(s.From.In(e.loc))): // the date counts: it may come back after its end
		return Advance
	}
	return Free
}
