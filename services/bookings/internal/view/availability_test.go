package view_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/offer"
	"holdfast.dev/services/bookings/internal/view"
)

// BenchmarkAvailability writes an answer of 62 days, 20 units and eight slots a day (0.9 MB).
func BenchmarkAvailability(b *testing.B) {
	days := make([]offer.Day, 62)
	for d := range days {
		days[d].Status = offer.DayAvailable
		for range 20 {
			unit := offer.UnitDay{Unit: &domain.Unit{ID: ids.New[domain.UnitPrefix](), Name: "Boat"}, Status: offer.DayAvailable}
			for hour := range 8 {
				from := time.Date(2040, 1, 1+d, 9+hour, 0, 0, 0, time.UTC)
				unit.Slots = append(unit.Slots, offer.Slot{Span: domain.Span{From: from, To: from.Add(time.Hour)}, Status: offer.SlotAvailable})
			}
			days[d].Units = append(days[d].Units, unit)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := httpx.Encode(view.Availability(days, "America/New_York")); err != nil {
			b.Fatal(err)
		}
	}
}
