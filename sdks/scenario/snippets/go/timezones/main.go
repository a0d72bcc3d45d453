// Command timezones books with a local time, and with a point in time.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

func main() {
	ctx := context.Background()
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}

	// snippet book
	local, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		EventDate: holdfast.Ptr("2027-07-03"), EventStartTime: holdfast.Set("09:00"), EventEndTime: holdfast.Set("11:00"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(local.StartsAt.Format(time.RFC3339))
	fmt.Println(local.EndsAt.Format(time.RFC3339))
	absolute, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		StartsAt: holdfast.Set("2027-07-03T09:00:00-04:00"), EndsAt: holdfast.Set("2027-07-03T11:00:00-04:00"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*absolute.EventStartTime)
	fmt.Println(*absolute.EventEndTime)
	// end
}
