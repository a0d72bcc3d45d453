// Command retries repeats a request, and updates a booking only if it is unchanged.
package main

import (
	"context"
	"crypto/rand"
	"errors"
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
	order := "order-" + rand.Text()

	// snippet key
	var booking *holdfast.Booking
	for range 2 {
		var response holdfast.Response
		booking, err = client.Bookings.Create(ctx,
			holdfast.BookingCreate{EventDate: holdfast.Ptr("2027-07-03")},
			holdfast.WithIdempotencyKey(order), holdfast.WithResponse(&response))
		if err != nil {
			log.Fatal(err)
		}
		if response.Replayed {
			fmt.Println(1)
		} else {
			fmt.Println(0)
		}
	}
	// end

	// snippet version
	updated, err := client.Bookings.Update(ctx, booking.ID,
		holdfast.BookingUpdate{GuestCount: holdfast.Set(2)}, holdfast.WithIfMatch(booking.Version))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(updated.Version)
	_, err = client.Bookings.Update(ctx, booking.ID,
		holdfast.BookingUpdate{GuestCount: holdfast.Set(3)}, holdfast.WithIfMatch(booking.Version))
	if errors.Is(err, holdfast.ErrVersionMismatch) {
		fmt.Println("version_mismatch")
	}
	// end
}
