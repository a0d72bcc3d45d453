package availability_test

import (
	"testing"
	"time"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
)

// BenchmarkDays measures the largest range with 20 units, each with its own openings and a booking in most slots.
func BenchmarkDays(b *testing.B) { benchmarkDays(b, false) }

// BenchmarkSeats measures the same range with 20 shared units and a session in most slots.
func BenchmarkSeats(b *testing.B) { benchmarkDays(b, true) }

func benchmarkDays(b *testing.B, shared bool) {
	b.Helper()
	s := tour(new(60), buffers(0, 15))
	c := availability.Catalogue{Services: []domain.Service{s}}
	for n := range 20 {
		hours := week(b, `{"mon":[["09:00","17:00"]],"tue":[["09:00","17:00"]],"wed":[["09:00","17:00"]],"thu":[["09:00","17:00"]],"fri":[["22:00","02:00"]],"sat":[["09:00","17:00"]]}`)
		c.Units = append(c.Units, boat(hours, s))
		c.Packages = append(c.Packages, pack(s, int64(1000+n)))
	}
	c.Rules = []domain.HolidayRule{rule("2026-05-01", "2026-05-20", 12000), rule("2026-05-15", "2026-06-20", 11000)}
	q := availability.Query{Range: days("2026-05-01", "2026-07-01")}
	var claims []availability.Claim
	for n := range 20_000 {
		from := instant("2026-05-01T00:00:00Z").Add(time.Duration(n/20) * 75 * time.Minute)
		claims = append(claims, availability.Claim{Span: domain.Span{From: from, To: from.Add(75 * time.Minute)}, Unit: c.Units[n%20].ID, Status: domain.Confirmed})
	}
	op := availability.Operator{Loc: zone(b, "America/New_York"), Now: instant("2026-04-01T00:00:00Z")}
	if shared {
		claims = sessions(b, q, c, op)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := allDays(q, c, claims, op); err != nil {
			b.Fatal(err)
		}
	}
}

// sessions makes the units shared and returns a session for each slot, half full.
func sessions(b *testing.B, q availability.Query, c availability.Catalogue, op availability.Operator) (claims []availability.Claim) {
	b.Helper()
	for i := range c.Units {
		c.Units[i].BookingMode, c.Units[i].Capacity = domain.SeatsMode, new(10)
	}
	for _, d := range mustDays(b, q, c, nil, op) {
		for _, u := range d.Units {
			for _, s := range u.Slots {
				claims = append(claims, availability.Claim{Span: s.Span, Unit: u.Unit.ID, Session: &availability.Session{Slot: s.Span, Capacity: 10, Taken: 5, Held: 2}})
			}
		}
	}
	return claims
}

// BenchmarkClosures measures the largest range with 20 units and as many closures as can be ahead, half of them of one unit.
func BenchmarkClosures(b *testing.B) {
	s := tour(new(60), buffers(0, 15))
	hours := week(b, `{"mon":[["09:00","17:00"]],"tue":[["09:00","17:00"]],"wed":[["09:00","17:00"]],"thu":[["09:00","17:00"]],"fri":[["09:00","17:00"]]}`)
	for name, n := range map[string]int{"none": 0, "1000": 1000} {
		b.Run(name, func(b *testing.B) {
			c := availability.Catalogue{Services: []domain.Service{s}}
			for range 20 {
				c.Units = append(c.Units, boat(hours, s))
			}
			for i := range n {
				from := instant("2026-05-01T00:00:00Z").Add(time.Duration(i) * 90 * time.Minute)
				k := availability.Closure{Span: domain.Span{From: from, To: from.Add(30 * time.Minute)}}
				if i%2 == 0 {
					k.Units = []domain.UnitID{c.Units[i%20].ID}
				}
				c.Closures = append(c.Closures, k)
			}
			op := availability.Operator{Loc: zone(b, "America/New_York"), Now: instant("2026-04-01T00:00:00Z")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := allDays(availability.Query{Range: days("2026-05-01", "2026-07-01")}, c, nil, op); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPrices measures the largest catalogue that the caps allow: 500 packages and 200 stackable rules, over 62 days and 300
// units. Each day has a different set of rules. In "many sets", each package also has its own rules.
func BenchmarkPrices(b *testing.B) {
	for name, own := range map[string]int{"one set a day": 0, "many sets": 12} {
		b.Run(name, func(b *testing.B) {
			c := largest(own)
			q := availability.Query{Range: days("2026-05-01", "2026-07-01")}
			op := availability.Operator{Loc: zone(b, "America/New_York"), Now: instant("2026-04-01T00:00:00Z")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := allDays(q, c, nil, op); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// largest returns a catalogue at its caps. own is the number of rules that apply to only some of the packages.
func largest(own int) availability.Catalogue {
	const packages, rules, units = 500, 200, 300
	s := tour(nil)
	c := availability.Catalogue{Services: []domain.Service{s}}
	for range units {
		c.Units = append(c.Units, boat(nil))
	}
	for n := range packages {
		c.Packages = append(c.Packages, pack(s, int64(100_000+n)))
	}
	first := date("2026-05-01")
	for n := range rules {
		factor := []int64{20_001, 4_999}[n%2] // their product stays near one
		r := rule(first.String(), first.AddDays(61-n%62).String(), factor, func(r *domain.HolidayRule) { r.Stackable = true })
		if n < own {
			for k := range 100 {
				r.PackageIDs = append(r.PackageIDs, c.Packages[(k*(2*n+1)+7*n)%packages].ID)
			}
		}
		c.Rules = append(c.Rules, r)
	}
	return c
}
