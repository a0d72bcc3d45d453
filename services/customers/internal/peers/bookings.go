// Package peers calls the other services. It calls bookings for the booking of a quote or a lead and for what the projections lack,
// identity for the operator's data on invoices, and bookings, payments and webhooks for exports.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/domain"
)

// Bookings calls the bookings service on behalf of the caller in the context. It implements app.BookingService.
type Bookings struct{ Client *peer.Client }

// Create creates the booking of a quote or a lead as the service itself, so that the idempotency key is not one of the caller's.
func (p *Bookings) Create(ctx context.Context, in domain.LinkedBooking) (domain.Booking, error) {
	body := internalapi.LinkedBooking{
		Booking: in.Body, QuoteID: in.Quote.String(), LeadID: in.Lead.String(), ValidUntil: in.ValidUntil.UTC(),
	}
	if !in.Quote.IsZero() {
		body.TotalAmount, body.DepositAmount, body.Currency = &in.Total.Minor, &in.Deposit.Minor, in.Total.Currency
		for _, r := range in.Taxes {
			body.TaxBreakdown = append(body.TaxBreakdown, internalapi.TaxRow{Name: r.Name, Rate: r.Rate.String(), Taxable: r.Taxable, Tax: r.Amount})
		}
	}
	c := caller.FromContext(ctx).ActingAs("customers")
	var got api.Booking
	err := p.Client.Do(caller.With(ctx, c), http.MethodPost, "/internal/v1/bookings", body, &got, peer.IdempotencyKey(in.Key))
	if err != nil {
		return domain.Booking{}, err
	}
	return booking(got)
}

// Booking looks up a booking.
func (p *Bookings) Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error) {
	var got api.Booking
	if err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/bookings/"+id.String(), nil, &got); err != nil {
		return domain.Booking{}, notFound(err, domain.ErrBookingNotFound)
	}
	return booking(got)
}

// Catalogue looks up a service, a unit or a package.
func (p *Bookings) Catalogue(ctx context.Context, id string) (domain.CatalogueItem, error) {
	var got internalapi.CatalogueItem
	if err := p.Client.Do(ctx, http.MethodGet, "/internal/v1/catalogue/"+url.PathEscape(id), nil, &got); err != nil {
		return domain.CatalogueItem{}, notFound(err, domain.ErrNotInCatalogue)
	}
	item := domain.CatalogueItem{ID: got.ID, Version: got.Version}
	var err error
	if got.Details.ServiceID != nil {
		if item.Details.Service, err = ids.Parse[ids.ServicePrefix](*got.Details.ServiceID); err != nil {
			return domain.CatalogueItem{}, fmt.Errorf("service id %q: %w", *got.Details.ServiceID, err)
		}
	}
	if got.Details.DefaultTaxes != nil {
		taxes, err := fromTaxes(*got.Details.DefaultTaxes)
		item.Details.Taxes = &taxes
		return item, err
	}
	return item, nil
}

// UnitNames returns the names of those units that exist, by id.
func (p *Bookings) UnitNames(ctx context.Context, units []domain.UnitID) (map[domain.UnitID]string, error) {
	in := internalapi.UnitList{UnitIDs: make([]string, len(units))}
	for i, id := range units {
		in.UnitIDs[i] = id.String()
	}
	var got internalapi.UnitNames
	if err := p.Client.Do(ctx, http.MethodPost, "/internal/v1/units/names", in, &got); err != nil {
		return nil, err
	}
	names := make(map[domain.UnitID]string, len(got.Data))
	for _, u := range got.Data {
		id, err := ids.Parse[ids.UnitPrefix](u.ID)
		if err != nil {
			return nil, fmt.Errorf("unit id %q: %w", u.ID, err)
		}
		names[id] = u.Name
	}
	return names, nil
}

// fromTaxes converts the taxes of another service.
func fromTaxes(list []api.Tax) ([]money.Tax, error) {
	out := make([]money.Tax, len(list))
	for i, tax := range list {
		rate, err := money.ParseRate(tax.Rate)
		if err != nil {
			return nil, err
		}
		out[i] = money.Tax{Name: tax.Name, Rate: rate}
	}
	return out, nil
}

// Price returns the price of a package on a day, for a number of guests.
func (p *Bookings) Price(ctx context.Context, id domain.PackageID, eventDate string, guests int) (domain.PackagePrice, error) {
	var got internalapi.PackagePrice
	in := internalapi.PriceQuery{PackageID: id.String(), EventDate: eventDate, GuestCount: &guests}
	if err := p.Client.Do(ctx, http.MethodPost, "/internal/v1/prices", in, &got); err != nil {
		return domain.PackagePrice{}, err
	}
	service, err := ids.Parse[ids.ServicePrefix](got.ServiceID)
	if err != nil {
		return domain.PackagePrice{}, fmt.Errorf("service id %q: %w", got.ServiceID, err)
	}
	out := domain.PackagePrice{
		Name: got.Name, Service: service, Guests: got.GuestCount,
		Total:   money.Amount{Minor: got.TotalAmount, Currency: got.Currency},
		Deposit: money.Amount{Minor: got.DepositAmount, Currency: got.Currency},
	}
	out.Defaults.Behavior = domain.TaxBehavior(got.TaxBehavior)
	out.Defaults.Taxes, err = fromTaxes(got.Taxes)
	return out, err
}

func booking(b api.Booking) (domain.Booking, error) {
	id, err := ids.Parse[ids.BookingPrefix](b.Id)
	if err != nil {
		return domain.Booking{}, fmt.Errorf("booking id %q: %w", b.Id, err)
	}
	out := domain.Booking{
		ID: id, Number: b.Number, Status: string(b.Status), Version: b.Version,
		Total: money.Amount{Minor: b.GrossAmount.Amount, Currency: b.GrossAmount.Currency},
	}
	if out.Price, err = price(b); err != nil {
		return domain.Booking{}, fmt.Errorf("taxes of booking %s: %w", b.Id, err)
	}
	if out.Days, err = days(b); err != nil {
		return domain.Booking{}, fmt.Errorf("days of booking %s: %w", b.Id, err)
	}
	if p, err := b.PackageSnapshot.Get(); err == nil {
		out.Package = p.Name
		if guests, err := p.GuestCount.Get(); err == nil {
			out.Guests = &guests
		}
	}
	if text, err := b.CustomerId.Get(); err == nil {
		if out.CustomerID, err = ids.Parse[ids.CustomerPrefix](text); err != nil {
			return domain.Booking{}, fmt.Errorf("customer id %q: %w", text, err)
		}
	}
	if text, err := b.ServiceId.Get(); err == nil {
		if out.ServiceID, err = ids.Parse[ids.ServicePrefix](text); err != nil {
			return domain.Booking{}, fmt.Errorf("service id %q: %w", text, err)
		}
	}
	return out, nil
}

// price returns the price of a booking, or nil if its taxes are not known.
func price(b api.Booking) (*domain.BookingPrice, error) {
	behavior, err := b.TaxBehavior.Get()
	if err != nil { // null, or not present
		return nil, nil
	}
	taxes := make([]api.Tax, len(b.TaxBreakdown))
	for i, r := range b.TaxBreakdown {
		taxes[i] = api.Tax{Name: r.Name, Rate: r.Rate}
	}
	out := domain.BookingPrice{Minor: b.TotalAmount.Amount, Behavior: domain.TaxBehavior(behavior)}
	out.Taxes, err = fromTaxes(taxes)
	return &out, err
}

// days returns the days of a booking in its time zone. A booking that ends at midnight does not include the day that begins then.
func days(b api.Booking) (*domain.Days, error) {
	first, err := civil.ParseDate(b.EventLocalDate)
	if err != nil {
		return nil, err
	}
	out := domain.Days{First: first, Last: first}
	end, err := b.EndsAt.Get()
	if err != nil { // a whole-day booking
		return &out, nil
	}
	zone, err := civil.Location(b.Timezone)
	if err != nil {
		return nil, err
	}
	if last := civil.DateOf(end.Add(-time.Nanosecond).In(zone)); first.Before(last) {
		out.Last = last
	}
	return &out, nil
}

// notFound replaces another service's 404 by the error that this service's use cases check for.
func notFound(err, missing error) error {
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return missing
	}
	return err
}
