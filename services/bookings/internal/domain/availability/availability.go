package availability

import (
	"context"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// DayStatus summarizes the slots of a day.
type DayStatus string

// A day is closed if it has no slots, sold out if no slot is free, and limited if at most a quarter of its slots is free.
const (
	DayAvailable DayStatus = "available"
	DayLimited   DayStatus = "limited"
	DaySoldOut   DayStatus = "sold_out"
	DayClosed    DayStatus = "closed"
)

// Day is what is offered on a date. A date that did not exist in the operator's zone is closed.
type Day struct {
	Date   civil.Date
	Status DayStatus
	Price  *domain.Price // of the cheapest package, with its holiday; nil: no package
	Units  []UnitDay     // by id
}

// UnitDay is a unit on a date, with the slots of the openings of that date, in order.
type UnitDay struct {
	Unit   *domain.Unit
	Status DayStatus // of these slots; a unit in maintenance is always closed
	Slots  []Slot
}

// Plan is a query that is small enough to be answered, with the units that it shows and their openings.
type Plan struct {
	query    Query
	offered  Catalogue
	op       Operator
	units    []shown
	openings [][][]opening // by day and shown.hours
	slots    int
	shared   int // of the slots: those of shared units
}

// NewPlan refuses a range that is too large for one response, with an error on the field to. It does so before it reads a claim or
// creates a slot.
func NewPlan(ctx context.Context, q Query, c Catalogue, op Operator) (Plan, error) {
	p := Plan{query: q, offered: c, op: op, units: q.units(c)}
	size := 0
	for _, u := range p.units {
		size += u.bytes() * q.Days()
	}
	if len(p.units)*q.Days() > MaxUnitDays {
		return Plan{}, tooLong("%d unit days", MaxUnitDays)
	}
	if err := p.cut(ctx); err != nil {
		return Plan{}, err
	}
	if size+p.slots*slotBytes+p.shared*seatsBytes > MaxBytes {
		return Plan{}, tooLong("%d MiB", MaxBytes>>20)
	}
	return p, nil
}

func tooLong(format string, bound int) error {
	return apperr.Field("to", "The response would exceed "+format+". Request fewer days or a single unit.", bound)
}

// Units returns the units whose claims the response depends on.
func (p *Plan) Units() []domain.UnitID {
	list := make([]domain.UnitID, len(p.units))
	for i, u := range p.units {
		list[i] = u.unit.ID
	}
	return list
}

// Days returns the days of the plan. claims are those of the range's Window, at least for the plan's units. Days refuses more than
// MaxClaims claims, with an error on the field to. It stops when ctx ends.
func (p *Plan) Days(ctx context.Context, claims []Claim) ([]Day, error) {
	if len(claims) > MaxClaims {
		return nil, tooLong("%d bookings", MaxClaims)
	}
	byUnit, shut := takenBy(claims, p.op.Now), closedBy(p.offered.Closures)
	evaluators := make([]evaluator, len(p.units))
	for i, u := range p.units {
		evaluators[i] = p.op.evaluator(*u.unit, u.grid, byUnit[u.unit.ID])
		evaluators[i].closed = shut.of(u.unit.ID)
	}
	cheapest := newPrices(p.query.packages(p.offered), p.offered.Rules)
	store := make([]Slot, 0, p.slots)
	days := make([]Day, p.query.Days())
	for n := range days {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		day := Day{Date: p.query.From.AddDays(n), Units: make([]UnitDay, len(p.units))}
		var all tally
		for i, u := range p.units {
			first := len(store)
			for _, o := range p.openings[n][u.hours] {
				store = fill(store, &evaluators[i], o)
			}
			day.Units[i] = unitDay(u.unit, store[first:len(store):len(store)])
			all.add(day.Units[i].Slots)
		}
		day.Status, day.Price = all.status(), cheapest.on(day.Date)
		days[n] = day
	}
	return days, nil
}

// cut lists the openings by day and hours, and counts the slots of all units. It stops above MaxSlots.
func (p *Plan) cut(ctx context.Context) error {
	hours := groupByHours(p.units)
	p.openings = make([][][]opening, p.query.Days())
	for n := range p.openings {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := p.query.From.AddDays(n)
		p.openings[n] = make([][]opening, len(hours))
		for i, h := range hours {
			p.openings[n][i] = openings(h, d, p.op.Loc)
		}
		for _, u := range p.units {
			for _, o := range p.openings[n][u.hours] {
				n := u.count(o)
				if p.slots += n; p.slots > MaxSlots {
					return tooLong("%d slots", MaxSlots)
				}
				if u.unit.Shared() {
					p.shared += n
				}
			}
		}
	}
	return nil
}

// groupByHours returns the different opening hours of the units, and sets hours of each unit to the position of its own. Most units
// of an operator have the same hours, and the conversion of local times costs more than anything else in a plan.
func groupByHours(units []shown) []domain.OpeningHours {
	var hours []domain.OpeningHours
	known := make(map[string]int)
	for i := range units {
		own := units[i].unit.OpeningHours
		key := own.String()
		at, ok := known[key]
		if !ok {
			at = len(hours)
			known[key], hours = at, append(hours, own)
		}
		units[i].hours = at
	}
	return hours
}

// fill appends the slots of one opening.
func fill(slots []Slot, e *evaluator, o opening) []Slot {
	for i := range e.grid.count(o) {
		s := e.grid.slot(o, i)
		reason, seats := e.slot(s)
		slots = append(slots, Slot{Span: s, Status: reason.status(), Seats: seats})
	}
	return slots
}

func unitDay(u *domain.Unit, slots []Slot) UnitDay {
	var t tally
	t.add(slots)
	status := t.status()
	if u.Status == domain.UnitMaintenance {
		status = DayClosed
	}
	return UnitDay{Unit: u, Status: status, Slots: slots}
}

// tally counts slots.
type tally struct{ all, free int }

func (t *tally) add(slots []Slot) {
	t.all += len(slots)
	for i := range slots {
		if slots[i].Status == SlotAvailable {
			t.free++
		}
	}
}

// quarter is the divisor for the share of free slots up to which a day is limited.
const quarter = 4

func (t *tally) status() DayStatus {
	switch {
	case t.all == 0:
		return DayClosed
	case t.free == 0:
		return DaySoldOut
	case t.free*quarter <= t.all:
		return DayLimited
	default:
		return DayAvailable
	}
}
