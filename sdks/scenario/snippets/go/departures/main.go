// Command departures sets up a tour with seats, books two of them, and shows what is left.
package main

import (
	"context"
	"fmt"
	"log"

	holdfast "holdfast.dev/sdks/go"
)

func main() {
	ctx := context.Background()
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}

	// snippet tour
	service, err := client.Services.Create(ctx, holdfast.ServiceCreate{Name: "Seal tour", DurationMinutes: holdfast.Set(90)})
	if err != nil {
		log.Fatal(err)
	}
	weekend := holdfast.Openings{{"10:00", "16:00"}}
	unit, err := client.Units.Create(ctx, holdfast.UnitCreate{
		Name: "Puffin", BookingMode: holdfast.Ptr(holdfast.BookingModeSeats), Capacity: holdfast.Set(10), ServiceIDs: []string{service.ID},
		OpeningHours: holdfast.Set(holdfast.OpeningHoursWrite{"sat": weekend, "sun": weekend}),
	})
	if err != nil {
		log.Fatal(err)
	}
	seat, err := client.Packages.Create(ctx, holdfast.PackageCreate{
		Name: "Seat", ServiceID: service.ID, Pricing: holdfast.Ptr(holdfast.PricingPerGuest),
		BasePrice: holdfast.Price{Amount: 4500, Currency: "USD"},
	})
	if err != nil {
		log.Fatal(err)
	}
	// end

	// snippet book
	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		UnitID: holdfast.Set(unit.ID), PackageID: holdfast.Set(seat.ID), EventDate: holdfast.Ptr("2027-07-03"),
		EventStartTime: holdfast.Set("10:00"), GuestCount: holdfast.Set(2),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(booking.Status)
	fmt.Println(booking.TotalAmount.Amount)
	// end

	// snippet seats
	explanation, err := client.Availability.Explain(ctx, holdfast.AvailabilityExplainParams{
		UnitID: unit.ID, StartsAt: "2027-07-03T10:00:00-04:00",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(explanation.Available)
	fmt.Println(explanation.Seats.Capacity)
	fmt.Println(explanation.Seats.Taken)
	fmt.Println(explanation.Seats.Available)
	// end
}
