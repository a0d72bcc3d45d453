package domain

import "slices"

// Status is the status of a payment intent.
type Status string

// The statuses of a payment intent.
const (
	RequiresPaymentMethod Status = "requires_payment_method"
	RequiresAction        Status = "requires_action"
	Processing            Status = "processing"
	RequiresCapture       Status = "requires_capture"
	Succeeded             Status = "succeeded"
	Canceled              Status = "canceled"
)

// Statuses that allow an operation.
var (
	Confirmable = []Status{RequiresPaymentMethod, RequiresAction}
	Cancelable  = []Status{RequiresPaymentMethod, RequiresCapture, RequiresAction}
)

// In reports whether the status is one of them.
func (s Status) In(some []Status) bool { return slices.Contains(some, s) }

// Capture methods.
const (
	CaptureAutomatic = "automatic"
	CaptureManual    = "manual"
)

// Intent is a payment intent.
type Intent struct {
	ID                      string            `json:"id"`
	Object                  string            `json:"object"`
	Amount                  int64             `json:"amount"`
	AmountCapturable        int64             `json:"amount_capturable"`
	AmountReceived          int64             `json:"amount_received"`
	AutomaticPaymentMethods *Automatic        `json:"automatic_payment_methods"`
	CanceledAt              *int64            `json:"canceled_at"`
	CaptureMethod           string            `json:"capture_method"`
	ClientSecret            string            `json:"client_secret"`
	ConfirmationMethod      string            `json:"confirmation_method"`
	Created                 int64             `json:"created"`
	Currency                string            `json:"currency"`
	Description             *string           `json:"description"`
	LastPaymentError        *Error            `json:"last_payment_error"`
	LatestCharge            *string           `json:"latest_charge"`
	Livemode                bool              `json:"livemode"`
	Metadata                map[string]string `json:"metadata"`
	NextAction              *NextAction       `json:"next_action"`
	PaymentMethod           *string           `json:"payment_method"`
	PaymentMethodTypes      []string          `json:"payment_method_types"`
	Processing              *ProcessingState  `json:"processing"`
	ReceiptEmail            *string           `json:"receipt_email"`
	Status                  Status            `json:"status"`
}

// Automatic contains the settings of an intent's automatic payment methods.
type Automatic struct {
	AllowRedirects string `json:"allow_redirects"` // always or never
	Enabled        bool   `json:"enabled"`
}

// NextAction is the next action that the customer must take.
type NextAction struct {
	RedirectToURL *RedirectToURL    `json:"redirect_to_url,omitempty"`
	Type          string            `json:"type"`
	UseStripeSDK  map[string]string `json:"use_stripe_sdk,omitempty"`
}

// RedirectToURL is the next action of an intent with a return URL.
type RedirectToURL struct {
	ReturnURL string `json:"return_url"`
	URL       string `json:"url"`
}

// ProcessingState is a part of an intent in the status processing.
type ProcessingState struct {
	Type string `json:"type"`
}

// Manual reports whether the intent waits for a capture.
func (pi *Intent) Manual() bool { return pi.CaptureMethod == CaptureManual }

// PublicIntent contains the fields of an intent that a publishable key can see.
type PublicIntent struct {
	ID                      string           `json:"id"`
	Object                  string           `json:"object"`
	Amount                  int64            `json:"amount"`
	AutomaticPaymentMethods *Automatic       `json:"automatic_payment_methods"`
	CanceledAt              *int64           `json:"canceled_at"`
	CaptureMethod           string           `json:"capture_method"`
	ClientSecret            string           `json:"client_secret"`
	ConfirmationMethod      string           `json:"confirmation_method"`
	Created                 int64            `json:"created"`
	Currency                string           `json:"currency"`
	Description             *string          `json:"description"`
	LastPaymentError        *Error           `json:"last_payment_error"`
	Livemode                bool             `json:"livemode"`
	NextAction              *NextAction      `json:"next_action"`
	PaymentMethod           *string          `json:"payment_method"`
	PaymentMethodTypes      []string         `json:"payment_method_types"`
	Processing              *ProcessingState `json:"processing"`
	ReceiptEmail            *string          `json:"receipt_email"`
	Status                  Status           `json:"status"`
}

// Public returns the intent as a publishable key sees it.
func (pi *Intent) Public() *PublicIntent {
	return &PublicIntent{
		ID: pi.ID, Object: pi.Object, Amount: pi.Amount,
		AutomaticPaymentMethods: pi.AutomaticPaymentMethods, CanceledAt: pi.CanceledAt,
		CaptureMethod: pi.CaptureMethod, ClientSecret: pi.ClientSecret, ConfirmationMethod: pi.ConfirmationMethod,
		Created: pi.Created, Currency: pi.Currency, Description: pi.Description, LastPaymentError: pi.LastPaymentError,
		Livemode: pi.Livemode, NextAction: pi.NextAction, PaymentMethod: pi.PaymentMethod, PaymentMethodTypes: pi.PaymentMethodTypes,
		Processing: pi.Processing, ReceiptEmail: pi.ReceiptEmail,
		Status: pi.Status,
	}
}
