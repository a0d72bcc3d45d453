package proto

import "slices"

// ErrorsPage is the path at which the gateway serves the catalogue; each code is an anchor on the page.
const ErrorsPage = "/docs/errors"

// ErrorCode is one value of error.code.
type ErrorCode struct {
	Code   string
	Status int    // the HTTP status that is always used with it
	Cause  string // what happened
	Remedy string // what the client should do
	Retry  bool   // whether the unchanged request can succeed later
}

// ErrorCodes is the public catalogue of codes, by status. A code retains its meaning within v1.
var ErrorCodes = []ErrorCode{
	{
		"invalid_cursor", 400,
		"The cursor was modified, or it belongs to a different list, sort order, filter, tenant or mode.",
		"Send next_cursor exactly as you received it, with the same filters, or start again without a cursor.", false,
	},
	{
		"malformed_json", 400,
		"The body is not a single JSON object in UTF-8.",
		"Send one JSON object. Create it with a JSON library, not by concatenating strings.", false,
	},
	{
		"malformed_request", 400,
		"The request target is not a valid URI reference. For example, it contains a raw #.",
		"Percent-encode the parts of the path and query.", false,
	},
	{
		"missing_content_type", 400,
		"The request has a body, but its Content-Type is missing or is not JSON.",
		"Send the body as JSON with the header Content-Type: application/json.", false,
	},
	{
		"query_api_key_unsupported", 400,
		"The query contains api_key. Keys in URLs are not accepted, because URLs are often logged.",
		"Send the key as Authorization: Bearer <key>, and revoke the key that you sent: it can be in logs.", false,
	},
	{
		"expired_credential", 401,
		"The OAuth access token or the API key has expired. Access tokens are valid for one hour. API keys expire only if this was set for them.",
		"Exchange the refresh token for a new access token. If an API key has expired, create another one.", false,
	},
	{
		"invalid_credential", 401,
		"The credential is malformed or unknown.",
		"Compare the key with the one that was shown when you created it. If you lost it, create a new one.", false,
	},
	{
		"missing_credential", 401,
		"The request has no Authorization header, or the header does not have the form Bearer <credential>.",
		"Send Authorization: Bearer <credential>.", false,
	},
	{
		"revoked_credential", 401,
		"The API key was revoked or has expired after its rotation, or the OAuth grant was revoked.",
		"Use another key, or ask the operator for consent again. You cannot restore a revoked credential.", false,
	},
	{
		"insufficient_scope", 403,
		"The credential lacks a scope that the operation requires. The message and the WWW-Authenticate header name it.",
		"Use a credential that has the scope. The X-Service-Scope header lists the scopes of the credential that you sent.", false,
	},
	{
		"mode_mismatch", 403,
		"The resource belongs to your tenant but to the other mode: you used a test key for live data or a live key for test data. You also get this error if you use the test clock in live mode.",
		"Use a key of the other mode.", false,
	},
	{
		"origin_not_allowed", 403,
		"Tools for assistants (/mcp) only: no app has registered the origin of the page that sent the request.",
		"Register the origin as a browser origin of the app. Programs that are not web pages send no Origin header.", false,
	},
	{
		"tenant_suspended", 403,
		"The platform has suspended the tenant, or is closing it. A suspension applies to all credentials, to calendar feeds and to the console. During a closure only writes are rejected: data can be read and exported until the date in the message. Webhooks wait.",
		"Ask the platform. An operator can read the reason in the console. After the resumption the same credentials work again. If the account is closing, export the data in time.", false,
	},
	{
		"app_not_found", 404,
		"Platform API only: no tenant has an OAuth app with this ID.",
		"Check the ID.", false,
	},
	{
		"booking_not_found", 404,
		"The tenant has no booking with this ID.",
		"Check the ID. The response is the same if the booking belongs to another tenant.", false,
	},
	{
		"calendar_feed_not_found", 404,
		"The tenant has no calendar feed with this ID, or no feed has the token in the URL.",
		"Check the ID or the URL. The feed may have been deleted.", false,
	},
	{
		"closure_not_found", 404,
		"The tenant has no closure with this ID.",
		"Check the ID. The closure may have been deleted. The response is the same if it belongs to another tenant.", false,
	},
	{
		"credit_note_not_found", 404,
		"The tenant has no credit note with this ID.",
		"Check the ID. The response is the same if the credit note belongs to another tenant.", false,
	},
	{
		"customer_not_found", 404,
		"The tenant has no customer with this ID.",
		"Check the ID. The response is the same if the customer belongs to another tenant.", false,
	},
	{
		"delivery_not_found", 404,
		"The webhook endpoint has no delivery with this ID.",
		"Check both IDs. Deliveries are stored for a limited time.", false,
	},
	{
		"event_not_found", 404,
		"The tenant has no event with this ID.",
		"Check the ID. Events are stored for 30 days. Sample events are not included.", false,
	},
	{
		"grant_not_found", 404,
		"The tenant has no grant of an OAuth app with this ID.",
		"Check the ID. The response is the same if the grant belongs to another tenant.", false,
	},
	{
		"holiday_rule_not_found", 404,
		"The tenant has no holiday rule with this ID.",
		"Check the ID. The response is the same if the rule belongs to another tenant.", false,
	},
	{
		"invoice_not_found", 404,
		"The tenant has no invoice with this ID.",
		"Check the ID. The response is the same if the invoice belongs to another tenant.", false,
	},
	{
		"invoice_payment_not_found", 404,
		"The invoice has no payment with this ID.",
		"Check both IDs. The invoice lists its payments.", false,
	},
	{
		"key_not_found", 404,
		"The API key does not exist.",
		"Check the ID of the key.", false,
	},
	{
		"lead_not_found", 404,
		"The tenant has no lead with this ID.",
		"Check the ID. The response is the same if the lead belongs to another tenant.", false,
	},
	{
		"not_found", 404,
		"This path does not exist.",
		"Compare the path with the API reference. It must not end with a slash, and must contain /api/v1 only once.", false,
	},
	{
		"package_not_found", 404,
		"The tenant has no package with this ID.",
		"Check the ID. The response is the same if the package belongs to another tenant.", false,
	},
	{
		"payment_intent_not_found", 404,
		"The tenant has no payment intent with this ID.",
		"Check the ID, which comes from the payment gateway (pi_…). The response is the same if the intent belongs to another tenant.", false,
	},
	{
		"quote_not_found", 404,
		"The tenant has no quote with this ID.",
		"Check the ID. The response is the same if the quote belongs to another tenant.", false,
	},
	{
		"refund_not_found", 404,
		"The tenant has no refund with this ID.",
		"Check the ID. The response is the same if the refund belongs to another tenant.", false,
	},
	{
		"request_log_not_found", 404,
		"The tenant has no request log with this ID.",
		"Check the ID, and try again after some seconds. Requests are stored for 7 days, and most successful reads are not logged.", true,
	},
	{
		"service_not_found", 404,
		"The tenant has no service with this ID.",
		"Check the ID. The response is the same if the service belongs to another tenant.", false,
	},
	{
		"tenant_erasure_not_found", 404,
		"Platform API only: the tenant does not exist, or it is not closing.",
		"Check the ID of the tenant. Its data is erased only after it was closed.", false,
	},
	{
		"tenant_not_found", 404,
		"The tenant does not exist.",
		"Check the tenant's slug or ID. If the credential belongs to the tenant, contact support with the request ID.", false,
	},
	{
		"unit_not_found", 404,
		"The tenant has no unit with this ID.",
		"Check the ID. The response is the same if the unit belongs to another tenant.", false,
	},
	{
		"usage_not_recorded", 404,
		"The usage of the day is not recorded yet, or it is not complete. Only the platform API returns this code.",
		"Repeat the request later. A day is recorded after its end in UTC, when all services have reported.", true,
	},
	{
		"webhook_endpoint_not_found", 404,
		"The tenant has no webhook endpoint with this ID.",
		"Check the ID. The endpoint may have been deleted.", false,
	},
	{
		"method_not_allowed", 405,
		"The path exists, but does not support this method.",
		"Use one of the methods in the Allow header.", false,
	},
	{
		"external_id_taken", 409,
		"Another tenant already uses the external_id.",
		"Find the tenant with GET /tenants?external_id=, and clear its external_id, or choose another one.", false,
	},
	{
		"gateway_not_configured", 409,
		"The operator has not connected a payment gateway account in this mode.",
		"Connect the operator's account. The payments field of GET /tenant shows whether one is connected.", false,
	},
	{
		"idempotency_in_progress", 409,
		"A request with the same Idempotency-Key is still in progress.",
		"Wait for the time in Retry-After and send the same request with the same key. You then get the response of the first request.", true,
	},
	{
		"nothing_to_refund", 409,
		"Nothing is left to refund: nothing was paid, or everything has been refunded or is being refunded.",
		"Get the booking and its payment intents. You can refund amount_paid minus amount_refunded of the booking, and to a card amount_received minus amount_refunded of its payment intent.", false,
	},
	{
		"slot_unavailable", 409,
		"Another booking holds the unit at that time, including buffers, or the slot of a unit in seats mode has too few seats left, or a closure overlaps the time of the booking.",
		"Call GET /availability to find a free slot, then book it. For a unit in seats mode, error.seats_available says how many seats are left.", false,
	},
	{
		"slug_taken", 409,
		"Another tenant already uses the slug.",
		"Choose another slug.", false,
	},
	{
		"version_mismatch", 412,
		"The resource has changed since the version in If-Match.",
		"Get the resource again, check whether your change still applies, and send the new version.", false,
	},
	{
		"request_too_large", 413,
		"The body is larger than 1 MiB.",
		"Send less data per request.", false,
	},
	{
		"booking_already_paid", 422,
		"Nothing is outstanding on the booking.",
		"Get the booking. amount_due shows how much can still be paid.", false,
	},
	{
		"booking_not_payable", 422,
		"The booking is cancelled or has expired.",
		"Create a new booking and take the payment for it.", false,
	},
	{
		"currency_mismatch", 422,
		"The currency of the payment differs from the booking's currency.",
		"Leave out currency, or send the booking's currency.", false,
	},
	{
		"idempotency_mismatch", 422,
		"The Idempotency-Key was used with a different request within the last 24 hours.",
		"Use a new key for each new operation. To retry, send the unchanged request.", false,
	},
	{
		"invalid_request", 422,
		"A field of the body, a query parameter or a header is invalid. errors contains the messages by field; param names the first field.",
		"Correct the fields listed in errors.", false,
	},
	{
		"invalid_status_transition", 422,
		"The resource's current status does not allow this.",
		"Get the resource, and use an action that its status allows.", false,
	},
	{
		"limit_reached", 422,
		"The tenant has reached the maximum number of these resources in this mode. The message states the limit.",
		"Follow the message: deactivate, retire or delete a resource first.", false,
	},
	{
		"payment_disputed", 422,
		"A payer disputes the payment with their bank, so it cannot be refunded. The bank returns the money if the payer wins.",
		"Answer the dispute at the payment gateway. If you win, you can refund the payment.", false,
	},
	{
		"rate_limited", 429,
		"Too many requests with this credential, or with all credentials of the tenant together, within a minute, or too many requests with unknown credentials from this address. Or the tenant has too many open streams, or too many searches that read all matches.",
		"Wait for the time in Retry-After, then send the same request. RateLimit-Remaining shows how many requests the credential has left, and RateLimit-Reset when its limit resets. RateLimit names the limit that rejected the request: default for the credential, tenant for all credentials.", true,
	},
	{
		"internal_error", 500,
		"Something went wrong on our side.",
		"Send the same request with the same Idempotency-Key, and wait longer after each attempt. If the error persists, contact support with the request ID.", true,
	},
	{
		"payment_intent_failed", 502,
		"The payment gateway refused the request, cannot be reached, or is not configured for the operator. The message states which.",
		"Read the message. If the response has Service-Should-Retry: false, correct what the message says first. If the gateway cannot be reached, wait for the time in Retry-After and send the same request with the same Idempotency-Key. The payment is never charged twice.", true,
	},
	{
		"unavailable", 503,
		"A part of the platform is temporarily unavailable.",
		"Wait for the time in Retry-After, then send the same request with the same Idempotency-Key.", true,
	},
	{
		"upstream_timeout", 504,
		"The response did not arrive in time. The request may have succeeded.",
		"Send the same request with the same Idempotency-Key. The operation happens only once.", true,
	},
}

// InternalErrorCodes are the codes that only calls between services return, by status.
var InternalErrorCodes = []ErrorCode{
	{
		"insufficient_permission", 403,
		"The operator is not a member of the tenant, or their role does not allow this.",
		"An owner of the tenant can change the role.", false,
	},
	{
		"credential_not_found", 404,
		"No credential has this hash.",
		"Clients get invalid_credential instead.", false,
	},
	{
		"gateway_account_not_found", 404,
		"No payment gateway account is connected in this mode.",
		"Connect an account.", false,
	},
	{
		"logo_not_found", 404,
		"The tenant has no logo.",
		"Upload one on the console's business page.", false,
	},
	{
		"operator_not_found", 404,
		"The tenant has no member with this ID.",
		"Check the ID. The response is the same if the member belongs to another tenant.", false,
	},
	{
		"session_not_found", 404,
		"The session does not exist or has ended.",
		"Sign in again.", false,
	},
	{
		"view_not_found", 404,
		"The operator has no saved view with this ID for the tenant.",
		"Check the ID.", false,
	},
	{
		"account_moved", 409,
		"Money was received or returned since the account was read.",
		"Read the account and decide again.", false,
	},
	{
		"gateway_connected", 409,
		"A different payment gateway account is connected in this mode.",
		"Disconnect it first.", false,
	},
	{
		"last_owner", 422,
		"The change would leave the tenant without an owner who can sign in.",
		"Make another operator an owner first.", false,
	},
}

var finalCodes = func() map[string]bool {
	final := map[string]bool{}
	for _, c := range slices.Concat(ErrorCodes, InternalErrorCodes) {
		final[c.Code] = !c.Retry
	}
	return final
}()

// FinalCode reports whether the unchanged request cannot succeed later, according to the code alone.
func FinalCode(code string) bool { return finalCodes[code] }
