package availability

import (
	"cmp"
	"encoding/json"
	"slices"

	"holdfast.dev/services/bookings/internal/domain"
)

// Catalogue is an operator's catalogue in any order. It can be limited to the rows that a query may need.
type Catalogue struct {
	Services []domain.Service
	Units    []domain.Unit
	Packages []domain.Package
	Rules    []domain.HolidayRule
	Closures []Closure
}

// Query requests the days of a range. An id filters both units and prices. An id that is not in the catalogue, including the zero
// id, selects nothing. Nil does not filter.
type Query struct {
	Range
	Service *domain.ServiceID
	Unit    *domain.UnitID
	Package *domain.PackageID
}

// shown is a unit with the terms under which it is offered.
type shown struct {
	unit  *domain.Unit
	hours int // the position of its opening hours in the plan
	grid
}

// slotBytes is the size of a slot in the response, and seatsBytes that of its seats. unitBytes is the size of a unit on each day,
// without its name.
const (
	slotBytes  = 115
	seatsBytes = 62
	unitBytes  = 120
)

// bytes returns the size of the unit in the response on each day, without its slots.
func (s shown) bytes() int {
	name, _ := json.Marshal(s.unit.Name) // a string can always be encoded
	return unitBytes + len(name)
}

// units returns the units of the response, by id. Retired units are omitted; units in maintenance are included.
func (q Query) units(c Catalogue) []shown {
	p, ok := q.pack(c)
	if !ok {
		return nil
	}
	var list []shown
	usual := usually(c.Services)
	for i := range c.Units {
		u := &c.Units[i]
		if u.Status == domain.UnitRetired || q.Unit != nil && u.ID != *q.Unit {
			continue
		}
		if s, ok := q.service(c, *u, p, usual); ok {
			list = append(list, shown{unit: u, grid: gridOf(s, p)})
		}
	}
	slices.SortFunc(list, func(a, b shown) int { return domain.CompareIDs(a.unit.ID, b.unit.ID) })
	return list
}

// pack returns the requested package, or nil if the query names none. It returns false if the package cannot be booked.
func (q Query) pack(c Catalogue) (*domain.Package, bool) {
	if q.Package == nil {
		return nil, true
	}
	i := slices.IndexFunc(c.Packages, func(p domain.Package) bool { return p.ID == *q.Package })
	return at(c.Packages, i), i >= 0 && c.Packages[i].Active
}

// service returns the service whose terms apply to the unit: the package's, the requested one, or the usual one. It returns false
// if the unit does not offer the service, or the service cannot be booked.
func (q Query) service(c Catalogue, u domain.Unit, p *domain.Package, usual func(domain.Unit) *domain.Service) (*domain.Service, bool) {
	id := q.Service
	switch {
	case p != nil && id != nil && *id != p.ServiceID:
		return nil, false
	case p != nil:
		id = &p.ServiceID
	case id == nil:
		return usual(u), true
	}
	i := slices.IndexFunc(c.Services, func(s domain.Service) bool { return s.ID == *id })
	if i < 0 || !c.Services[i].Active {
		return nil, false
	}
	s := &c.Services[i]
	if p != nil {
		return s, p.BookableOn(u, *s)
	}
	return s, u.Serves(*s)
}

// usually returns the function that selects the service of a unit if the query names none. It selects the unit's active service
// with the shortest duration, and among equals the one with the lowest id. A service without a duration comes last. Nil means that
// there is none.
func usually(services []domain.Service) func(u domain.Unit) *domain.Service {
	var ranked []*domain.Service
	for i := range services {
		if services[i].Active {
			ranked = append(ranked, &services[i])
		}
	}
	slices.SortFunc(ranked, func(a, b *domain.Service) int { return shorter(*a, *b) })
	rank := make(map[domain.ServiceID]int, len(ranked))
	unlinked := -1
	for i, s := range ranked {
		rank[s.ID] = i
		if unlinked < 0 && len(s.UnitIDs) == 0 {
			unlinked = i
		}
	}
	return func(u domain.Unit) *domain.Service {
		best := -1
		for _, id := range u.ServiceIDs {
			if i, active := rank[id]; active && (best < 0 || i < best) {
				best = i
			}
		}
		if len(u.ServiceIDs) == 0 { // see domain.Unit.Serves
			best = unlinked
		}
		if best < 0 {
			return nil
		}
		return ranked[best]
	}
}

func shorter(a, b domain.Service) int {
	if (a.DurationMinutes == nil) != (b.DurationMinutes == nil) {
		if a.DurationMinutes == nil {
			return 1
		}
		return -1
	}
	order := 0
	if a.DurationMinutes != nil {
		order = cmp.Compare(*a.DurationMinutes, *b.DurationMinutes)
	}
	return cmp.Or(order, domain.CompareIDs(a.ID, b.ID))
}

// packages returns the packages that determine the prices of the query: visible and active packages of an active service that match
// the query. A package that is sold out, or whose units are closed, still has its price.
func (q Query) packages(c Catalogue) []domain.Package {
	services := make(map[domain.ServiceID]*domain.Service, len(c.Services))
	for i := range c.Services {
		services[c.Services[i].ID] = &c.Services[i]
	}
	var unit *domain.Unit
	if q.Unit != nil {
		i := slices.IndexFunc(c.Units, func(u domain.Unit) bool { return u.ID == *q.Unit && u.Status != domain.UnitRetired })
		if unit = at(c.Units, i); unit == nil {
			return nil
		}
	}
	var list []domain.Package
	for _, p := range c.Packages {
		s := services[p.ServiceID]
		switch {
		case !p.Visible || !p.Active || s == nil || !s.Active:
		case q.Package != nil && *q.Package != p.ID:
		case q.Service != nil && *q.Service != p.ServiceID:
		case unit != nil && !p.BookableOn(*unit, *s):
		default:
			list = append(list, p)
		}
	}
	return list
}

// at returns an element of a list, or nil for a negative index.
func at[T any](list []T, i int) *T {
	if i < 0 {
		return nil
	}
	return &list[i]
}
