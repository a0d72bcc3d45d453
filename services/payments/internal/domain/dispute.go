package domain

import (
	"slices"
	"time"

	"holdfast.dev/libs/money"
)

// DisputeStatus is the gateway's state of a dispute.
type DisputeStatus string

// The states in which a dispute is open or lost. In all others, such as won and warning_closed, the operator keeps the payment.
const (
	DisputeNeedsResponse        DisputeStatus = "needs_response"
	DisputeUnderReview          DisputeStatus = "under_review"
	DisputeWarningNeedsResponse DisputeStatus = "warning_needs_response" // an inquiry that has not withdrawn any money
	DisputeWarningUnderReview   DisputeStatus = "warning_under_review"
	DisputeLost                 DisputeStatus = "lost"
	DisputeWon                  DisputeStatus = "won"
)

var openDisputes = []DisputeStatus{DisputeNeedsResponse, DisputeUnderReview, DisputeWarningNeedsResponse, DisputeWarningUnderReview}

// Open reports whether the dispute has not ended.
func (s DisputeStatus) Open() bool { return slices.Contains(openDisputes, s) }

// Holds reports whether the payment is in doubt or lost.
func (s DisputeStatus) Holds() bool { return s.Open() || s == DisputeLost }

// Outcome returns how a dispute ended: won, lost, or withdrawn for every other end. It returns "" if the dispute is open.
func (s DisputeStatus) Outcome() string {
	switch {
	case s.Open():
		return ""
	case s == DisputeWon, s == DisputeLost:
		return string(s)
	default:
		return "withdrawn"
	}
}

// DisputeOutcomes contains all outcomes.
var DisputeOutcomes = []string{"won", "lost", "withdrawn"}

// Dispute is a payer's claim for the money of a charge, as the gateway reports it.
type Dispute struct {
	ID       string // dp_… or du_…
	Charge   string // ch_…
	Amount   money.Amount
	Reason   string // in the gateway's words
	Status   DisputeStatus
	DueBy    *time.Time // deadline for the operator's response
	OpenedAt time.Time
	ClosedAt *time.Time // when its end was read
	Version  int64      // of the row
}

// Same reports whether both are the same state of a dispute at the gateway.
func (d Dispute) Same(o Dispute) bool {
	due := d.DueBy == o.DueBy || d.DueBy != nil && o.DueBy != nil && d.DueBy.Equal(*o.DueBy)
	return d.Charge == o.Charge && d.Amount == o.Amount && d.Reason == o.Reason && d.Status == o.Status && due
}

// FailedCharge is a charge that the payer's bank refused.
type FailedCharge struct {
	ID      string // ch_…
	Failure Failure
}
