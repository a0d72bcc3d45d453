package availability

import (
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// prices finds the cheapest package of each day. Days with the same rules have the same price, so each set of rules is priced
// once.
type prices struct {
	tariff   *domain.Tariff
	packages []domain.Package
	rules    []domain.Concerning // for each package, the rules that concern it
	found    map[string]*domain.Price
}

func newPrices(packages []domain.Package, rules []domain.HolidayRule) prices {
	p := prices{
		tariff: domain.NewTariff(rules), packages: packages,
		rules: make([]domain.Concerning, len(packages)), found: map[string]*domain.Price{},
	}
	for i, k := range packages {
		p.rules[i] = p.tariff.For(k)
	}
	return p
}

// on returns the price of a booking of the cheapest package on the day. If two packages have the same price, it uses the one with
// the lower id. Nil means that there is no package, or none with a valid price.
func (p *prices) on(d civil.Date) *domain.Price {
	holding := p.tariff.On(d)
	if known, ok := p.found[string(holding)]; ok {
		return known
	}
	best := p.cheapest(holding)
	p.found[string(holding)] = best
	return best
}

func (p *prices) cheapest(holding domain.RuleSet) *domain.Price {
	var best *domain.Price
	for i, k := range p.packages {
		price, err := p.tariff.Quote(k, holding, p.rules[i])
		if err != nil { // above the largest amount, so its booking would be refused too
			continue
		}
		if best == nil || price.Total.Minor < best.Total.Minor ||
			price.Total.Minor == best.Total.Minor && domain.CompareIDs(k.ID, best.Snapshot.PackageID) < 0 {
			best = &price
		}
	}
	return best
}
