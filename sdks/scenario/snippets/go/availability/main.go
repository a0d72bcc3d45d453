// Command availability shows days, and why a time cannot be booked.
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
	serviceID, unitID := os.Getenv("SERVICE_ID"), os.Getenv("UNIT_ID")

	// snippet days
	days, err := client.Availability.List(ctx, holdfast.AvailabilityListParams{
		From: "2027-07-03", To: "2027-07-04", ServiceID: serviceID,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, day := range days.Data {
		fmt.Println(day.Date, day.Status, day.PriceFrom.Amount)
	}
	// end

	// snippet explain
	explanation, err := client.Availability.Explain(ctx, holdfast.AvailabilityExplainParams{
		UnitID: unitID, StartsAt: "2027-07-04T09:00:00-04:00",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(explanation.Available)
	fmt.Println(*explanation.Reason)
	// end
}
