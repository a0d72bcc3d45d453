package domain

import (
	"strings"

	"holdfast.dev/libs/apperr"
)

// ErrBookingNotFound and ErrNotInCatalogue are responses of bookings. A client sees them as a 422 on the field with the id.
var (
	ErrBookingNotFound = apperr.New(apperr.NotFound, "booking_not_found", "Booking not found.")
	ErrNotInCatalogue  = apperr.New(apperr.NotFound, "not_found", "Not found in the catalogue.")
)

// ErrInvoiceNotFound and the others are the errors for an id in a path that is unknown, malformed or of another tenant. A payment is
// looked up only within its invoice.
var (
	ErrCreditNoteNotFound = apperr.New(apperr.NotFound, "credit_note_not_found", "Credit note not found.")

	ErrInvoiceNotFound = apperr.New(apperr.NotFound, "invoice_not_found", "Invoice not found.")
	ErrPaymentNotFound = apperr.New(apperr.NotFound, "invoice_payment_not_found", "Invoice payment not found.")
)

// ErrTransition is the response to an action that the status does not allow.
var ErrTransition = apperr.New(apperr.Invalid, "invalid_status_transition", "The status does not allow this.").WithField("status")

// ErrDisputed is the response to a credit note whose refund by card only a disputed payment could cover.
var ErrDisputed = apperr.New(apperr.Invalid, "payment_disputed", "A payer disputes a card payment of the invoice, so it cannot be refunded.").
	WithField("refund")

// UnknownReference returns the response to an id in a field, such as customer_id, that does not exist.
func UnknownReference(field string) error {
	name := strings.TrimSuffix(field, "_id")
	return apperr.Field(field, "%s not found.", strings.ToUpper(name[:1])+name[1:])
}

// MissingScope returns the response to a caller who lacks a scope that the content of the request requires.
func MissingScope(scope string) error {
	return apperr.New(apperr.Forbidden, "insufficient_scope", "The credential lacks the scope "+scope+".").
		WithHeader("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
}

// NotDraft returns the error for a quote or an invoice that cannot be deleted because of its status.
func NotDraft(noun, status string) error {
	return ErrTransition.WithMessage("Only a draft can be deleted. This %s is %s.", noun, strings.ReplaceAll(status, "_", " ")).WithField("status")
}
