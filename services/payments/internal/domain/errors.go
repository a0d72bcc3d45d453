package domain

import "holdfast.dev/libs/apperr"

// The errors of a payment intent, with the names in the specification.
var (
	ErrBookingNotFound = apperr.New(apperr.NotFound, "booking_not_found", "Booking not found.")
	ErrIntentNotFound  = apperr.New(apperr.NotFound, "payment_intent_not_found", "Payment intent not found.")
	ErrNotConfigured   = apperr.New(apperr.Conflict, "gateway_not_configured",
		"No payment gateway account is connected in this mode. An owner connects one in the console, under Payment gateway.")
	ErrAlreadyPaid      = apperr.New(apperr.Invalid, "booking_already_paid", "Nothing is outstanding on the booking.").WithField("booking_id")
	ErrNotPayable       = apperr.New(apperr.Invalid, "booking_not_payable", "The booking is cancelled or expired.").WithField("booking_id")
	ErrCurrencyMismatch = apperr.New(apperr.Invalid, "currency_mismatch", "The currency differs from the booking's currency.").WithField("currency")
	ErrDisputed         = apperr.New(apperr.Invalid, "payment_disputed", "A payer disputes the payment, so it cannot be refunded.").WithField("payment_intent_id")
	ErrRefundNotFound   = apperr.New(apperr.NotFound, "refund_not_found", "Refund not found.")
	ErrNothingToRefund  = apperr.New(apperr.Conflict, "nothing_to_refund",
		"Nothing is left to refund: nothing was paid, or everything has been refunded or is being refunded.")
	ErrOwedNotFound = apperr.New(apperr.NotFound, "refund_not_found", "Owed refund not found.")
	ErrOwedDone     = apperr.New(apperr.Invalid, "invalid_status_transition", "The refund is no longer owed. It was returned or closed.").WithField("status")
	ErrTransition   = apperr.New(apperr.Invalid, "invalid_status_transition", "The status does not allow this.").WithField("status")
	// ErrUnconnected is ErrNotConfigured of an operation that calls the gateway.
	ErrUnconnected = ErrGateway.WithMessage("%s", ErrNotConfigured.Message).WithCause(ErrNotConfigured).WithoutRetry()
	// ErrGateway is the response if the gateway refuses, is not configured, or did not respond.
	ErrGateway = apperr.New(apperr.BadGateway, "payment_intent_failed", "The payment gateway did not accept the request.")
)

// The errors of gateway accounts.
var (
	ErrConnected = apperr.New(apperr.Conflict, "gateway_connected", "Another account is connected. Disconnect it first.")
	ErrNoAccount = apperr.New(apperr.NotFound, "gateway_account_not_found", "No account is connected in this mode.")
)
