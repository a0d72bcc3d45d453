package domain

// The statuses of a charge.
const (
	ChargeFailed    = "failed"
	ChargePending   = "pending"
	ChargeSucceeded = "succeeded"
)

// Charge is one attempt to collect an intent's amount.
type Charge struct {
	ID                            string            `json:"id"`
	Object                        string            `json:"object"`
	Amount                        int64             `json:"amount"`
	AmountCaptured                int64             `json:"amount_captured"`
	AmountRefunded                int64             `json:"amount_refunded"` // includes amounts that a capture or a cancellation released
	Application                   *string           `json:"application"`
	ApplicationFee                *string           `json:"application_fee"`
	ApplicationFeeAmount          *int64            `json:"application_fee_amount"`
	BalanceTransaction            *string           `json:"balance_transaction"`
	BillingDetails                BillingDetails    `json:"billing_details"`
	CalculatedStatementDescriptor *string           `json:"calculated_statement_descriptor"`
	Captured                      bool              `json:"captured"`
	Created                       int64             `json:"created"`
	Currency                      string            `json:"currency"`
	Customer                      *string           `json:"customer"`
	Description                   *string           `json:"description"`
	Disputed                      bool              `json:"disputed"`
	FailureBalanceTransaction     *string           `json:"failure_balance_transaction"`
	FailureCode                   *string           `json:"failure_code"`
	FailureMessage                *string           `json:"failure_message"`
	FraudDetails                  struct{}          `json:"fraud_details"`
	Livemode                      bool              `json:"livemode"`
	Metadata                      map[string]string `json:"metadata"`
	OnBehalfOf                    *string           `json:"on_behalf_of"`
	Outcome                       *Outcome          `json:"outcome"`
	Paid                          bool              `json:"paid"`
	PaymentIntent                 string            `json:"payment_intent"`
	PaymentMethod                 string            `json:"payment_method"`
	PaymentMethodDetails          map[string]any    `json:"payment_method_details"`
	RadarOptions                  struct{}          `json:"radar_options"`
	ReceiptEmail                  *string           `json:"receipt_email"`
	ReceiptNumber                 *string           `json:"receipt_number"`
	ReceiptURL                    *string           `json:"receipt_url"`
	Refunded                      bool              `json:"refunded"`
	Review                        *string           `json:"review"`
	Shipping                      *string           `json:"shipping"`
	SourceTransfer                *string           `json:"source_transfer"`
	StatementDescriptor           *string           `json:"statement_descriptor"`
	StatementDescriptorSuffix     *string           `json:"statement_descriptor_suffix"`
	Status                        string            `json:"status"`
	TransferData                  *string           `json:"transfer_data"`
	TransferGroup                 *string           `json:"transfer_group"`
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
	ReceiptNumber             *string           `json:"receipt_number"`
	SourceTransferReversal    *string           `json:"source_transfer_reversal"`
	Status                    string            `json:"status"`
	TransferReversal          *string           `json:"transfer_reversal"`
}

// RefundReasons are the reasons that a caller can specify.
var RefundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}

// CancelReasons are the reasons that a caller can specify to cancel an intent.
var CancelReasons = []string{"duplicate", "fraudulent", "requested_by_customer", "abandoned"}
