package offer

import (
	"holdfast.dev/libs/apperr"

	"holdfast.dev/services/bookings/internal/domain"
)

// DayStatus sums up the slots of a day.
type DayStatus string

// A day is closed without slots, sold out when none is free, limited when at most a quarter is.
const (
	DayAvailable DayStatus = "available"
	DayLimited   DayStatus = "limited"
	DaySoldOut   DayStatus = "sold_out"
	DayClosed    DayStatus = "closed"
)

// Day is what is offered on a date. A date that did not exist in the operator's zone is closed.
type Day struct {
	Date   domain.Date
	Status DayStatus
	Price  *domain.Price // of the cheapest package, with its holiday; nil: there is none
	Units  []UnitDay     // by id
}

// UnitDay is a unit on a date: the slots of the openings that belong to it, in order.
type UnitDay struct {
	Unit   *domain.Unit
	Status DayStatus // of these slots; of a unit in maintenance always closed
	Slots  []Slot
}

// Days answers a query. The claims are those of the range's Window, at least of the units that the query
// shows. More than MaxSlots are refused on to, before any is made.
func Days(q Query, c Catalogue, claims []Claim, op Operator) ([]Day, error) {
	units := q.units(c)
	openings, slots := cut(q.Range, units, op)
	if slots > MaxSlots {
		return nil, apperr.Field("to", "The answer would hold over %d slots. Ask for fewer days, or for one unit.", MaxSlots)
	}
	byUnit := takenBy(claims, op.Now)
	judges := make([]judge, len(units))
	for i, u := range units {
		judges[i] = op.judge(*u.unit, u.grid, byUnit[u.unit.ID])
	}
	cheapest := prices{packages: q.packages(c), rules: c.Rules}
	store := make([]Slot, 0, slots)
	days := make([]Day, q.Days())
	for n := range days {
		day := Day{Date: q.From.AddDays(n), Units: make([]UnitDay, len(units))}
		var all tally
		for i, u := range units {
			first := len(store)
			for _, o := range openings[n][i] {
				store = fill(store, &judges[i], o)
			}
			day.Units[i] = unitDay(u.unit, store[first:len(store):len(store)])
			all.add(day.Units[i].Slots)
		}
		day.Status, day.Price = all.status(), cheapest.on(day.Date)
		days[n] = day
	}
	return days, nil
}

// cut lists the openings by day and unit and counts their slots; it stops counting, and listing, beyond
// MaxSlots.
func cut(r Range, units []shown, op Operator) (openings [][][]domain.Span, slots int) {
	openings = make([][][]domain.Span, r.Days())
	for n := range openings {
		d := r.From.AddDays(n)
		always := domain.OpeningHours(nil).On(d, op.Loc)
		openings[n] = make([][]domain.Span, len(units))
		for i, u := range units {
			spans := always
			if u.unit.OpeningHours != nil {
				spans = u.unit.OpeningHours.On(d, op.Loc)
			}
			openings[n][i] = spans
			for _, o := range spans {
				if slots += u.count(o); slots > MaxSlots {
					return openings, slots
				}
			}
		}
	}
	return openings, slots
}

// fill appends the slots of one opening.
func fill(slots []Slot, j *judge, o domain.Span) []Slot {
	for i := range j.grid.count(o) {
		s := j.grid.slot(o, i)
		slots = append(slots, Slot{Span: s, Status: j.slot(s).status()})
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

// quarter is the share of free slots, one in so many, up to which a day is limited.
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
