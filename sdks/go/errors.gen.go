// Code generated from the contract by make gen. DO NOT EDIT.

package holdfast

// The codes of the errors that the API returns.
const (
	// ErrInvalidCursor (400): The cursor was modified, or it belongs to a different list, sort order, filter, tenant or
	// mode. Send next_cursor exactly as you received it, with the same filters, or start again without a cursor.
	ErrInvalidCursor ErrorCode = "invalid_cursor"

	// ErrMalformedJSON (400): The body is not a single JSON object in UTF-8. Send one JSON object. Create it with a JSON
	// library, not by concatenating strings.
	ErrMalformedJSON ErrorCode = "malformed_json"

	// ErrMalformedRequest (400): The request target is not a valid URI reference. For example, it contains a raw #.
	// Percent-encode the parts of the path and query.
	ErrMalformedRequest ErrorCode = "malformed_request"

	// ErrMissingContentType (400): The request has a body, but its Content-Type is missing or is not JSON. Send the body as
	// JSON with the header Content-Type: application/json.
	ErrMissingContentType ErrorCode = "missing_content_type"

	// ErrQueryAPIKeyUnsupported (400): The query contains api_key. Keys in URLs are not accepted, because URLs are often
	// logged. Send the key as Authorization: Bearer <key>, and revoke the key that you sent: it can be in logs.
	ErrQueryAPIKeyUnsupported ErrorCode = "query_api_key_unsupported"

	// ErrExpiredCredential (401): The OAuth access token or the API key has expired. Access tokens are valid for one hour.
	// API keys expire only if this was set for them. Exchange the refresh token for a new access token. If an API key has
	// expired, create another one.
	ErrExpiredCredential ErrorCode = "expired_credential"

	// ErrInvalidCredential (401): The credential is malformed or unknown. Compare the key with the one that was shown when
	// you created it. If you lost it, create a new one.
	ErrInvalidCredential ErrorCode = "invalid_credential"

	// ErrMissingCredential (401): The request has no Authorization header, or the header does not have the form Bearer
	// <credential>. Send Authorization: Bearer <credential>.
	ErrMissingCredential ErrorCode = "missing_credential"

	// ErrRevokedCredential (401): The API key was revoked or has expired after its rotation, or the OAuth grant was
	// revoked. Use another key, or ask the operator for consent again. You cannot restore a revoked credential.
	ErrRevokedCredential ErrorCode = "revoked_credential"

	// ErrInsufficientScope (403): The credential lacks a scope that the operation requires. The message and the
	// WWW-Authenticate header name it. Use a credential that has the scope. The X-Service-Scope header lists the scopes of
	// the credential that you sent.
	ErrInsufficientScope ErrorCode = "insufficient_scope"

	// ErrModeMismatch (403): The resource belongs to your tenant but to the other mode: you used a test key for live data
	// or a live key for test data. You also get this error if you use the test clock in live mode. Use a key of the other
	// mode.
	ErrModeMismatch ErrorCode = "mode_mismatch"

	// ErrTenantSuspended (403): The platform has suspended the tenant, or is closing it. A suspension applies to all
	// credentials, to calendar feeds and to the console. During a closure only writes are rejected: data can be read and
	// exported until the date in the message. Webhooks wait. Ask the platform. An operator can read the reason in the
	// console. After the resumption the same credentials work again. If the account is closing, export the data in time.
	ErrTenantSuspended ErrorCode = "tenant_suspended"

	// ErrBookingNotFound (404): The tenant has no booking with this ID. Check the ID. The response is the same if the
	// booking belongs to another tenant.
	ErrBookingNotFound ErrorCode = "booking_not_found"

	// ErrCalendarFeedNotFound (404): The tenant has no calendar feed with this ID, or no feed has the token in the URL.
	// Check the ID or the URL. The feed may have been deleted.
	ErrCalendarFeedNotFound ErrorCode = "calendar_feed_not_found"

	// ErrClosureNotFound (404): The tenant has no closure with this ID. Check the ID. The closure may have been deleted.
	// The response is the same if it belongs to another tenant.
	ErrClosureNotFound ErrorCode = "closure_not_found"

	// ErrCreditNoteNotFound (404): The tenant has no credit note with this ID. Check the ID. The response is the same if
	// the credit note belongs to another tenant.
	ErrCreditNoteNotFound ErrorCode = "credit_note_not_found"

	// ErrCustomerNotFound (404): The tenant has no customer with this ID. Check the ID. The response is the same if the
	// customer belongs to another tenant.
	ErrCustomerNotFound ErrorCode = "customer_not_found"

	// ErrDeliveryNotFound (404): The webhook endpoint has no delivery with this ID. Check both IDs. Deliveries are stored
	// for a limited time.
	ErrDeliveryNotFound ErrorCode = "delivery_not_found"

	// ErrEventNotFound (404): The tenant has no event with this ID. Check the ID. Events are stored for 30 days. Sample
	// events are not included.
	ErrEventNotFound ErrorCode = "event_not_found"

	// ErrHolidayRuleNotFound (404): The tenant has no holiday rule with this ID. Check the ID. The response is the same if
	// the rule belongs to another tenant.
	ErrHolidayRuleNotFound ErrorCode = "holiday_rule_not_found"

	// ErrInvoiceNotFound (404): The tenant has no invoice with this ID. Check the ID. The response is the same if the
	// invoice belongs to another tenant.
	ErrInvoiceNotFound ErrorCode = "invoice_not_found"

	// ErrInvoicePaymentNotFound (404): The invoice has no payment with this ID. Check both IDs. The invoice lists its
	// payments.
	ErrInvoicePaymentNotFound ErrorCode = "invoice_payment_not_found"

	// ErrLeadNotFound (404): The tenant has no lead with this ID. Check the ID. The response is the same if the lead
	// belongs to another tenant.
	ErrLeadNotFound ErrorCode = "lead_not_found"

	// ErrPackageNotFound (404): The tenant has no package with this ID. Check the ID. The response is the same if the
	// package belongs to another tenant.
	ErrPackageNotFound ErrorCode = "package_not_found"

	// ErrPaymentIntentNotFound (404): The tenant has no payment intent with this ID. Check the ID, which comes from the
	// payment gateway (pi_…). The response is the same if the intent belongs to another tenant.
	ErrPaymentIntentNotFound ErrorCode = "payment_intent_not_found"

	// ErrQuoteNotFound (404): The tenant has no quote with this ID. Check the ID. The response is the same if the quote
	// belongs to another tenant.
	ErrQuoteNotFound ErrorCode = "quote_not_found"

	// ErrRefundNotFound (404): The tenant has no refund with this ID. Check the ID. The response is the same if the refund
	// belongs to another tenant.
	ErrRefundNotFound ErrorCode = "refund_not_found"

	// ErrRequestLogNotFound (404): The tenant has no request log with this ID. Check the ID, and try again after some
	// seconds. Requests are stored for 7 days, and most successful reads are not logged.
	ErrRequestLogNotFound ErrorCode = "request_log_not_found"

	// ErrServiceNotFound (404): The tenant has no service with this ID. Check the ID. The response is the same if the
	// service belongs to another tenant.
	ErrServiceNotFound ErrorCode = "service_not_found"

	// ErrUnitNotFound (404): The tenant has no unit with this ID. Check the ID. The response is the same if the unit
	// belongs to another tenant.
	ErrUnitNotFound ErrorCode = "unit_not_found"

	// ErrWebhookEndpointNotFound (404): The tenant has no webhook endpoint with this ID. Check the ID. The endpoint may
	// have been deleted.
	ErrWebhookEndpointNotFound ErrorCode = "webhook_endpoint_not_found"

	// ErrGatewayNotConfigured (409): The operator has not connected a payment gateway account in this mode. Connect the
	// operator's account. The payments field of GET /tenant shows whether one is connected.
	ErrGatewayNotConfigured ErrorCode = "gateway_not_configured"

	// ErrIdempotencyInProgress (409): A request with the same Idempotency-Key is still in progress. Wait for the time in
	// Retry-After and send the same request with the same key. You then get the response of the first request.
	ErrIdempotencyInProgress ErrorCode = "idempotency_in_progress"

	// ErrNothingToRefund (409): Nothing is left to refund: nothing was paid, or everything has been refunded or is being
	// refunded. Get the booking and its payment intents. You can refund amount_paid minus amount_refunded of the booking,
	// and to a card amount_received minus amount_refunded of its payment intent.
	ErrNothingToRefund ErrorCode = "nothing_to_refund"

	// ErrSlotUnavailable (409): Another booking holds the unit at that time, including buffers, or the slot of a unit in
	// seats mode has too few seats left, or a closure overlaps the time of the booking. Call GET /availability to find a
	// free slot, then book it. For a unit in seats mode, error.seats_available says how many seats are left.
	ErrSlotUnavailable ErrorCode = "slot_unavailable"

	// ErrVersionMismatch (412): The resource has changed since the version in If-Match. Get the resource again, check
	// whether your change still applies, and send the new version.
	ErrVersionMismatch ErrorCode = "version_mismatch"

	// ErrRequestTooLarge (413): The body is larger than 1 MiB. Send less data per request.
	ErrRequestTooLarge ErrorCode = "request_too_large"

	// ErrBookingAlreadyPaid (422): Nothing is outstanding on the booking. Get the booking. amount_due shows how much can
	// still be paid.
	ErrBookingAlreadyPaid ErrorCode = "booking_already_paid"

	// ErrBookingNotPayable (422): The booking is cancelled or has expired. Create a new booking and take the payment for
	// it.
	ErrBookingNotPayable ErrorCode = "booking_not_payable"

	// ErrCurrencyMismatch (422): The currency of the payment differs from the booking's currency. Leave out currency, or
	// send the booking's currency.
	ErrCurrencyMismatch ErrorCode = "currency_mismatch"

	// ErrIdempotencyMismatch (422): The Idempotency-Key was used with a different request within the last 24 hours. Use a
	// new key for each new operation. To retry, send the unchanged request.
	ErrIdempotencyMismatch ErrorCode = "idempotency_mismatch"

	// ErrInvalidRequest (422): A field of the body, a query parameter or a header is invalid. errors contains the messages
	// by field; param names the first field. Correct the fields listed in errors.
	ErrInvalidRequest ErrorCode = "invalid_request"

	// ErrInvalidStatusTransition (422): The resource's current status does not allow this. Get the resource, and use an
	// action that its status allows.
	ErrInvalidStatusTransition ErrorCode = "invalid_status_transition"

	// ErrLimitReached (422): The tenant has reached the maximum number of these resources in this mode. The message states
	// the limit. Follow the message: deactivate, retire or delete a resource first.
	ErrLimitReached ErrorCode = "limit_reached"

	// ErrPaymentDisputed (422): A payer disputes the payment with their bank, so it cannot be refunded. The bank returns
	// the money if the payer wins. Answer the dispute at the payment gateway. If you win, you can refund the payment.
	ErrPaymentDisputed ErrorCode = "payment_disputed"

	// ErrRateLimited (429): Too many requests with this credential, or with all credentials of the tenant together, within
	// a minute, or too many requests with unknown credentials from this address. Or the tenant has too many open streams,
	// or too many searches that read all matches. Wait for the time in Retry-After, then send the same request.
	// RateLimit-Remaining shows how many requests the credential has left, and RateLimit-Reset when its limit resets.
	// RateLimit names the limit that rejected the request: default for the credential, tenant for all credentials.
	ErrRateLimited ErrorCode = "rate_limited"

	// ErrInternalError (500): Something went wrong on our side. Send the same request with the same Idempotency-Key, and
	// wait longer after each attempt. If the error persists, contact support with the request ID.
	ErrInternalError ErrorCode = "internal_error"

	// ErrPaymentIntentFailed (502): The payment gateway refused the request, cannot be reached, or is not configured for
	// the operator. The message states which. Read the message. If the response has Service-Should-Retry: false, correct
	// what the message says first. If the gateway cannot be reached, wait for the time in Retry-After and send the same
	// request with the same Idempotency-Key. The payment is never charged twice.
	ErrPaymentIntentFailed ErrorCode = "payment_intent_failed"

	// ErrUnavailable (503): A part of the platform is temporarily unavailable. Wait for the time in Retry-After, then send
	// the same request with the same Idempotency-Key.
	ErrUnavailable ErrorCode = "unavailable"

	// ErrUpstreamTimeout (504): The response did not arrive in time. The request may have succeeded. Send the same request
	// with the same Idempotency-Key. The operation happens only once.
	ErrUpstreamTimeout ErrorCode = "upstream_timeout"
)
