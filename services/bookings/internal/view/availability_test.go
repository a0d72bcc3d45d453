package view_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/domain/availability"
	"holdfast.dev/services/bookings/internal/view"
)

// generated returns the same response as view.Availability, as the type that is generated from the contract.
func generated(days []availability.Day, timezone string) api.AvailabilityList {
	list := api.AvailabilityList{Data: []api.AvailabilityDay{}, NextCursor: api.Null[string]()}
	for _, d := range days {
		day := api.AvailabilityDay{
			Object: api.AvailabilityDayObjectAvailabilityDay, Date: d.Date.String(), Timezone: timezone, Status: api.AvailabilityStatus(d.Status),
			PriceFrom: api.Null[api.Money](), Holiday: nullable.NewNullNullable[api.HolidaySnapshot](), Units: []api.AvailabilityUnit{},
		}
		if d.Price != nil {
			day.PriceFrom = nullable.NewNullableWithValue(api.Money{Amount: d.Price.Total.Minor, Currency: d.Price.Total.Currency})
		}
		for _, u := range d.Units {
			unit := api.AvailabilityUnit{UnitId: u.Unit.ID.String(), Name: u.Unit.Name, Status: api.AvailabilityStatus(u.Status), Slots: []api.AvailabilitySlot{}}
			for _, s := range u.Slots {
				slot := api.AvailabilitySlot{StartsAt: s.From.UTC(), EndsAt: s.To.UTC(), Status: api.AvailabilitySlotStatus(s.Status), Seats: api.Null[api.Seats]()}
				if s.Seats.Capacity > 0 {
					seats := api.Seats{Capacity: s.Seats.Capacity, Taken: s.Seats.Taken}
					if s.Status == availability.SlotAvailable {
						seats.Available = s.Seats.Capacity - s.Seats.Taken
					}
					slot.Seats = nullable.NewNullableWithValue(seats)
				}
				unit.Slots = append(unit.Slots, slot)
			}
			day.Units = append(day.Units, unit)
		}
		list.Data = append(list.Data, day)
	}
	return list
}

// TestAvailabilityIsAsGenerated compares random responses with the encoding of the generated type.
func TestAvailabilityIsAsGenerated(t *testing.T) {
	t.Parallel()
	for range 200 {
		units := make([]domain.Unit, rand.IntN(4))
		for i := range units {
			units[i] = domain.Unit{ID: ids.New[domain.UnitPrefix](), Name: []string{"Boat", `"Ada" \ <b>&`, "Köln\u2028\t", ""}[rand.IntN(4)]}
		}
		days := make([]availability.Day, rand.IntN(4))
		for d := range days {
			days[d] = availability.Day{Date: civil.Date{Year: 2030, Month: 1, Day: 1 + d}, Status: availability.DayLimited}
			if rand.IntN(2) == 0 {
				days[d].Price = &domain.Price{Total: money.Amount{Minor: rand.Int64N(1000), Currency: "EUR"}}
			}
			for i := range units {
				u := availability.UnitDay{Unit: &units[i], Status: []availability.DayStatus{availability.DayClosed, availability.DayAvailable}[rand.IntN(2)]}
				for n := range rand.IntN(4) {
					if shared := rand.IntN(2) == 0; shared && i > 0 && n < len(days[d].Units[i-1].Slots) { // units with the same opening hours
						u.Slots = append(u.Slots, days[d].Units[i-1].Slots[n])
						continue
					}
					from := time.Date(2030, 3, 30+d, rand.IntN(48), rand.IntN(60), 0, rand.IntN(2)*rand.IntN(1e9), time.FixedZone("", 3600*rand.IntN(12)))
					u.Slots = append(u.Slots, availability.Slot{
						Span:   domain.Span{From: from, To: from.Add(time.Hour)},
						Status: []availability.SlotStatus{availability.SlotAvailable, availability.SlotBooked}[rand.IntN(2)],
						Seats:  []availability.Seats{{}, {Capacity: 10, Taken: rand.IntN(11)}}[rand.IntN(2)],
					})
				}
				days[d].Units = append(days[d].Units, u)
			}
		}
		want, err := contract.Encode(generated(days, "Europe/Berlin"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := view.Availability(days, "Europe/Berlin")
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// BenchmarkAvailability measures the encoding of a response of 62 days, 20 units and eight slots a day (0.9 MB).
func BenchmarkAvailability(b *testing.B) {
	days, units := make([]availability.Day, 62), make([]domain.Unit, 20)
	for i := range units {
		units[i] = domain.Unit{ID: ids.New[domain.UnitPrefix](), Name: "Boat"}
	}
	for d := range days {
		days[d].Status = availability.DayAvailable
		for i := range units {
			unit := availability.UnitDay{Unit: &units[i], Status: availability.DayAvailable}
			for hour := range 8 {
				from := time.Date(2040, 1, 1+d, 9+hour, 0, 0, 0, time.UTC)
				unit.Slots = append(unit.Slots, availability.Slot{Span: domain.Span{From: from, To: from.Add(time.Hour)}, Status: availability.SlotAvailable})
			}
			days[d].Units = append(days[d].Units, unit)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := view.Availability(days, "America/New_York"); err != nil {
			b.Fatal(err)
		}
	}
}
