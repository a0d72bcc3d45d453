package domain

import "slices"

// Status is the status of a payment intent.
type Status string

// The statuses of a payment intent.
const (
	RequiresPaymentMethod Status = "requires_payment_method"
	RequiresConfirmation  Status = "requires_confirmation"
	RequiresAction        Status = "requires_action"
	Processing            Status = "processing"
	RequiresCapture       Status = "requires_capture"
	Succeeded             Status = "succeeded"
	Canceled              Status = "canceled"
)

// Statuses that allow an operation.
var (
	Confirmable = []Status{RequiresPaymentMethod, RequiresConfirmation, RequiresAction}
	Cancelable  = []Status{RequiresPaymentMethod, RequiresCapture, RequiresConfirmation, RequiresAction}
	Payable     = Confirmable // amount, currency, and method can change
)

// In reports whether the status is one of them.
func (s Status) In(some []Status) bool { return slices.Contains(some, s) }

// Capture methods.
const (
	CaptureAutomatic      = "automatic"
	CaptureAutomaticAsync = "automatic_async"
	CaptureManual         = "manual"
)

// Intent is a payment intent.
type Intent struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"`
	AmountCapturable          int64             `json:"amount_capturable"`
	AmountDetails             AmountDetails     `json:"amount_details"`
	AmountReceived            int64             `json:"amount_received"`
	Application               *string           `json:"application"`
	ApplicationFeeAmount      *int64            `json:"application_fee_amount"`
	AutomaticPaymentMethods   *Automatic        `json:"automatic_payment_methods"`
	CanceledAt                *int64            `json:"canceled_at"`
	CancellationReason        *string           `json:"cancellation_reason"`
	CaptureMethod             string            `json:"capture_method"`
	ClientSecret              string            `json:"client_secret"`
	ConfirmationMethod        string            `json:"confirmation_method"`
	Created                   int64             `json:"created"`
	Currency                  string            `json:"currency"`
	Customer                  *string           `json:"customer"`
	Description               *string           `json:"description"`
	LastPaymentError          *Error            `json:"last_payment_error"`
	LatestCharge              *string           `json:"latest_charge"`
	Livemode                  bool              `json:"livemode"`
	Metadata                  map[string]string `json:"metadata"`
	NextAction                *NextAction       `json:"next_action"`
	OnBehalfOf                *string           `json:"on_behalf_of"`
	PaymentMethod             *string           `json:"payment_method"`
	PaymentMethodOptions      MethodOptions     `json:"payment_method_options"`
	PaymentMethodTypes        []string          `json:"payment_method_types"`
	Processing                *ProcessingState  `json:"processing"`
	ReceiptEmail              *string           `json:"receipt_email"`
	Review                    *string           `json:"review"`
	SetupFutureUsage          *string           `json:"setup_future_usage"`
	Shipping                  *string           `json:"shipping"`
	StatementDescriptor       *string           `json:"statement_descriptor"`
	StatementDescriptorSuffix *string           `json:"statement_descriptor_suffix"`
	Status                    Status            `json:"status"`
	TransferData              *string           `json:"transfer_data"`
	TransferGroup             *string           `json:"transfer_group"`
}

// AmountDetails is a part of an intent.
type AmountDetails struct {
	Tip struct{} `json:"tip"`
}

// Automatic contains the settings of an intent's automatic payment methods.
type Automatic struct {
	AllowRedirects string `json:"allow_redirects"` // always or never
	Enabled        bool   `json:"enabled"`
}

// MethodOptions are an intent's options by type of method.
type MethodOptions struct {
	Card CardOptions `json:"card"`
}

// CardOptions are the options of cards.
type CardOptions struct {
	Installments        *string `json:"installments"`
	MandateOptions      *string `json:"mandate_options"`
	Network             *string `json:"network"`
	RequestThreeDSecure string  `json:"request_three_d_secure"`
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
	AmountDetails           AmountDetails    `json:"amount_details"`
	AutomaticPaymentMethods *Automatic       `json:"automatic_payment_methods"`
	CanceledAt              *int64           `json:"canceled_at"`
	CancellationReason      *string          `json:"cancellation_reason"`
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
	SetupFutureUsage        *string          `json:"setup_future_usage"`
	Shipping                *string          `json:"shipping"`
	Status                  Status           `json:"status"`
}

// Public returns the intent as a publishable key sees it.
func (pi *Intent) Public() *PublicIntent {
	return &PublicIntent{
		ID: pi.ID, Object: pi.Object, Amount: pi.Amount, AmountDetails: pi.AmountDetails,
		AutomaticPaymentMethods: pi.AutomaticPaymentMethods, CanceledAt: pi.CanceledAt, CancellationReason: pi.CancellationReason,
		CaptureMethod: pi.CaptureMethod, ClientSecret: pi.ClientSecret, ConfirmationMethod: pi.ConfirmationMethod,
		Created: pi.Created, Currency: pi.Currency, Description: pi.Description, LastPaymentError: pi.LastPaymentError,
		Livemode: pi.Livemode, NextAction: pi.NextAction, PaymentMethod: pi.PaymentMethod, PaymentMethodTypes: pi.PaymentMethodTypes,
		Processing: pi.Processing, ReceiptEmail: pi.ReceiptEmail, SetupFutureUsage: pi.SetupFutureUsage, Shipping: pi.Shipping,
		Status: pi.Status,
	}
}
