package availability_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/patch"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

func TestPriceFrom(t *testing.T) {
	t.Parallel()
	cruise, rental, idle := tour(new(60)), tour(new(60)), tour(new(60))
	idle.Active = false
	gull, tern := boat(nil, cruise), boat(domain.OpeningHours{}, rental) // the tern is always closed
	retired := boat(nil, cruise)
	retired.Status = domain.UnitRetired
	cruise.UnitIDs, rental.UnitIDs = []domain.UnitID{gull.ID, retired.ID}, []domain.UnitID{tern.ID}
	sunset, dawn := pack(cruise, 1000), pack(cruise, 1000)
	half := pack(rental, 900)
	islands := pack(cruise, 1500, func(p *domain.Package) { p.UnitIDs = []domain.UnitID{gull.ID} })
	hidden := pack(cruise, 1, func(p *domain.Package) { p.Visible = false })
	ended := pack(cruise, 1, func(p *domain.Package) { p.Active = false })
	stale := pack(idle, 1)
	c := availability.Catalogue{
		Services: []domain.Service{cruise, rental, idle}, Units: []domain.Unit{gull, tern, retired},
		Packages: []domain.Package{islands, dawn, half, sunset, hidden, ended, stale},
		Rules: []domain.HolidayRule{
			rule("2026-05-11", "2026-05-11", 20000, func(r *domain.HolidayRule) { r.ServiceIDs = []domain.ServiceID{rental.ID} }),
			rule("2026-05-12", "2026-05-12", 15000, func(r *domain.HolidayRule) { r.Stackable, r.Priority = true, 1 }),
			rule("2026-05-12", "2026-05-13", 12000, func(r *domain.HolidayRule) { r.Stackable = true }),
		},
	}
	var none domain.PackageID
	for name, tc := range map[string]struct {
		query   availability.Query
		day     string
		pack    domain.PackageID // zero: none
		price   int64
		holiday int64 // bps, 0: none
	}{
		"cheapest, though its unit is closed": {availability.Query{}, "2026-05-10", half.ID, 900, 0},
		"a rule reverses the order":           {availability.Query{}, "2026-05-11", sunset.ID, 1000, 0}, // of two packages at 1000, the one that was created first
		"stacked, with the combined factor":   {availability.Query{}, "2026-05-12", half.ID, 1620, 18000},
		"one rule":                            {availability.Query{}, "2026-05-13", half.ID, 1080, 12000},
		"narrowed by service":                 {availability.Query{Service: &cruise.ID}, "2026-05-10", sunset.ID, 1000, 0},
		"narrowed by unit":                    {availability.Query{Unit: &gull.ID}, "2026-05-12", sunset.ID, 1800, 18000},
		"narrowed by package":                 {availability.Query{Package: &islands.ID}, "2026-05-10", islands.ID, 1500, 0},
		"a closed unit":                       {availability.Query{Unit: &tern.ID}, "2026-05-10", half.ID, 900, 0},
		"a retired unit":                      {availability.Query{Unit: &retired.ID}, "2026-05-10", none, 0, 0},
		"a hidden package":                    {availability.Query{Package: &hidden.ID}, "2026-05-10", none, 0, 0},
		"an inactive package":                 {availability.Query{Package: &ended.ID}, "2026-05-10", none, 0, 0},
		"a package of another service":        {availability.Query{Package: &half.ID, Service: &cruise.ID}, "2026-05-10", none, 0, 0},
		"an inactive service":                 {availability.Query{Service: &idle.ID}, "2026-05-10", none, 0, 0},
		"an unknown unit":                     {availability.Query{Unit: &domain.UnitID{}}, "2026-05-10", none, 0, 0},
	} {
		tc.query.Range = days(tc.day, tc.day)
		got := mustDays(t, tc.query, c, nil, availability.Operator{Loc: time.UTC})[0].Price
		switch {
		case tc.pack.IsZero() && got == nil:
		case tc.pack.IsZero() || got == nil || got.Snapshot.PackageID != tc.pack || got.Total.Minor != tc.price:
			t.Errorf("%s: %+v", name, got)
		case (got.Snapshot.Holiday == nil) != (tc.holiday == 0) || tc.holiday != 0 && got.Snapshot.Holiday.MultiplierBps != tc.holiday:
			t.Errorf("%s: %+v", name, got.Snapshot.Holiday)
		}
	}
	if got := mustDays(t, availability.Query{Range: days("2026-05-12", "2026-05-12")}, c, nil, availability.Operator{Loc: time.UTC})[0]; got.Price.Snapshot.Holiday.ID == c.Rules[2].ID {
		t.Error("stacked rules show the first by priority")
	}
}

// TestCheapestIsCharged checks that the lowest price shown for a day is the price of a booking of that package. No other visible
// package that can be booked instead costs less.
func TestCheapestIsCharged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, other := tour(new(60)), tour(new(60))
		c := availability.Catalogue{Services: []domain.Service{s, other}}
		for range rapid.IntRange(0, 5).Draw(t, "packages") {
			of := rapid.SampledFrom([]domain.Service{s, other}).Draw(t, "service")
			c.Packages = append(c.Packages, pack(of, rapid.Int64Range(0, 20).Draw(t, "price")*99, func(p *domain.Package) {
				p.Visible, p.Active = rapid.IntRange(0, 4).Draw(t, "hidden") > 0, rapid.IntRange(0, 4).Draw(t, "inactive") > 0
			}))
		}
		for range rapid.IntRange(0, 6).Draw(t, "rules") {
			c.Rules = append(c.Rules, drawRule(t, c, s))
		}
		first := date(rapid.SampledFrom([]string{"2026-12-28", "2027-02-26", "2028-02-26"}).Draw(t, "from"))
		got, err := allDays(availability.Query{Range: availability.Range{From: first, To: first.AddDays(6)}}, c, nil, availability.Operator{Loc: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range got {
			charged := map[domain.PackageID]domain.Booking{}
			for _, p := range c.Packages {
				if b, err := bookDay(p, c, d.Date); err == nil && p.Visible {
					charged[p.ID] = b
				}
			}
			if d.Price == nil {
				if len(charged) > 0 {
					t.Fatalf("%s has no price, and %d packages", d.Date, len(charged))
				}
				continue
			}
			price, err := d.Price.Taxed(domain.TaxDefaults{})
			if err != nil {
				t.Fatal(err)
			}
			if b := charged[price.Snapshot.PackageID]; b.Total != price.Total || b.Deposit != price.Deposit || !sameHoliday(b.Snapshot.Holiday, d.Price.Snapshot.Holiday) {
				t.Fatalf("%s from %v, a booking costs %v", d.Date, d.Price, b.Total)
			}
			for id, b := range charged {
				if b.Total.Minor < d.Price.Total.Minor || b.Total == d.Price.Total && domain.CompareIDs(id, d.Price.Snapshot.PackageID) < 0 {
					t.Fatalf("%s: %v instead of %v of %v", d.Date, d.Price, b.Total, id)
				}
			}
		}
	})
}

func sameHoliday(a, b *domain.HolidaySnapshot) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func drawRule(t *rapid.T, c availability.Catalogue, s domain.Service) domain.HolidayRule {
	from := rapid.SampledFrom([]string{"2026-12-30", "2027-02-28", "2028-02-29", "2024-02-29", "2026-12-28"}).Draw(t, "rule from")
	r := rule(from, from, rapid.Int64Range(5000, 20_000).Draw(t, "bps"))
	r.To = r.From.AddDays(rapid.IntRange(0, 5).Draw(t, "length"))
	r.Priority, r.Stackable, r.Active = rapid.IntRange(0, 2).Draw(t, "priority"), rapid.Bool().Draw(t, "stackable"), rapid.IntRange(0, 4).Draw(t, "off") > 0
	if rapid.Bool().Draw(t, "yearly") {
		r.Recurrence = domain.Yearly
	}
	switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
	case kind == 1:
		r.ServiceIDs = []domain.ServiceID{s.ID}
	case kind == 2 && len(c.Packages) > 0:
		r.PackageIDs = []domain.PackageID{rapid.SampledFrom(c.Packages).Draw(t, "of").ID}
	}
	return r
}

// bookDay books the package for a day, as a client does after reading the price.
func bookDay(p domain.Package, c availability.Catalogue, d civil.Date) (domain.Booking, error) {
	in := domain.BookingInput{EventDate: patch.Value(d.String()), PackageID: given(p.ID.String())}
	when, err := in.When(time.UTC)
	if err != nil {
		return domain.Booking{}, err
	}
	refs := domain.Refs{Package: &p, Rules: c.Rules}
	for i := range c.Services {
		if c.Services[i].ID == p.ServiceID {
			refs.Service = &c.Services[i]
		}
	}
	return domain.New(in, when, refs, domain.Policy{}, domain.Booking{Loc: time.UTC}, time.Time{})
}

func given(s string) patch.Field[string] { return patch.Value(s) }
