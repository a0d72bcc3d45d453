// Command feeds creates a calendar feed of a unit, and deletes it.
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
	unitID := os.Getenv("UNIT_ID")

	// snippet create
	feed, err := client.CalendarFeeds.Create(ctx, holdfast.CalendarFeedCreate{
		Name: "Kayak", UnitID: holdfast.Set(unitID),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(feed.Name)
	fmt.Println(feed.URL)
	// end

	// snippet delete
	if err := client.CalendarFeeds.Delete(ctx, feed.ID); err != nil {
		log.Fatal(err)
	}
	// end
}
