// Package peerstest contains fakes of the other services for tests. The fakes store state, and tests can make them fail.
package peerstest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// Bookings replaces the bookings service.
type Bookings struct {
	// Before runs before a call takes effect, and After runs afterwards. Each can return the error that the caller sees.
	Before, After func(ctx context.Context, call string) error

	mu        sync.Mutex
	created   map[string]domain.Booking // by the id of the quote or lead
	requests  []domain.LinkedBooking
	catalogue map[string]domain.CatalogueItem
	prices    map[domain.PackageID]domain.PackagePrice
	units     map[domain.UnitID]string
	bookings  map[domain.BookingID]domain.Booking
}

func (f *Bookings) call(ctx context.Context, name string, effect func() error) error {
	if f.Before != nil {
		if err := f.Before(ctx, name); err != nil {
			return err
		}
	}
	f.mu.Lock()
	err := effect()
	f.mu.Unlock()
	if err == nil && f.After != nil {
		err = f.After(ctx, name)
	}
	return err
}

// Create implements app.BookingService.
func (f *Bookings) Create(ctx context.Context, in domain.LinkedBooking) (out domain.Booking, err error) {
	err = f.call(ctx, "create", func() error {
		if time.Now().After(in.ValidUntil) {
			return apperr.ErrUnavailable
		}
		owner := in.Lead.String()
		if !in.Quote.IsZero() {
			owner = in.Quote.String()
		}
		f.requests = append(f.requests, in)
		if b, ok := f.created[owner]; ok {
			out = f.bookings[b.ID] // in its current state
			return nil
		}
		out = domain.Booking{ID: ids.New[ids.BookingPrefix](), Status: "pending", Total: in.Total, Days: day(in.Body), Version: 1}
		if f.created == nil {
			f.created = map[string]domain.Booking{}
		}
		f.created[owner] = out
		f.put(out)
		return nil
	})
	return out, err
}

// day returns the day of a booking by its body. It returns nil for a point in time.
func day(body []byte) *domain.Days {
	var in struct {
		EventDate string `json:"event_date"`
	}
	_ = json.Unmarshal(body, &in)
	d, err := civil.ParseDate(in.EventDate)
	if err != nil {
		return nil
	}
	return &domain.Days{First: d, Last: d}
}

// Booking implements app.BookingService.
func (f *Bookings) Booking(ctx context.Context, id domain.BookingID) (out domain.Booking, err error) {
	err = f.call(ctx, "booking", func() error {
		b, ok := f.bookings[id]
		if !ok {
			return domain.ErrBookingNotFound
		}
		out = b
		return nil
	})
	return out, err
}

// Catalogue implements app.BookingService.
func (f *Bookings) Catalogue(ctx context.Context, id string) (out domain.CatalogueItem, err error) {
	err = f.call(ctx, "catalogue", func() error {
		item, ok := f.catalogue[id]
		if !ok {
			return domain.ErrNotInCatalogue
		}
		out = item
		return nil
	})
	return out, err
}

// NameUnit sets the name of a unit.
func (f *Bookings) NameUnit(id domain.UnitID, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.units == nil {
		f.units = map[domain.UnitID]string{}
	}
	f.units[id] = name
}

// UnitNames implements app.BookingService.
func (f *Bookings) UnitNames(ctx context.Context, units []domain.UnitID) (map[domain.UnitID]string, error) {
	names := map[domain.UnitID]string{}
	err := f.call(ctx, "unit names", func() error {
		for _, id := range units {
			if name, ok := f.units[id]; ok {
				names[id] = name
			}
		}
		return nil
	})
	return names, err
}

// Price implements app.BookingService.
func (f *Bookings) Price(ctx context.Context, id domain.PackageID, _ string, guests int) (out domain.PackagePrice, err error) {
	err = f.call(ctx, "price", func() error {
		p, ok := f.prices[id]
		if !ok {
			return apperr.Field("package_id", "Package not found.")
		}
		out = p
		if p.Guests != nil { // a price per guest
			out.Guests, out.Total.Minor = &guests, p.Total.Minor*int64(guests)
		}
		return nil
	})
	return out, err
}

// AddCatalogue adds a service, a unit or a package.
func (f *Bookings) AddCatalogue(id string) {
	f.AddItem(domain.CatalogueItem{ID: id, Version: 1})
}

// AddItem adds or replaces an item of the catalogue.
func (f *Bookings) AddItem(item domain.CatalogueItem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.catalogue == nil {
		f.catalogue = map[string]domain.CatalogueItem{}
	}
	f.catalogue[item.ID] = item
}

// AddPackage adds a package with a price. If its Guests are set, the price is the one for each guest.
func (f *Bookings) AddPackage(p domain.PackagePrice) domain.PackageID {
	id := ids.New[ids.PackagePrefix]()
	f.AddItem(domain.CatalogueItem{ID: id.String(), Version: 1, Details: domain.CatalogueDetails{Service: p.Service}})
	if p.Defaults.Behavior == "" {
		p.Defaults.Behavior = domain.TaxExclusive
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.prices == nil {
		f.prices = map[domain.PackageID]domain.PackagePrice{}
	}
	f.prices[id] = p
	return id
}

// AddBooking adds a booking.
func (f *Bookings) AddBooking(customer domain.CustomerID, total money.Amount) domain.Booking {
	b := domain.Booking{ID: ids.New[ids.BookingPrefix](), CustomerID: customer, Status: "pending", Total: total, Version: 1}
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Number = fmt.Sprintf("B-%06d", len(f.bookings)+1)
	f.put(b)
	return b
}

// ChangeBooking adds a newer version of a booking.
func (f *Bookings) ChangeBooking(b domain.Booking) domain.Booking {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Version++
	f.put(b)
	return b
}

func (f *Bookings) put(b domain.Booking) {
	if f.bookings == nil {
		f.bookings = map[domain.BookingID]domain.Booking{}
	}
	f.bookings[b.ID] = b
}

// Created returns the bookings that Create created.
func (f *Bookings) Created() []domain.Booking {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.created))
}

// Requests returns the arguments of the calls of Create.
func (f *Bookings) Requests() []domain.LinkedBooking {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Tenants replaces identity.
type Tenants struct {
	Info   domain.Invoicing
	Image  domain.Logo // if Info has a LogoHash
	Fail   error
	Before func() // runs before Invoicing responds; nil: nothing
}

// Invoicing implements app.TenantService.
func (f *Tenants) Invoicing(context.Context) (domain.Invoicing, error) {
	if f.Before != nil {
		f.Before()
	}
	info := f.Info
	if info.Defaults.Behavior == "" {
		info.Defaults.Behavior = domain.TaxExclusive
	}
	return info, f.Fail
}

// Logo implements app.TenantService.
func (f *Tenants) Logo(_ context.Context, hash string) (domain.Logo, error) {
	if hash == "" {
		return domain.Logo{}, nil
	}
	return f.Image, f.Fail
}

// Acting implements app.TenantService.
func (f *Tenants) Acting(_ context.Context, tenant ids.Tenant, mode caller.Mode) (caller.Caller, error) {
	c := caller.Service("customers", tenant, mode)
	c.Timezone, c.Currency, c.PolicyVersion = "America/New_York", "USD", 1
	return c, f.Fail
}
