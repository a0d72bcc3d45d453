package availability

import (
	"time"

	"holdfast.dev/services/bookings/internal/domain"
)

// SlotStatus says whether a slot can be booked.
type SlotStatus string

// A slot is free, or taken by a pending booking, or by a confirmed one, or its unit or time is not bookable.
const (
	SlotAvailable SlotStatus = "available"
	SlotHeld      SlotStatus = "held"
	SlotBooked    SlotStatus = "booked"
	SlotBlocked   SlotStatus = "blocked"
)

// Slot is a time that a unit is offered for, without the buffers around it.
type Slot struct {
	domain.Span
	Status SlotStatus
}

// grid cuts a unit's openings into slots. Lengths are elapsed time: a slot over a change of the clocks is as
// long as any other.
type grid struct {
	duration      time.Duration // 0: each opening is one slot
	step          time.Duration
	before, after time.Duration // the buffers
}

// gridOf takes the duration from the package, else from the service; nil: there is none. The default step is
// the duration with both buffers, so that every slot of an empty day can be had.
func gridOf(s *domain.Service, p *domain.Package) grid {
	var g grid
	if s != nil {
		g.before, g.after = domain.Minutes(s.BufferBeforeMinutes), domain.Minutes(s.BufferAfterMinutes)
	}
	switch {
	case p != nil && p.DurationMinutes != nil:
		g.duration = domain.Minutes(*p.DurationMinutes)
	case s != nil && s.DurationMinutes != nil:
		g.duration = domain.Minutes(*s.DurationMinutes)
	}
	g.step = g.duration + g.before + g.after
	if s != nil && s.SlotStepMinutes != nil {
		g.step = domain.Minutes(*s.SlotStepMinutes)
	}
	g.step = max(g.step, time.Minute)
	return g
}

// count is the number of slots of an opening: those that end before it closes.
func (g grid) count(o domain.Span) int {
	if g.duration == 0 {
		return 1
	}
	room := o.To.Sub(o.From) - g.duration
	if room < 0 {
		return 0
	}
	return int(room/g.step) + 1
}

// slot is the i-th slot of an opening.
func (g grid) slot(o domain.Span, i int) domain.Span {
	if g.duration == 0 {
		return o
	}
	from := o.From.Add(time.Duration(i) * g.step)
	return domain.Span{From: from, To: from.Add(g.duration)}
}

// find is the slot of an opening that starts at the instant.
func (g grid) find(o domain.Span, at time.Time) (domain.Span, bool) {
	passed := at.Sub(o.From)
	if passed < 0 || passed%g.step != 0 {
		return domain.Span{}, false
	}
	i := int(passed / g.step)
	if i >= g.count(o) {
		return domain.Span{}, false
	}
	return g.slot(o, i), true
}

// claim is the time that a booking of the slot would claim.
func (g grid) claim(s domain.Span) domain.Span {
	return domain.Span{From: s.From.Add(-g.before), To: s.To.Add(g.after)}
}
