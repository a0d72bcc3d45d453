package proto

// ErrorsPage is the path at which the gateway serves the catalogue; each code is an anchor of the page.
const ErrorsPage = "/docs/errors"

// ErrorsHead begins the list of codes at the end of each operation's description in the contract.
const ErrorsHead = "**Errors**\n\n"

// ErrorCode is one value of error.code.
type ErrorCode struct {
	Code   string
	Status int    // the HTTP status that it always comes with
	Cause  string // what has happened
	Remedy string // what the client should do
	Retry  bool   // whether the unchanged request may succeed later
}

// ErrorCodes is the catalogue of all codes, by status. A code keeps its meaning within v1.
var ErrorCodes = []ErrorCode{
	{
		"invalid_cursor", 400,
		"The cursor was changed, or it belongs to another list, sort order, filter, tenant or mode.",
		"Send next_cursor exactly as it was answered, with the same filters; or start again without a cursor.", false,
	},
	{
		"malformed_json", 400,
		"The body is not one JSON object in UTF-8.",
		"Send one JSON object, made by a JSON library rather than by joining strings.", false,
	},
	{
		"malformed_request", 400,
		"The request's target is not a URI reference; it may have a raw #.",
		"Percent-encode the parts of the path and the query.", false,
	},
	{
		"missing_content_type", 400,
		"The request has a body, and its Content-Type is missing or is not JSON.",
		"Send the body as JSON with the header Content-Type: application/json.", false,
	},
	{
		"query_api_key_unsupported", 400,
		"The query has api_key. Addresses end up in logs, so keys in them are not accepted.",
		"Send the key as Authorization: Bearer <key>, and revoke it: it may be in logs.", false,
	},
	{
		"expired_credential", 401,
		"The OAuth access token has expired: it works for an hour.",
		"Exchange the refresh token for a new one.", false,
	},
	{
		"invalid_credential", 401,
		"The credential is malformed or unknown.",
		"Compare the key with the one that was shown when it was made; when it is lost, make a new one.", false,
	},
	{
		"missing_credential", 401,
		"The request has no Authorization header, or one that is not of the form Bearer <credential>.",
		"Send Authorization: Bearer <credential>.", false,
	},
	{
		"revoked_credential", 401,
		"The API key was revoked or has ended after its rotation, or the OAuth grant was ended.",
		"Use another key, or ask the operator for consent again. What is revoked never works again.", false,
	},
	{
		"insufficient_permission", 403,
		"Between the platform's own processes: the operator is no member of the tenant, or its role does not allow this.",
		"An owner of the tenant can change the role.", false,
	},
	{
		"insufficient_scope", 403,
		"The credential lacks a scope that the operation needs. The message and WWW-Authenticate name it.",
		"Use a credential that has the scope. The header X-Service-Scope lists the scopes of the credential that was sent.", false,
	},
	{
		"mode_mismatch", 403,
		"The resource is the tenant's own and belongs to the other mode: a test key asked for live data, or the other way round. Also: a test clock exists in test mode only.",
		"Use a key of the other mode.", false,
	},
	{
		"app_not_found", 404,
		"Between the platform's own processes: the tenant has no OAuth app with this id.",
		"Check the id. The answer is the same for another tenant's app.", false,
	},
	{
		"booking_not_found", 404,
		"The tenant has no booking with this id.",
		"Check the id. The answer is the same for another tenant's booking.", false,
	},
	{
		"calendar_feed_not_found", 404,
		"The tenant has no calendar feed with this id, or no feed has the token in the address.",
		"Check the id or the address. A deleted feed is gone at once.", false,
	},
	{
		"credential_not_found", 404,
		"Between the platform's own processes: no credential has this hash.",
		"Clients get invalid_credential instead.", false,
	},
	{
		"customer_not_found", 404,
		"The tenant has no customer with this id.",
		"Check the id. Another tenant's customer answers the same.", false,
	},
	{
		"delivery_not_found", 404,
		"The webhook endpoint has no delivery with this id.",
		"Check both ids. Deliveries are kept for a limited time.", false,
	},
	{
		"event_not_found", 404,
		"The tenant has no event with this id.",
		"Check the id. Events are kept for 30 days, and do not include test deliveries.", false,
	},
	{
		"gateway_account_not_found", 404,
		"Between the platform's own processes: no account at the payment gateway is connected in this mode.",
		"Connect one.", false,
	},
	{
		"grant_not_found", 404,
		"The tenant has no grant of an OAuth app with this id.",
		"Check the id. The answer is the same for another tenant's grant.", false,
	},
	{
		"holiday_rule_not_found", 404,
		"The tenant has no holiday rule with this id.",
		"Check the id. The answer is the same for another tenant's rule.", false,
	},
	{
		"invoice_not_found", 404,
		"The tenant has no invoice with this id.",
		"Check the id. The answer is the same for another tenant's invoice.", false,
	},
	{
		"invoice_payment_not_found", 404,
		"The invoice has no payment with this id.",
		"Check both ids. The invoice lists its payments.", false,
	},
	{
		"key_not_found", 404,
		"The API key does not exist.",
		"Check the key's id.", false,
	},
	{
		"lead_not_found", 404,
		"The tenant has no lead with this id.",
		"Check the id. The answer is the same for another tenant's lead.", false,
	},
	{
		"not_found", 404,
		"This path does not exist.",
		"Check the path against the API reference: no trailing slash, and /api/v1 once.", false,
	},
	{
		"operator_not_found", 404,
		"Between the platform's own processes: the tenant has no member with this id.",
		"Check the id. The answer is the same for another tenant's member.", false,
	},
	{
		"package_not_found", 404,
		"The tenant has no package with this id.",
		"Check the id. The answer is the same for another tenant's package.", false,
	},
	{
		"payment_intent_not_found", 404,
		"The tenant has no payment intent with this id.",
		"Check the id; it is the payment gateway's, pi_…. The answer is the same for another tenant's intent.", false,
	},
	{
		"quote_not_found", 404,
		"The tenant has no quote with this id.",
		"Check the id. The answer is the same for another tenant's quote.", false,
	},
	{
		"refund_not_found", 404,
		"The tenant has no refund with this id.",
		"Check the id. The answer is the same for another tenant's refund.", false,
	},
	{
		"service_not_found", 404,
		"The tenant has no service with this id.",
		"Check the id. The answer is the same for another tenant's service.", false,
	},
	{
		"session_not_found", 404,
		"Nobody has signed in by this session, or it has ended.",
		"Sign in again.", false,
	},
	{
		"tenant_not_found", 404,
		"The tenant does not exist.",
		"Check the tenant's slug or id; when the credential is the tenant's own, write to support with the request id.", false,
	},
	{
		"unit_not_found", 404,
		"The tenant has no unit with this id.",
		"Check the id. The answer is the same for another tenant's unit.", false,
	},
	{
		"view_not_found", 404,
		"Between the platform's own processes: the operator has no saved view with this id at the tenant.",
		"Check the id.", false,
	},
	{
		"webhook_endpoint_not_found", 404,
		"The tenant has no webhook endpoint with this id.",
		"Check the id. A deleted endpoint is gone at once.", false,
	},
	{
		"method_not_allowed", 405,
		"The path exists, but not for this method.",
		"Use one of the methods in the header Allow.", false,
	},
	{
		"gateway_connected", 409,
		"Between the platform's own processes: another account at the payment gateway is connected in this mode.",
		"Disconnect it first.", false,
	},
	{
		"gateway_not_configured", 409,
		"The operator has no account at a payment gateway in this mode.",
		"Connect the operator's account; GET /tenant shows in payments whether there is one.", false,
	},
	{
		"idempotency_in_progress", 409,
		"A request with the same Idempotency-Key is still running.",
		"Wait for the time in Retry-After and send the same request with the same key: it gets the first one's answer.", true,
	},
	{
		"nothing_to_refund", 409,
		"Nothing is left to refund: nothing was taken, or all of it has been refunded or is being refunded.",
		"Read the payment intents: amount_received less amount_refunded is what can still be refunded.", false,
	},
	{
		"slot_unavailable", 409,
		"Another booking holds the unit at that time, its buffers included.",
		"Call GET /availability to find a free slot, and book that one.", false,
	},
	{
		"slug_taken", 409,
		"Another tenant has the slug.",
		"Choose another slug.", false,
	},
	{
		"version_mismatch", 412,
		"The resource has changed since the version that If-Match names.",
		"Read the resource again, decide again, and send its new version.", false,
	},
	{
		"request_too_large", 413,
		"The body is larger than 1 MiB.",
		"Send less at a time.", false,
	},
	{
		"booking_already_paid", 422,
		"Nothing is outstanding on the booking.",
		"Read the booking: amount_due is what can still be paid.", false,
	},
	{
		"booking_not_payable", 422,
		"The booking is cancelled or has expired.",
		"Make a new booking, and take the payment for that one.", false,
	},
	{
		"currency_mismatch", 422,
		"The currency of the payment is not the booking's.",
		"Leave currency out, or send the booking's.", false,
	},
	{
		"idempotency_mismatch", 422,
		"The Idempotency-Key was used within 24 hours with another request.",
		"Use a new key for a new operation, and the unchanged request for a retry.", false,
	},
	{
		"invalid_request", 422,
		"A field of the body, a query parameter or a header is invalid. errors lists the messages by field; param is the first field.",
		"Correct the fields in errors.", false,
	},
	{
		"invalid_status_transition", 422,
		"The resource's current status does not allow this.",
		"Read the resource, and use an action that its status allows.", false,
	},
	{
		"last_owner", 422,
		"Between the platform's own processes: the tenant would be left without an owner who can sign in.",
		"Make another operator an owner first.", false,
	},
	{
		"limit_reached", 422,
		"The tenant has the largest allowed number of these in this mode. The message states the number.",
		"Do what the message says: deactivate, retire or delete one first.", false,
	},
	{
		"rate_limited", 429,
		"Too many requests: of this credential within a minute, or with unknown credentials from this address; or too many open streams, or searches that read all their matches, of this tenant.",
		"Wait for the time in Retry-After, then send the same request. RateLimit-Remaining and RateLimit-Reset say how many requests are left, and until when.", true,
	},
	{
		"internal_error", 500,
		"Something went wrong on our side.",
		"Send the same request with the same Idempotency-Key, waiting longer each time. If the error stays, write to support with the request id.", true,
	},
	{
		"payment_intent_failed", 502,
		"The payment gateway refused, could not be reached, or is not configured for the operator. The message says which.",
		"Read the message. When the gateway could not be reached, wait for the time in Retry-After and send the same request with the same Idempotency-Key: it is never charged twice.", true,
	},
	{
		"unavailable", 503,
		"A part of the platform cannot be reached at the moment.",
		"Wait for the time in Retry-After, then send the same request with the same Idempotency-Key.", true,
	},
	{
		"upstream_timeout", 504,
		"The answer did not come in time. The request may have had its effect.",
		"Send the same request with the same Idempotency-Key: the effect happens once.", true,
	},
}
