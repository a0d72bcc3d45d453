package domain

import (
	"encoding/json"
	"slices"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
)

// IntentInput is the body of a create.
type IntentInput struct {
	Booking       string
	Amount        *int64
	Currency      *string
	Invoice       *string
	CaptureMethod CaptureMethod // "": automatic
	Description   *string
	ReceiptEmail  *string
	Metadata      json.RawMessage
}

// notPayable are the states of bookings that accept no payment.
var notPayable = []string{"cancelled", "expired"}

// openInvoices are the states of invoices that can be paid.
var openInvoices = []string{"open", "partially_paid", "uncollectible"}

// NewIntent returns an intent for a booking, and for one of its invoices if the input names one. The intent has no row yet, and the
// gateway does not know it yet.
func NewIntent(in IntentInput, b Booking, v *Invoice) (Intent, error) {
	if slices.Contains(notPayable, b.Status) {
		return Intent{}, ErrNotPayable.WithMessage("The booking is %s.", b.Status).WithField("booking_id")
	}
	if in.Currency != nil && !strings.EqualFold(*in.Currency, b.Total.Currency) {
		return Intent{}, ErrCurrencyMismatch.WithMessage("The booking's currency is %s.", b.Total.Currency).WithField("currency")
	}
	outstanding, err := in.outstanding(b, v)
	if err != nil {
		return Intent{}, err
	}
	amount, err := in.amount(b, outstanding)
	if err != nil {
		return Intent{}, err
	}
	if _, err := ToStripe(amount, b.Total.Currency); err != nil {
		return Intent{}, apperr.Field("amount_minor", "%s.", sentence(err))
	}
	capture := in.CaptureMethod
	if capture == "" {
		capture = CaptureAutomatic
	}
	out := Intent{
		Status: Creating, Amount: money.Amount{Minor: amount, Currency: b.Total.Currency}, BookingID: b.ID, CustomerID: b.CustomerID,
		CaptureMethod: capture, Description: in.Description, ReceiptEmail: in.ReceiptEmail, Metadata: in.Metadata, BookingStatus: b.Status,
	}
	if v != nil {
		out.InvoiceID = v.ID
	}
	return out, nil
}

// outstanding returns the maximum payment: the amount due of the booking, and of the invoice if the input names one. A booking
// without a price does not limit the amount of its invoice.
func (in IntentInput) outstanding(b Booking, v *Invoice) (int64, error) {
	if in.Invoice == nil {
		return b.Due.Minor, nil
	}
	if v == nil || v.BookingID != b.ID {
		return 0, apperr.Field("invoice_id", "Must be an invoice of the booking.")
	}
	if b.Total.Minor > 0 && b.Due.Minor <= 0 { // regardless of the invoice, whose money may still be on its way
		return 0, ErrAlreadyPaid
	}
	if !slices.Contains(openInvoices, v.Status) {
		return 0, apperr.Field("invoice_id", "Must be an open invoice. This one is %s.", v.Status)
	}
	if v.Due.Minor <= 0 {
		return 0, apperr.Field("invoice_id", "Must be an invoice with an amount due.")
	}
	if v.Due.Currency != b.Total.Currency {
		return 0, apperr.Field("invoice_id", "Must have the booking's currency, %s.", b.Total.Currency)
	}
	if b.Total.Minor > 0 {
		return min(v.Due.Minor, b.Due.Minor), nil
	}
	return v.Due.Minor, nil
}

// Limited reports whether the outstanding amount limits the payment. A booking with a total of 0 has no price, so only an explicit amount or
// its invoice determines the amount.
func (in IntentInput) Limited(b Booking) bool { return b.Total.Minor > 0 || in.Invoice != nil }

// amount returns the amount of the payment.
func (in IntentInput) amount(b Booking, outstanding int64) (int64, error) {
	priced := in.Limited(b)
	switch {
	case priced && outstanding <= 0:
		return 0, ErrAlreadyPaid
	case in.Amount == nil && !priced:
		return 0, apperr.Field("amount_minor", "Is required because the booking has no price.")
	case in.Amount == nil && outstanding > MaxAmount:
		return 0, apperr.Field("amount_minor", "Is required because more than %d is outstanding. Pay in several parts.", MaxAmount)
	case in.Amount == nil:
		return outstanding, nil
	case priced && *in.Amount > outstanding:
		return 0, apperr.Field("amount_minor", "Must be at most the outstanding amount, %d.", outstanding)
	}
	return *in.Amount, nil
}

// CheckCapture returns the error for an amount that cannot be captured.
func (p Intent) CheckCapture(minor int64) error {
	if minor > p.Capturable {
		return apperr.Field("amount_minor", "Must be at most the authorised amount, %d.", p.Capturable)
	}
	if _, err := ToStripe(minor, p.Amount.Currency); err != nil {
		return apperr.Field("amount_minor", "%s.", sentence(err))
	}
	return nil
}

// MaxAmount is the largest amount of one payment. The contract has the same limit for amount_minor.
const MaxAmount = 99_999_999

// NamedBooking reads the id of the booking. A malformed id counts as unknown.
func (in IntentInput) NamedBooking() (BookingID, error) {
	id, err := ids.Parse[ids.BookingPrefix](in.Booking)
	if err != nil {
		return BookingID{}, ErrBookingNotFound
	}
	return id, nil
}

// NamedInvoice reads the id of the invoice. It returns zero for a missing or malformed one.
func (in IntentInput) NamedInvoice() InvoiceID {
	if in.Invoice == nil {
		return InvoiceID{}
	}
	id, err := ids.Parse[ids.InvoicePrefix](*in.Invoice)
	if err != nil {
		return InvoiceID{}
	}
	return id
}

// sentence converts an error to a message that begins with a capital letter.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
