package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// Demo contains the settings of the demo catalogue.
type Demo struct {
	Currency string // ISO 4217 code of the prices
	Timezone string // IANA name, which must exist
	Year     int    // the first season
}

// Seed creates a small boat rental for the caller's tenant: 3 services, 5 units, 6 packages, 3 holiday rules. Ids are derived from
// the tenant and a name, so seeding twice changes nothing.
func Seed(ctx context.Context, db *pg.DB, d Demo) error {
	if _, err := civil.Location(d.Timezone); err != nil {
		return err
	}
	catalogue, err := boats(caller.FromContext(ctx), d)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	verbs := &Catalogue{Wake: func() {}, Now: time.Now} // the relay of the service finds the events without a wakeup
	return db.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		inserted, err := store.InsertCatalogue(ctx, tx, catalogue)
		if err != nil {
			return err
		}
		return verbs.emit(ctx, tx, inserted)
	})
}

func boats(c caller.Caller, d Demo) (store.Catalogue, error) {
	decimals, err := money.Decimals(d.Currency)
	if err != nil {
		return store.Catalogue{}, err
	}
	price := func(whole int64) money.Amount {
		for range decimals {
			whole *= 10
		}
		return money.Amount{Minor: whole, Currency: d.Currency}
	}
	cruise, rental := seeded[domain.ServicePrefix](c, "cruise"), seeded[domain.ServicePrefix](c, "rental")
	heron, gull := seeded[domain.UnitPrefix](c, "heron"), seeded[domain.UnitPrefix](c, "gull")
	tern, osprey := seeded[domain.UnitPrefix](c, "tern"), seeded[domain.UnitPrefix](c, "osprey")
	seals, puffin := seeded[domain.ServicePrefix](c, "seals"), seeded[domain.UnitPrefix](c, "puffin")
	day := func(m time.Month, n int) civil.Date { return civil.Date{Year: d.Year, Month: m, Day: n} }
	return store.Catalogue{ // lists show the last rows first
		Services: []domain.Service{
			{ID: seals, Name: "Seal tour", Description: new("A shared tour to the seal banks."), DurationMinutes: new(90), Active: true},
			{ID: cruise, Name: "Harbour cruise", Description: new("With a skipper, around the harbour and the islands."), DurationMinutes: new(120), BufferBeforeMinutes: 15, BufferAfterMinutes: 30, Active: true},
			{ID: rental, Name: "Boat rental", Description: new("Without a skipper, by the hour or the day."), DurationMinutes: new(240), BufferAfterMinutes: 30, Active: true},
		},
		Units: []domain.Unit{
			{ID: puffin, Name: "Puffin", Description: new("8 m tour boat, booked by the seat."), Status: domain.UnitActive, BookingMode: domain.SeatsMode, Capacity: new(10), OpeningHours: daily("10:00", "16:00"), ServiceIDs: []domain.ServiceID{seals}},
			{ID: heron, Name: "Heron", Description: new("12 m catamaran."), Status: domain.UnitActive, BookingMode: domain.ExclusiveMode, Capacity: new(24), ServiceIDs: []domain.ServiceID{cruise}},
			{ID: gull, Name: "Gull", Description: new("9 m launch."), Status: domain.UnitActive, BookingMode: domain.ExclusiveMode, Capacity: new(10), ServiceIDs: []domain.ServiceID{cruise, rental}},
			{ID: tern, Name: "Tern", Description: new("6 m motorboat."), Status: domain.UnitActive, BookingMode: domain.ExclusiveMode, Capacity: new(6), ServiceIDs: []domain.ServiceID{rental}},
			{ID: osprey, Name: "Osprey", Description: new("7 m sailing boat."), Status: domain.UnitActive, BookingMode: domain.ExclusiveMode, Capacity: new(6), ServiceIDs: []domain.ServiceID{rental}},
		},
		Packages: []domain.Package{
			{ID: seeded[domain.PackagePrefix](c, "seat"), ServiceID: seals, Visible: true, Active: true, Terms: domain.Terms{Name: "Seat on a seal tour", BasePrice: price(45), Pricing: domain.PerGuest, DepositType: domain.DepositNone, DurationMinutes: new(90)}},
			{ID: seeded[domain.PackagePrefix](c, "sunset"), ServiceID: cruise, Visible: true, Active: true, Terms: domain.Terms{Name: "Sunset cruise", BasePrice: price(480), Pricing: domain.PerBooking, DepositType: domain.DepositPercentage, DepositValue: 3000, DurationMinutes: new(150)}},
			{ID: seeded[domain.PackagePrefix](c, "islands"), ServiceID: cruise, Visible: true, Active: true, UnitIDs: []domain.UnitID{heron}, Terms: domain.Terms{Name: "Island day trip", BasePrice: price(1900), Pricing: domain.PerBooking, DepositType: domain.DepositFlat, DepositValue: price(500).Minor, DurationMinutes: new(480)}},
			{ID: seeded[domain.PackagePrefix](c, "half"), ServiceID: rental, Visible: true, Active: true, Terms: domain.Terms{Name: "Half day", BasePrice: price(220), Pricing: domain.PerBooking, DepositType: domain.DepositFlat, DepositValue: price(100).Minor}},
			{ID: seeded[domain.PackagePrefix](c, "full"), ServiceID: rental, Visible: true, Active: true, Terms: domain.Terms{Name: "Full day", BasePrice: price(360), Pricing: domain.PerBooking, DepositType: domain.DepositPercentage, DepositValue: 5000, DurationMinutes: new(540)}},
			{ID: seeded[domain.PackagePrefix](c, "club"), ServiceID: rental, Active: true, UnitIDs: []domain.UnitID{osprey}, Terms: domain.Terms{Name: "Club members' evening", BasePrice: price(60), Pricing: domain.PerBooking, DepositType: domain.DepositNone, DurationMinutes: new(180)}},
		},
		Rules: []domain.HolidayRule{
			{ID: seeded[domain.HolidayPrefix](c, "new-year"), Name: "New Year", From: day(time.December, 30), To: day(time.December, 30).AddDays(3), Recurrence: domain.Yearly, MultiplierBps: 15000, Priority: 10, Active: true},
			{ID: seeded[domain.HolidayPrefix](c, "summer"), Name: "High season", From: day(time.June, 15), To: day(time.September, 1), Recurrence: domain.Once, MultiplierBps: 11500, Stackable: true, Active: true},
			{ID: seeded[domain.HolidayPrefix](c, "regatta"), Name: "Regatta week", From: day(time.August, 3), To: day(time.August, 9), Recurrence: domain.Once, MultiplierBps: 12500, ServiceIDs: []domain.ServiceID{cruise}, Priority: 5, Active: true},
		},
	}, nil
}

// daily returns opening hours that are the same on each day.
func daily(from, to civil.Clock) domain.OpeningHours {
	hours := domain.OpeningHours{}
	for d := time.Sunday; d <= time.Saturday; d++ {
		hours[d] = []domain.Opening{{Open: from, Close: to}}
	}
	return hours
}

// seeded returns an id in the form of a UUIDv7 that is derived from tenant, mode, and name. Its timestamp is that of the tenant's
// id.
func seeded[P ids.Prefix](c caller.Caller, name string) ids.ID[P] {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s", c.Tenant, c.Mode, name))
	u := [16]byte(sum[:16])
	tenant := c.Tenant.UUID()
	copy(u[:6], tenant[:6])
	u[6] = 0x70 | u[6]&0x0f
	u[8] = 0x80 | u[8]&0x3f
	return ids.FromUUID[P](u)
}
