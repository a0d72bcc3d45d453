// Command pricing creates a holiday rule, and shows the price of a booking.
package main

import (
	"context"
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
	serviceID, unitID, packageID := os.Getenv("SERVICE_ID"), os.Getenv("UNIT_ID"), os.Getenv("PACKAGE_ID")

	// snippet rule
	rule, err := client.HolidayRules.Create(ctx, holdfast.HolidayRuleCreate{
		Name: "Summer", DateFrom: "2027-07-01", DateTo: "2027-08-31", MultiplierBps: 12500,
		AppliesTo: &holdfast.AppliesTo{ServiceIDs: []string{serviceID}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rule.MultiplierBps)
	// end

	// snippet price
	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		UnitID: holdfast.Set(unitID), PackageID: holdfast.Set(packageID),
		EventDate: holdfast.Ptr("2027-07-03"), EventStartTime: holdfast.Set("09:00"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(booking.TotalAmount.Amount)
	fmt.Println(booking.DepositAmount.Amount)
	// end
}
