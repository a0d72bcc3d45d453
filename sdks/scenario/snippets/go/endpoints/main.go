// Command endpoints registers a webhook endpoint.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	holdfast "holdfast.dev/sdks/go"
)

func main() {
	ctx := context.Background()
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}

	// snippet register
	endpoint, err := client.WebhookEndpoints.Create(ctx, holdfast.WebhookEndpointCreate{
		URL: "https://app.example/hooks",
		EventTypes: []holdfast.EventTypeWrite{
			holdfast.EventTypeWriteBookingCreated, holdfast.EventTypeWritePaymentSucceeded,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(endpoint.Status)
	secret := endpoint.Secret // the only response with the secret
	// end

	if !strings.HasPrefix(secret, "whsec_") {
		log.Fatal("no secret")
	}
	if err := client.WebhookEndpoints.Delete(ctx, endpoint.ID); err != nil {
		log.Fatal(err)
	}
}
