// Command testclock lets a hold expire.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

func main() {
	ctx := context.Background()
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}
	unitID := os.Getenv("UNIT_ID")

	// snippet freeze
	clock, err := client.TestClock.Set(ctx, holdfast.TestClockSet{Now: "2027-06-01T12:00:00Z"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(clock.Frozen)
	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		UnitID: holdfast.Set(unitID), EventDate: holdfast.Ptr("2027-07-03"),
		EventStartTime: holdfast.Set("09:00"), EventEndTime: holdfast.Set("11:00"), HoldMinutes: holdfast.Set(30),
	})
	if err != nil {
		log.Fatal(err)
	}
	// end

	// snippet advance
	clock, err = client.TestClock.Set(ctx, holdfast.TestClockSet{Now: "2027-06-01T12:31:00Z"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(clock.Frozen)
	for booking.Status != holdfast.BookingStatusExpired {
		time.Sleep(200 * time.Millisecond)
		if booking, err = client.Bookings.Get(ctx, booking.ID, holdfast.BookingsGetParams{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(booking.Status)
	// end

	// snippet unfreeze
	if err := client.TestClock.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	// end
}
