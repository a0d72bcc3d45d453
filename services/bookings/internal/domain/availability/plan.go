package availability

import (
	"cmp"
	"encoding/json"
	"slices"

	"holdfast.dev/services/bookings/internal/domain"
)

// Catalogue is what an operator has, in any order. It may be narrowed to what a query can need.
type Catalogue struct {
	Services []domain.Service
	Units    []domain.Unit
	Packages []domain.Package
	Rules    []domain.HolidayRule
}

// Query asks for the days of a range. An id narrows units and prices alike; one that the catalogue does not
// have, the zero id included, leaves none. Nil does not narrow.
type Query struct {
	Range
	Service *domain.ServiceID
	Unit    *domain.UnitID
	Package *domain.PackageID
}

// shown is a unit with the terms in which it is offered.
type shown struct {
	unit *domain.Unit
	grid
}

// slotBytes is what a slot takes of the answer, and unitBytes what a unit does on each day beside its name.
const (
	slotBytes = 100
	unitBytes = 120
)

// bytes is what the unit takes of the answer on each day, without its slots.
func (s shown) bytes() int {
	name, _ := json.Marshal(s.unit.Name) // a string can be written
	return unitBytes + len(name)
}

// units are the units of the answer, by id. A retired unit is not shown, one in maintenance is.
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

// pack is the package that was asked for, nil for none; false when it cannot be booked.
func (q Query) pack(c Catalogue) (*domain.Package, bool) {
	if q.Package == nil {
		return nil, true
	}
	i := slices.IndexFunc(c.Packages, func(p domain.Package) bool { return p.ID == *q.Package })
	return at(c.Packages, i), i >= 0 && c.Packages[i].Active
}

// service is the one in whose terms the unit is shown: the package's, the one asked for, or the usual one.
// False when the unit does not go with it, or cannot be booked.
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
		return s, p.Takes(u, *s)
	}
	return s, u.Serves(*s)
}

// usually tells the service of a unit for which none was asked: of the active ones that go with it the one with
// the shortest duration, then the lowest id; one without a duration comes last. Nil: there is none.
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

// packages are those that price the query's days: visible and active, of an active service, and fitting
// what was asked for. A package that is sold out, or whose units are closed, has its price all the same.
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
		case unit != nil && !p.Takes(*unit, *s):
		default:
			list = append(list, p)
		}
	}
	return list
}

// at is the element of an index, nil for a negative one.
func at[T any](list []T, i int) *T {
	if i < 0 {
		return nil
	}
	return &list[i]
}
