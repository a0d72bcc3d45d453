// Command payments pays the deposit of a booking by card, and refunds a part of it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
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
	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		UnitID: holdfast.Set(os.Getenv("UNIT_ID")), PackageID: holdfast.Set(os.Getenv("PACKAGE_ID")),
		EventDate: holdfast.Ptr("2027-07-03"), EventStartTime: holdfast.Set("09:00"),
	})
	if err != nil {
		log.Fatal(err)
	}

	// snippet intent
	intent, err := client.PaymentIntents.Create(ctx, holdfast.PaymentIntentCreate{
		BookingID: booking.ID, AmountMinor: holdfast.Set(booking.DepositAmount.Amount),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(intent.Status)
	// end

	// snippet confirm
	response, err := http.PostForm(os.Getenv("STRIPE_URL")+"/v1/payment_intents/"+intent.ID+"/confirm", url.Values{
		"key": {os.Getenv("STRIPE_PUBLISHABLE_KEY")}, "client_secret": {*intent.ClientSecret}, "payment_method": {"pm_card_visa"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var confirmed struct{ Status string }
	if err := json.NewDecoder(response.Body).Decode(&confirmed); err != nil {
		log.Fatal(err)
	}
	fmt.Println(confirmed.Status)
	// end

	// snippet wait
	for intent.Status != holdfast.PaymentIntentStatusSucceeded {
		time.Sleep(time.Second)
		if intent, err = client.PaymentIntents.Get(ctx, intent.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(intent.Status)
	// end

	// snippet refund
	refund, err := client.Refunds.Create(ctx, holdfast.RefundCreate{
		PaymentIntentID: holdfast.Set(intent.ID), AmountMinor: holdfast.Set(int64(500)),
		Reason: holdfast.RefundReasonRequestedByCustomer,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(refund.Amount)
	// end

	// snippet cash
	handedBack, err := client.Refunds.Create(ctx, holdfast.RefundCreate{
		BookingID: holdfast.Set(booking.ID), AmountMinor: holdfast.Set(int64(300)),
		Method: holdfast.Ptr(holdfast.RefundMethodCash), Reference: holdfast.Set("receipt-7"),
		Reason: holdfast.RefundReasonRequestedByCustomer,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(handedBack.Method, *handedBack.Reference)
	// end
}
