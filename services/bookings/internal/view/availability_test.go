package view_test

import (
	"testing"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/view"
)

// BenchmarkAvailability measures the encoding of a response of 62 days, 20 units and eight slots a day (0.9 MB).
func BenchmarkAvailability(b *testing.B) {
	days := make([]availability.Day, 62)
	for d := range days {
		days[d].Status = availability.DayAvailable
		for range 20 {
			unit := availability.UnitDay{Unit: &domain.Unit{ID: ids.New[domain.UnitPrefix](), Name: "Boat"}, Status: availability.DayAvailable}
			for hour := range 8 {
				from := time.Date(2040, 1, 1+d, 9+hour, 0, 0, 0, time.UTC)
				unit.Slots = append(unit.Slots, availability.Slot{Span: domain.Span{From: from, To: from.Add(time.Hour)}, Status: availability.SlotAvailable})
			}
			days[d].Units = append(days[d].Units, unit)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.Encode(view.Availability(days, "America/New_York")); err != nil {
			b.Fatal(err)
		}
	}
}
