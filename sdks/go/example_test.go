package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// The variables that the examples of the README share.
var (
	ctx    = context.Background()
	client *holdfast.Client
)

func Example_create() {
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}
	customer, err := client.Customers.Create(ctx, holdfast.CustomerCreate{
		FirstName: "Ada",
		Email:     holdfast.Set("ada@example.com"),
	})
	if err != nil {
		log.Fatal(err)
	}
	booking, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		EventDate:  holdfast.Ptr("2030-06-01"),
		CustomerID: holdfast.Set(customer.ID),
		UnitID:     holdfast.Set("un_01k00000000000000000000001"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(booking.Number, booking.Status)
	// Output:
	// B-000001 pending
}

func Example_errors() {
	_, err := client.Bookings.Create(ctx, holdfast.BookingCreate{
		EventDate: holdfast.Ptr("2030-06-02"),
		UnitID:    holdfast.Set("un_01k00000000000000000000001"),
	})
	var failed *holdfast.Error
	switch {
	case errors.Is(err, holdfast.ErrSlotUnavailable):
		days, err := client.Availability.List(ctx, holdfast.AvailabilityListParams{
			From: "2030-06-02", To: "2030-06-09", UnitID: "un_01k00000000000000000000001",
		})
		if err != nil {
			log.Fatal(err)
		}
		for _, day := range days.Data {
			fmt.Println(day.Date, day.Status)
		}
	case errors.As(err, &failed):
		log.Fatal(failed.Code, failed.Errors, failed.RequestID)
	case err != nil:
		log.Fatal(err)
	}
	// Output:
	// 2030-06-02 sold_out
	// 2030-06-03 available
}

func Example_idempotency() {
	for range 2 {
		var response holdfast.Response
		booking, err := client.Bookings.Create(ctx,
			holdfast.BookingCreate{EventDate: holdfast.Ptr("2030-06-03")},
			holdfast.WithIdempotencyKey("order-4711"),
			holdfast.WithResponse(&response),
		)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(booking.ID, response.Status, response.Replayed)
	}
	// Output:
	// bk_3 201 false
	// bk_3 201 true
}

func Example_list() {
	bookings := client.Bookings.List(ctx, holdfast.BookingsListParams{
		Status: []holdfast.BookingFilterStatus{holdfast.BookingFilterStatusPending, holdfast.BookingFilterStatusConfirmed},
		Expand: []holdfast.ExpandableResource{holdfast.ExpandableResourceCustomer},
	})
	for booking, err := range bookings {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(booking.Number, booking.Customer.Name)
	}
	// Output:
	// B-000003 Ada Lovelace
	// B-000002 Ada Lovelace
	// B-000001 Ada Lovelace
}

func Example_update() {
	booking, err := client.Bookings.Get(ctx, "bk_01k00000000000000000000001", holdfast.BookingsGetParams{})
	if err != nil {
		log.Fatal(err)
	}
	booking, err = client.Bookings.Update(ctx, booking.ID, holdfast.BookingUpdate{
		GuestCount: holdfast.Set(4),
		Notes:      holdfast.Null[string](),
	}, holdfast.WithIfMatch(booking.Version))
	if errors.Is(err, holdfast.ErrVersionMismatch) {
		log.Fatal("someone else has changed the booking")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*booking.GuestCount, booking.Notes == nil)
	// Output:
	// 4 true
}

func Example_settings() {
	patient, err := holdfast.New(holdfast.WithDefaults(
		holdfast.WithMaxRetries(5),
		holdfast.WithAttemptTimeout(10*time.Second),
		holdfast.WithTimeout(5*time.Minute),
	))
	if err != nil {
		log.Fatal(err)
	}
	me, err := patient.Me.Get(ctx, holdfast.WithMaxRetries(0))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(me.Mode)
	// Output:
	// test
}

func Example_document() {
	document, err := client.Invoices.GetPDF(ctx, "inv_01k00000000000000000000001")
	if err != nil {
		log.Fatal(err)
	}
	defer document.Close()
	n, err := io.Copy(io.Discard, document)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(document.ContentType, n, "bytes")
	// Output:
	// application/pdf 4 bytes
}

func Example_stream() {
	events := client.Events.Stream(ctx, holdfast.EventsStreamParams{
		Type: []holdfast.EventType{holdfast.EventTypeBookingCreated, holdfast.EventTypeBookingCancelled},
	})
	for event, err := range events {
		if err != nil {
			log.Fatal(err)
		}
		switch e := event.(type) {
		case *holdfast.BookingCreatedEvent:
			fmt.Println("created", e.Data.Object.Number)
		case *holdfast.BookingCancelledEvent:
			fmt.Println("cancelled", e.Data.Object.Number)
			return
		}
	}
	// Output:
	// created B-000002
	// cancelled B-000001
}

func Example_webhook() {
	http.HandleFunc("POST /hooks", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		event, err := holdfast.Unwrap(body, r.Header, os.Getenv("WEBHOOK_SECRET"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if e, ok := event.(*holdfast.CustomerUpdatedEvent); ok {
			fmt.Println(e.EventID(), e.Data.Object.Name)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	deliver()
	// Output:
	// evt_01m802zyvve7d8rbwcpw77hzzk Grace Hopper
	// 204
}

func Example_oauth() {
	source := holdfast.NewOAuth(holdfast.OAuthConfig{
		TokenURL: os.Getenv("HOLDFAST_TOKEN_URL"),
		ClientID: "app_01k00000000000000000000001",
		Token:    holdfast.Token{RefreshToken: "the stored refresh token"},
		Store: func(_ context.Context, token holdfast.Token) error {
			fmt.Println("store", token.RefreshToken)
			return nil
		},
	})
	app, err := holdfast.New(holdfast.WithTokenSource(source))
	if err != nil {
		log.Fatal(err)
	}
	me, err := app.Me.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(me.Type)
	// Output:
	// store rt_2
	// oauth
}
