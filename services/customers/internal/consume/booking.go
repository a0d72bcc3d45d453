package consume

import (
	"encoding/json"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/kafkax"
	"holdfast.dev/libs/money"
	eventsv1 "holdfast.dev/proto/events/v1"

	"holdfast.dev/services/customers/internal/domain"
)

// amount is an amount of a public body.
type amount struct {
	Minor    int64  `json:"amount"`
	Currency string `json:"currency"`
}

// booking reads the state of a booking from an event, whose object is the GET body.
func booking(e *eventsv1.Event) (domain.Booking, error) {
	id, err := ids.Parse[ids.BookingPrefix](e.GetObjectId())
	if err != nil {
		return domain.Booking{}, kafkax.Poison(fmt.Errorf("booking id %q: %w", e.GetObjectId(), err))
	}
	var body struct {
		Status     string            `json:"status"`
		Number     string            `json:"number"`
		CustomerID domain.CustomerID `json:"customer_id"` // null: none
		ServiceID  domain.ServiceID  `json:"service_id"`  // null: none
		Gross      amount            `json:"gross_amount"`
	}
	if err := json.Unmarshal(e.GetObject(), &body); err != nil {
		return domain.Booking{}, kafkax.Poison(fmt.Errorf("booking body: %w", err))
	}
	if body.Status == "" || body.Gross.Currency == "" {
		return domain.Booking{}, kafkax.Poison(fmt.Errorf("booking body of %s has no status or no total", id))
	}
	return domain.Booking{
		ID: id, Number: body.Number, CustomerID: body.CustomerID, ServiceID: body.ServiceID, Status: body.Status, Version: e.GetResourceVersion(),
		Total: money.Amount(body.Gross),
	}, nil
}
