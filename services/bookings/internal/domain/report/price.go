package report

import (
	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// MaxPriceDays is the longest range of prices, as in proto/internal/bookings.yaml.
const MaxPriceDays = 366

// DayPrice is the price of a package on a day.
type DayPrice struct {
	Date  civil.Date
	Price *domain.Price // nil: a booking on that day is refused, because of its price or because the day does not exist
}

// Prices returns the price of the package on each of the days, as for bookings on these days.
func Prices(d Days, refs domain.Refs) []DayPrice {
	p, tariff, taxes := *refs.Package, domain.NewTariff(refs.Rules), refs.Taxes.Of(refs.Service)
	concerning := tariff.For(p)
	list := make([]DayPrice, d.Days())
	for n := range list {
		list[n].Date = d.From.AddDays(n)
		if _, exists := list[n].Date.Start(d.Loc); !exists {
			continue
		}
		price, err := tariff.Quote(p, tariff.On(list[n].Date), concerning)
		if err != nil {
			continue
		}
		if price, err = price.Taxed(taxes); err == nil {
			list[n].Price = &price
		}
	}
	return list
}
