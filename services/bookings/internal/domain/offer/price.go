package offer

import (
	"holdfast.dev/services/bookings/internal/domain"
)

// prices finds the cheapest package of each day. Days on which the same rules hold cost the same, so that
// each such set is priced once.
type prices struct {
	packages []domain.Package
	rules    []domain.HolidayRule
	found    map[string]*domain.Price
}

// on is what the cheapest package costs on the day, and so what a booking of it made for that day costs; of
// two at one price the one with the lowest id. Nil: there is no package, or none whose price can be had.
func (p *prices) on(d domain.Date) *domain.Price {
	holding := make([]domain.HolidayRule, 0, len(p.rules))
	set := make([]byte, len(p.rules))
	for i, r := range p.rules {
		if r.Active && r.Covers(d) {
			holding, set[i] = append(holding, r), 1
		}
	}
	if known, ok := p.found[string(set)]; ok {
		return known
	}
	best := p.cheapest(holding, d)
	if p.found == nil {
		p.found = make(map[string]*domain.Price)
	}
	p.found[string(set)] = best
	return best
}

func (p *prices) cheapest(rules []domain.HolidayRule, d domain.Date) *domain.Price {
	var best *domain.Price
	for _, k := range p.packages {
		price, err := domain.Quote(k, rules, d)
		if err != nil { // beyond the largest amount: a booking of it is refused as well
			continue
		}
		if best == nil || price.Total.Minor < best.Total.Minor ||
			price.Total.Minor == best.Total.Minor && domain.CompareIDs(k.ID, best.Snapshot.PackageID) < 0 {
			best = &price
		}
	}
	return best
}
