package domain

import (
	"time"

	"holdfast.dev/libs/apperr"
)

// The errors of webhooks.
var (
	ErrEndpointNotFound = apperr.New(apperr.NotFound, "webhook_endpoint_not_found", "Webhook endpoint not found.")
	ErrDeliveryNotFound = apperr.New(apperr.NotFound, "delivery_not_found", "Delivery not found.")
	ErrEventNotFound    = apperr.New(apperr.NotFound, "event_not_found", "Event not found.")
	ErrTransition       = apperr.New(apperr.Invalid, "invalid_status_transition", "The status does not allow this.").WithField("status")
	ErrStreams          = apperr.New(apperr.RateLimited, "rate_limited", "The tenant has too many streams open.").WithRetryAfter(5 * time.Second)
	ErrDisabled         = apperr.Field("endpoint_id", "The endpoint is disabled. Enable it first.")
)
