package domain

// The statuses of a charge.
const (
	ChargeFailed    = "failed"
	ChargePending   = "pending"
	ChargeSucceeded = "succeeded"
)

// Charge is one attempt to collect an intent's amount.
type Charge struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"`
	AmountCaptured            int64             `json:"amount_captured"`
	AmountRefunded            int64             `json:"amount_refunded"` // includes amounts that a capture or a cancellation released
	BalanceTransaction        *string           `json:"balance_transaction"`
	BillingDetails            BillingDetails    `json:"billing_details"`
	Captured                  bool              `json:"captured"`
	Created                   int64             `json:"created"`
	Currency                  string            `json:"currency"`
	Description               *string           `json:"description"`
	Disputed                  bool              `json:"disputed"`
	FailureBalanceTransaction *string           `json:"failure_balance_transaction"`
	FailureCode               *string           `json:"failure_code"`
	FailureMessage            *string           `json:"failure_message"`
	Livemode                  bool              `json:"livemode"`
	Metadata                  map[string]string `json:"metadata"`
	Outcome                   *Outcome          `json:"outcome"`
	Paid                      bool              `json:"paid"`
	PaymentIntent             string            `json:"payment_intent"`
	PaymentMethod             string            `json:"payment_method"`
	PaymentMethodDetails      map[string]any    `json:"payment_method_details"`
	ReceiptEmail              *string           `json:"receipt_email"`
	ReceiptURL                *string           `json:"receipt_url"`
	Refunded                  bool              `json:"refunded"`
	Status                    string            `json:"status"`
}

// Unrefunded returns the amount that can still be refunded.
func (c *Charge) Unrefunded() int64 { return c.Amount - c.AmountRefunded }

// Outcome is the verdict of the networks and of Stripe's rules on a charge.
type Outcome struct {
	NetworkStatus string  `json:"network_status"`
	Reason        *string `json:"reason"`
	RiskLevel     string  `json:"risk_level"`
	RiskScore     int     `json:"risk_score"`
	SellerMessage string  `json:"seller_message"`
	Type          string  `json:"type"`
}

// BillingDetails are the billing details of a method and its charges.
type BillingDetails struct {
	Address Address `json:"address"`
	Email   *string `json:"email"`
	Name    *string `json:"name"`
	Phone   *string `json:"phone"`
}

// Address is a postal address.
type Address struct {
	City       *string `json:"city"`
	Country    *string `json:"country"`
	Line1      *string `json:"line1"`
	Line2      *string `json:"line2"`
	PostalCode *string `json:"postal_code"`
	State      *string `json:"state"`
}

// The statuses of a refund.
const (
	RefundPending   = "pending"
	RefundSucceeded = "succeeded"
	RefundFailed    = "failed"
)

// Refund returns money of a charge to the customer.
type Refund struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"`
	BalanceTransaction        *string           `json:"balance_transaction"` // nil if nothing was captured
	Charge                    string            `json:"charge"`
	Created                   int64             `json:"created"`
	Currency                  string            `json:"currency"`
	FailureBalanceTransaction string            `json:"failure_balance_transaction,omitempty"`
	FailureReason             string            `json:"failure_reason,omitempty"`
	Metadata                  map[string]string `json:"metadata"`
	PaymentIntent             string            `json:"payment_intent"`
	Reason                    *string           `json:"reason"`
	Status                    string            `json:"status"`
}

// RefundReasons are the reasons that a caller can specify.
var RefundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}
