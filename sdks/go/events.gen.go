// Code generated from the contract by make gen. DO NOT EDIT.

package holdfast

import (
	"time"
)

// newEvent returns an empty event of a type, or nil if the type is not known.
func newEvent(eventType string) Event {
	switch eventType {
	case "booking.created":
		return &BookingCreatedEvent{}
	case "booking.updated":
		return &BookingUpdatedEvent{}
	case "booking.cancelled":
		return &BookingCancelledEvent{}
	case "customer.created":
		return &CustomerCreatedEvent{}
	case "customer.updated":
		return &CustomerUpdatedEvent{}
	case "lead.created":
		return &LeadCreatedEvent{}
	case "lead.updated":
		return &LeadUpdatedEvent{}
	case "quote.created":
		return &QuoteCreatedEvent{}
	case "quote.accepted":
		return &QuoteAcceptedEvent{}
	case "invoice.created":
		return &InvoiceCreatedEvent{}
	case "invoice.paid":
		return &InvoicePaidEvent{}
	case "payment.succeeded":
		return &PaymentSucceededEvent{}
	case "payment.failed":
		return &PaymentFailedEvent{}
	}
	return nil
}

// EventID returns the ID of the event.
func (e *BookingCreatedEvent) EventID() string { return e.ID }

// EventType returns booking.created.
func (e *BookingCreatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *BookingCreatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *BookingUpdatedEvent) EventID() string { return e.ID }

// EventType returns booking.updated.
func (e *BookingUpdatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *BookingUpdatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *BookingCancelledEvent) EventID() string { return e.ID }

// EventType returns booking.cancelled.
func (e *BookingCancelledEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *BookingCancelledEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *CustomerCreatedEvent) EventID() string { return e.ID }

// EventType returns customer.created.
func (e *CustomerCreatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *CustomerCreatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *CustomerUpdatedEvent) EventID() string { return e.ID }

// EventType returns customer.updated.
func (e *CustomerUpdatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *CustomerUpdatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *LeadCreatedEvent) EventID() string { return e.ID }

// EventType returns lead.created.
func (e *LeadCreatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *LeadCreatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *LeadUpdatedEvent) EventID() string { return e.ID }

// EventType returns lead.updated.
func (e *LeadUpdatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *LeadUpdatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *QuoteCreatedEvent) EventID() string { return e.ID }

// EventType returns quote.created.
func (e *QuoteCreatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *QuoteCreatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *QuoteAcceptedEvent) EventID() string { return e.ID }

// EventType returns quote.accepted.
func (e *QuoteAcceptedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *QuoteAcceptedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *InvoiceCreatedEvent) EventID() string { return e.ID }

// EventType returns invoice.created.
func (e *InvoiceCreatedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *InvoiceCreatedEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *InvoicePaidEvent) EventID() string { return e.ID }

// EventType returns invoice.paid.
func (e *InvoicePaidEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *InvoicePaidEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *PaymentSucceededEvent) EventID() string { return e.ID }

// EventType returns payment.succeeded.
func (e *PaymentSucceededEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *PaymentSucceededEvent) EventTime() time.Time { return e.CreatedAt }

// EventID returns the ID of the event.
func (e *PaymentFailedEvent) EventID() string { return e.ID }

// EventType returns payment.failed.
func (e *PaymentFailedEvent) EventType() string { return e.Type }

// EventTime returns the time of the change.
func (e *PaymentFailedEvent) EventTime() time.Time { return e.CreatedAt }
