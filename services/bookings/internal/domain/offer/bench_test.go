package offer_test

import (
	"testing"
	"time"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/offer"
)

// BenchmarkDays is the largest range of 20 units, each with openings of its own and a booking in most slots.
func BenchmarkDays(b *testing.B) {
	s := tour(new(60), buffers(0, 15))
	c := offer.Catalogue{Services: []domain.Service{s}}
	for n := range 20 {
		hours := week(b, `{"mon":[["09:00","17:00"]],"tue":[["09:00","17:00"]],"wed":[["09:00","17:00"]],"thu":[["09:00","17:00"]],"fri":[["22:00","02:00"]],"sat":[["09:00","17:00"]]}`)
		c.Units = append(c.Units, boat(hours, s))
		c.Packages = append(c.Packages, pack(s, int64(1000+n)))
	}
	c.Rules = []domain.HolidayRule{rule("2026-05-01", "2026-05-20", 12000), rule("2026-05-15", "2026-06-20", 11000)}
	q := offer.Query{Range: days("2026-05-01", "2026-07-01")}
	var claims []offer.Claim
	for n := range 20_000 {
		from := instant("2026-05-01T00:00:00Z").Add(time.Duration(n/20) * 75 * time.Minute)
		claims = append(claims, offer.Claim{Span: domain.Span{From: from, To: from.Add(75 * time.Minute)}, Unit: c.Units[n%20].ID, Status: domain.Confirmed})
	}
	op := offer.Operator{Loc: zone(b, "America/New_York"), Now: instant("2026-04-01T00:00:00Z")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := offer.Days(q, c, claims, op); err != nil {
			b.Fatal(err)
		}
	}
}
