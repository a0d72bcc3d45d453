// Command events follows the stream of events, and stops after the first one.
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
	newest, err := client.Events.ListPage(ctx, holdfast.EventsListParams{Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	last := newest.Data[0].EventID()
	if _, err := client.Customers.Create(ctx, holdfast.CustomerCreate{FirstName: "Ada", Email: holdfast.Set("ada@example.com")}); err != nil {
		log.Fatal(err)
	}

	// snippet stream
	for event, err := range client.Events.Stream(ctx, holdfast.EventsStreamParams{
		Type: []holdfast.EventType{holdfast.EventTypeCustomerCreated}, LastEventID: last,
	}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.EventType())
		break // your program continues
	}
	// end
}
