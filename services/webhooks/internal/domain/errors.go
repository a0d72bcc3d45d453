package domain

import "holdfast.dev/libs/apperr"

// The errors of webhooks.
var (
	ErrEndpointNotFound = apperr.New(apperr.NotFound, "webhook_endpoint_not_found", "Webhook endpoint not found.")
	ErrDeliveryNotFound = apperr.New(apperr.NotFound, "delivery_not_found", "Delivery not found.")
	ErrEventNotFound    = apperr.New(apperr.NotFound, "event_not_found", "Event not found.")
	ErrTransition       = apperr.New(apperr.Invalid, "invalid_status_transition", "The status does not allow this.").On("status")
	ErrTooMany          = apperr.Field("url", "There are %d webhook endpoints already, which is the most; delete one first.", MaxEndpoints)
)
