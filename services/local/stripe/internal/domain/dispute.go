package domain

import "slices"

// The statuses of a dispute.
const (
	NeedsResponse = "needs_response"
	Won           = "won"
	Lost          = "lost"

	// An inquiry precedes a dispute and withdraws no money.
	WarningNeedsResponse = "warning_needs_response"
	WarningClosed        = "warning_closed"
)

// Dispute is a customer's claim for the money of a charge.
type Dispute struct {
	ID                       string               `json:"id"`
	Object                   string               `json:"object"`
	Amount                   int64                `json:"amount"`
	BalanceTransactions      []BalanceTransaction `json:"balance_transactions"`
	Charge                   string               `json:"charge"`
	Created                  int64                `json:"created"`
	Currency                 string               `json:"currency"`
	EnhancedEligibilityTypes []string             `json:"enhanced_eligibility_types"`
	Evidence                 struct{}             `json:"evidence"`
	EvidenceDetails          EvidenceDetails      `json:"evidence_details"`
	IsChargeRefundable       bool                 `json:"is_charge_refundable"`
	Livemode                 bool                 `json:"livemode"`
	Metadata                 map[string]string    `json:"metadata"`
	PaymentIntent            string               `json:"payment_intent"`
	Reason                   string               `json:"reason"`
	Status                   string               `json:"status"`
}

// Closed reports whether the dispute has ended.
func (d *Dispute) Closed() bool { return slices.Contains([]string{Won, Lost, WarningClosed}, d.Status) }

// Inquiry reports whether the dispute is an inquiry.
func (d *Dispute) Inquiry() bool {
	return d.Status == WarningNeedsResponse || d.Status == WarningClosed
}

// EvidenceDetails describes the evidence.
type EvidenceDetails struct {
	DueBy               int64    `json:"due_by"`
	EnhancedEligibility struct{} `json:"enhanced_eligibility"`
	HasEvidence         bool     `json:"has_evidence"`
	PastDue             bool     `json:"past_due"`
	SubmissionCount     int      `json:"submission_count"`
}

// The types of balance transactions.
const (
	BalanceCharge        = "charge"
	BalancePayment       = "payment"
	BalanceRefund        = "refund"
	BalancePaymentRefund = "payment_refund"
	BalanceRefundFailure = "refund_failure"
	BalanceAdjustment    = "adjustment"
)

// BalanceTransaction is a movement of an account's balance, in the currency of the source object.
type BalanceTransaction struct {
	ID                string      `json:"id"`
	Object            string      `json:"object"`
	Amount            int64       `json:"amount"`
	AvailableOn       int64       `json:"available_on"`
	BalanceType       string      `json:"balance_type"`
	Created           int64       `json:"created"`
	Currency          string      `json:"currency"`
	Description       *string     `json:"description"`
	Fee               int64       `json:"fee"`
	FeeDetails        []FeeDetail `json:"fee_details"`
	Net               int64       `json:"net"`
	ReportingCategory string      `json:"reporting_category"`
	Source            string      `json:"source"`
	Status            string      `json:"status"`
	Type              string      `json:"type"`
}

// FeeDetail is a part of a fee.
type FeeDetail struct {
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Description string `json:"description"`
	Type        string `json:"type"`
}

// Fees are the fees that the account pays for each charge and each dispute.
type Fees struct {
	BasisPoints int64 // of a charge; 290 is 2.9 %
	Fixed       int64 // per charge, in the currency's smallest unit
	Dispute     int64 // per dispute, in the currency's smallest unit
}

// OfCharge returns the fee of a charge, rounded half up. It is at most the charge's amount.
func (f Fees) OfCharge(amount int64) int64 {
	return min((amount*f.BasisPoints+5000)/10000+f.Fixed, amount)
}
