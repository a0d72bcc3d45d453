// Command closures closes a unit for some days, and extends the closure.
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

	// snippet days
	closure, err := client.Closures.Create(ctx, holdfast.ClosureCreate{
		Name: "Winter break", UnitIDs: holdfast.Set([]string{unitID}),
		DateFrom: holdfast.Set("2027-12-24"), DateTo: holdfast.Set("2028-01-01"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(closure.StartsAt.Format(time.RFC3339))
	fmt.Println(closure.EndsAt.Format(time.RFC3339))
	// end

	// snippet change
	closure, err = client.Closures.Update(ctx, closure.ID, holdfast.ClosureUpdate{DateTo: holdfast.Set("2028-01-03")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(closure.EndsAt.Format(time.RFC3339))
	// end
}
