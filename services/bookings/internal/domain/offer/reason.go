package offer

import (
	"cmp"
	"time"

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

// judge decides about one unit's times, as the writing of a booking would.
type judge struct {
	unit     Reason
	grid     grid
	taken    *taken // nil: nothing is
	loc      *time.Location
	earliest time.Time // zero: any
	last     domain.Date
	horizon  time.Time // the end of last; zero: any
}

func (o Operator) judge(u domain.Unit, g grid, t *taken) judge {
	j := judge{grid: g, taken: t, loc: o.Loc}
	switch u.Status {
	case domain.UnitActive:
	case domain.UnitMaintenance:
		j.unit = Maintenance
	case domain.UnitRetired:
		j.unit = Retired
	}
	j.earliest, _ = o.Policy.Earliest(o.Now)
	if last, limited := o.Policy.LastDay(o.Now, o.Loc); limited {
		j.last, j.horizon = last, last.End(o.Loc)
	}
	return j
}

// slot decides about a time at which a slot starts.
func (j *judge) slot(s domain.Span) Reason {
	return cmp.Or(j.unit, j.claims(s), j.policy(s))
}

func (j *judge) claims(s domain.Span) Reason {
	if j.taken == nil {
		return Free
	}
	claim := j.grid.claim(s)
	switch {
	case j.taken.booked.meets(claim):
		return Booked
	case j.taken.held.meets(claim):
		return Held
	}
	return Free
}

func (j *judge) policy(s domain.Span) Reason {
	switch {
	case s.From.Before(j.earliest):
		return Notice
	case j.horizon.IsZero() || s.From.Before(j.horizon):
		return Free
	case j.last.Before(domain.DateOf(s.From.In(j.loc))): // the date counts: it may come back after its end
		return Advance
	}
	return Free
}
