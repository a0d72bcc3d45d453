// Command quickstart creates a catalogue, books, pays the deposit and reads the event of the payment.
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

func main() { //nolint:gocognit,revive // one program from the first request to the event, as the guide shows it
	ctx := context.Background()

	// snippet connect
	client, err := holdfast.New() // reads HOLDFAST_BASE_URL and HOLDFAST_API_KEY
	if err != nil {
		log.Fatal(err)
	}
	tenant, err := client.Tenant.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tenant.Timezone)
	fmt.Println(tenant.Currency)
	// end

	// snippet catalogue
	service, err := client.Services.Create(ctx, holdfast.ServiceCreate{
		Name: "Kayak tour", DurationMinutes: holdfast.Set(120),
	})
	if err != nil {
		log.Fatal(err)
	}
	unit, err := client.Units.Create(ctx, holdfast.UnitCreate{
		Name: "Kayak 1", ServiceIDs: []string{service.ID},
		OpeningHours: holdfast.Set(holdfast.OpeningHoursWrite{"sat": {{"09:00", "17:00"}}}),
	})
	if err != nil {
		log.Fatal(err)
	}
	offer, err := client.Packages.Create(ctx, holdfast.PackageCreate{
		Name: "Two hours", ServiceID: service.ID, BasePrice: holdfast.Price{Amount: 8000, Currency: "USD"},
		DepositType: holdfast.Ptr(holdfast.DepositTypePercentage), DepositValue: holdfast.Ptr(int64(2500)),
	})
	if err != nil {
		log.Fatal(err)
	}
	// end

	// snippet availability
	days, err := client.Availability.List(ctx, holdfast.AvailabilityListParams{
		From: "2027-07-03", To: "2027-07-03", UnitID: unit.ID,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, slot := range days.Data[0].Units[0].Slots {
		fmt.Println(slot.StartsAt.Format(time.RFC3339), slot.Status)
	}
	// end

	// snippet book
	customer, err := client.Customers.Create(ctx, holdfast.CustomerCreate{
		FirstName: "Ada", LastName: holdfast.Set("Lovelace"), Email: holdfast.Set("ada@example.com"),
	})
	if err != nil {
		log.Fatal(err)
	}
	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		CustomerID: holdfast.Set(customer.ID), UnitID: holdfast.Set(unit.ID), PackageID: holdfast.Set(offer.ID),
		EventDate: holdfast.Ptr("2027-07-03"), EventStartTime: holdfast.Set("09:00"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(booking.Status)
	fmt.Println(booking.TotalAmount.Amount)
	fmt.Println(booking.DepositAmount.Amount)
	// end

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

	// snippet event
	for range 30 {
		events, err := client.Events.ListPage(ctx, holdfast.EventsListParams{
			Type: []holdfast.EventType{holdfast.EventTypePaymentSucceeded}, ObjectID: intent.ID,
		})
		if err != nil {
			log.Fatal(err)
		}
		if len(events.Data) > 0 {
			if event, ok := events.Data[0].(*holdfast.PaymentSucceededEvent); ok {
				fmt.Println(event.Type, event.Data.Object.Amount)
			}
			break
		}
		time.Sleep(time.Second)
	}
	// end

	// snippet paid
	for tries := 0; booking.PaymentStatus == holdfast.PaymentStatusUnpaid && tries < 30; tries++ {
		time.Sleep(time.Second)
		if booking, err = client.Bookings.Get(ctx, booking.ID, holdfast.BookingsGetParams{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(booking.PaymentStatus)
	// end
}
