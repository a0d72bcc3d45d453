// Command lists iterates over customers, and reads what has changed.
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
	since, err := time.Parse(time.RFC3339, os.Getenv("SINCE"))
	if err != nil {
		log.Fatal(err)
	}

	// snippet iterate
	n := 0
	for customer, err := range client.Customers.List(ctx, holdfast.CustomersListParams{Q: os.Getenv("RUN"), Limit: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		if customer.ID != "" {
			n++
		}
	}
	fmt.Println(n)
	// end

	// snippet sync
	var newest time.Time
	for customer, err := range client.Customers.List(ctx, holdfast.CustomersListParams{
		Sort: holdfast.SortOrderUpdatedAt, UpdatedAfter: since, Limit: 100,
	}) {
		if err != nil {
			log.Fatal(err)
		}
		newest = customer.UpdatedAt // store the customer, then continue here the next time
	}
	fmt.Println(newest.Year() >= 2026)
	// end
}
