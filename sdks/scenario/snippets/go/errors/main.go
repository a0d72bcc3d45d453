// Command errors books the same time twice, and sends an invalid field.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	holdfast "holdfast.dev/sdks/go"
)

func main() {
	ctx := context.Background()
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}
	unitID := os.Getenv("UNIT_ID")

	// snippet handle
	for range 2 {
		booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
			UnitID: holdfast.Set(unitID), EventDate: holdfast.Ptr("2027-07-03"),
			EventStartTime: holdfast.Set("09:00"), EventEndTime: holdfast.Set("11:00"),
		})
		switch {
		case errors.Is(err, holdfast.ErrSlotUnavailable):
			fmt.Println("slot_unavailable") // offer another time
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(booking.Status)
		}
	}
	// end

	// snippet fields
	_, err = client.Customers.Create(ctx, holdfast.CustomerCreate{FirstName: "Ada", Email: holdfast.Set("ada")})
	var failed *holdfast.Error
	if !errors.As(err, &failed) {
		log.Fatal(err)
	}
	fmt.Println(failed.Code)
	fmt.Println(failed.Param)
	// end
}
