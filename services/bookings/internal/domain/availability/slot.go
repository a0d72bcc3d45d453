package availability

import (
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// SlotStatus specifies whether a slot can be booked.
type SlotStatus string

// A slot is free, taken by a pending booking, or taken by a confirmed booking, or its unit or time cannot be booked.
const (
	SlotAvailable SlotStatus = "available"
	SlotHeld      SlotStatus = "held"
	SlotBooked    SlotStatus = "booked"
	SlotBlocked   SlotStatus = "blocked"
)

// Slot is a time at which a unit is offered, without the buffers around it.
type Slot struct {
	domain.Span
	Status SlotStatus
	Seats  Seats
}

// Seats contains the seats of a slot of a shared unit. The zero value is that of any other unit.
type Seats struct{ Capacity, Taken int }

// grid divides a unit's openings into slots. Lengths are elapsed time: a slot across a clock change is as long as any other.
type grid struct {
	duration      time.Duration // 0: each opening is one slot
	step          time.Duration
	before, after time.Duration // the buffers
}

// gridOf takes the duration from the package, or else from the service. Either can be nil. The default step is the duration plus
// both buffers, so that every slot of an empty day can be booked.
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

// opening is the time in which slots begin, and the time by which they must end.
type opening struct {
	domain.Span
	until time.Time
}

// openings returns the openings of a date. Slots end before an opening closes. A unit that is always open does not close at
// midnight, so a slot that begins on a date can end on the next one.
func openings(h domain.OpeningHours, d civil.Date, loc *time.Location) []opening {
	spans := h.On(d, loc)
	list := make([]opening, len(spans))
	for i, s := range spans {
		list[i] = opening{Span: s, until: s.To}
		if h == nil {
			list[i].until = d.AddDays(1).End(loc)
		}
	}
	return list
}

// count returns the number of slots of an opening.
func (g grid) count(o opening) int {
	if g.duration == 0 {
		return 1
	}
	room := min(o.until.Sub(o.From)-g.duration, o.To.Sub(o.From)-1)
	if room < 0 {
		return 0
	}
	return int(room/g.step) + 1
}

// slot returns the i-th slot of an opening.
func (g grid) slot(o opening, i int) domain.Span {
	if g.duration == 0 {
		return o.Span
	}
	from := o.From.Add(time.Duration(i) * g.step)
	return domain.Span{From: from, To: from.Add(g.duration)}
}

// find returns the slot of an opening that starts at the instant.
func (g grid) find(o opening, at time.Time) (domain.Span, bool) {
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

// Offers reports whether a slot of the unit begins and ends as s does. The terms are those of the package, or else of the service. If
// both are nil, they are those of the unit's usual service among services.
func Offers(u domain.Unit, service *domain.Service, p *domain.Package, services []domain.Service, s domain.Span, loc *time.Location) bool {
	if service == nil && p == nil {
		service = usually(services)(u)
	}
	found, ok := slotAt(u, gridOf(service, p), s.From, loc)
	return ok && found.To.Equal(s.To)
}

// claim returns the time that a booking of the slot would claim.
func (g grid) claim(s domain.Span) domain.Span {
	return domain.Span{From: s.From.Add(-g.before), To: s.To.Add(g.after)}
}
