package domain

import (
	"fmt"
	"math"
	"time"

	"holdfast.dev/libs/money"
)

// Settlement is the data that bookings returns about a canceled or expired booking.
type Settlement struct {
	Lost               bool // canceled or expired
	AutoRefund         bool
	RefundLatePayments bool
	Due                *money.Amount // the amount to be refunded by the policy; nil: not specified
	Code               string        // the booking's currency
	Ended              AccountPoint  // of the booking's account when the booking was canceled
	EndedAt            *time.Time    // when the hold expired; nil: Ended determines what is late
}

// AccountPoint is a point in the history of an account. Payments received after it are late, and returns after it count toward what a
// policy owes.
type AccountPoint struct {
	AccountVersion  int64
	AccountReturned int64 // what had been returned, including refunds that had begun
}

// Unknown is the point of a booking that expired: all returns count.
var Unknown = AccountPoint{AccountVersion: math.MaxInt64}

// Cause is the reason for a refund that nobody requested.
type Cause string

// The causes of automatic refunds.
const (
	BookingCancelled Cause = "cancelled" // one refund for the booking
	PaidLate         Cause = "late"      // one refund for the payment
)

// OwedState is the state of an owed refund.
type OwedState string

// The states of an owed refund. A done one is open again when a refund of its payments fails later.
const (
	OwedOpen   OwedState = "open"
	OwedDone   OwedState = "done"   // refunds have returned the amount
	OwedClosed OwedState = "closed" // a person closed it
)

// OwedRefund is what a policy owes a payer. There is one per cause and subject, until refunds have returned it or a person closes
// it.
type OwedRefund struct {
	AccountPoint // of the booking's account when the booking was canceled

	ID        OwedID
	Cause     Cause
	Subject   string // the id of the booking, or the gateway's id of the payment
	Booking   BookingID
	Amount    int64  `db:"wanted"`
	Code      string // the currency of Amount
	State     OwedState
	Remaining int64 // amount that no refund had finally returned at the last check
	Tries     int   // number of refunds created for it
	RefundID  RefundID
	DueAt     *time.Time // when a worker checks it again; nil: never automatically
	RetryAt   *time.Time // when payments with a failed refund can be retried
	FailedAt  *time.Time // when it could not be returned for the first time; nil: nothing failed
	Failure   *Failure   // the last failure
	ClosedAt  *time.Time
	ClosedBy  string
	Note      string // of the person who closed it
	Version   int64
	CreatedAt time.Time
}

// OwedPause is the time until a payment with a failed refund is retried, or a refund in progress is checked again.
const OwedPause = 24 * time.Hour

// nothingLeft is the failure of an owed refund that card payments can no longer return.
var nothingLeft = Failure{Code: ErrNothingToRefund.Code, Message: "Nothing is left to refund by card."}

// OwedMoney is the state of the money of an owed refund.
type OwedMoney struct {
	Returned int64 // what counts toward the owed refund, including refunds in progress, no matter who requested them
	UnderWay int64 // refunds of its payments whose outcome is not final
	Left     int64 // what the booking's account has received and not returned
}

// Intent returns the payment that is owed back, or "" if the owed refund is a share of the booking's payments.
func (o OwedRefund) Intent() GatewayID {
	if o.Cause == PaidLate {
		return GatewayID(o.Subject)
	}
	return ""
}

// Look returns the owed refund after a check of its payments, and the amount that no refund covers yet. Nothing is owed beyond what
// the account has left, and an amount below the gateway's unit is not owed. An owed refund that is open again retains the failure that
// its payments still wait for.
func (o OwedRefund) Look(m OwedMoney, now time.Time) (next OwedRefund, left int64) {
	open := min(o.Amount-max(0, m.Returned), m.Left)
	again, before := now.Add(OwedPause), o.State
	left, o.Remaining = byCard(open, o.Code), min(o.Amount, max(0, open+m.UnderWay))
	o.State, o.DueAt = OwedOpen, &again
	if left == 0 && m.UnderWay == 0 {
		o.State, o.DueAt = OwedDone, nil
	} else if before == OwedDone && !o.Waits(now) {
		o.RetryAt, o.FailedAt, o.Failure = nil, nil, nil
	}
	return o, left
}

// Seen returns a text of what a person sees of the owed refund.
func (o OwedRefund) Seen() string {
	if o.Failure == nil {
		return fmt.Sprint(o.State, o.Remaining)
	}
	return fmt.Sprint(o.State, o.Remaining, o.Failure.Code)
}

// NextTry returns when a worker checks the owed refund again and can retry what failed. It returns nil if this never happens
// automatically.
func (o OwedRefund) NextTry() *time.Time {
	if o.DueAt != nil && o.Waits(*o.DueAt) {
		return o.RetryAt
	}
	return o.DueAt
}

// Waits reports whether payments with a failed refund are not retried yet.
func (o OwedRefund) Waits(now time.Time) bool { return o.RetryAt != nil && now.Before(*o.RetryAt) }

// SelectPayments orders the payments for the next refund. Disputed ones and those with a failed refund come last. The latter are omitted
// while the owed refund waits.
func (o OwedRefund) SelectPayments(intents []Intent, failed map[IntentID]bool, now time.Time) []Intent {
	var first, last []Intent
	for _, p := range intents {
		switch {
		case p.Amount.Currency != o.Code:
		case !failed[p.ID] && !p.Disputed:
			first = append(first, p)
		case !failed[p.ID] || !o.Waits(now):
			last = append(last, p)
		}
	}
	return append(first, last...)
}

// Stuck returns the owed refund if no payment can return the rest. It waits until a payment is retried. If no payment can be
// retried, it waits for a person.
func (o OwedRefund) Stuck(failed bool, now time.Time) OwedRefund {
	if failed && o.Waits(now) {
		o.DueAt = o.RetryAt
		return o
	}
	o.Failure = &nothingLeft
	if o.FailedAt == nil {
		o.FailedAt = &now
	}
	return o
}

// Refund returns a refund of as much of left as the intents contain and the gateway accepts. Intents above the limit of one refund
// are left to the next one. If the amount is 0, Refund returns ErrNothingToRefund.
func (o OwedRefund) Refund(intents []Intent, left int64, now time.Time) (Refund, error) {
	var have int64
	used := make([]Intent, 0, MaxAllocations)
	for _, p := range intents {
		p.Disputed = false // the gateway decides, and its refusal is shown to a person
		if p.Refundable() > 0 && len(used) < MaxAllocations {
			have, used = have+p.Refundable(), append(used, p)
		}
	}
	amount := byCard(min(left, have), o.Code)
	if amount == 0 {
		return Refund{}, ErrNothingToRefund
	}
	in := RefundInput{Amount: &amount, Reason: requestedByCustomer, Method: ByGateway}
	if intent := string(o.Intent()); intent != "" {
		in.Intent = &intent
	}
	r, err := NewRefund(in, used, amount, now)
	r.Owed = o.ID
	return r, err
}

// Close closes an owed refund. Closing it again changes nothing.
func (o OwedRefund) Close(by, note string, now time.Time) (OwedRefund, error) {
	if o.State == OwedDone {
		return o, ErrOwedDone
	}
	if o.State == OwedOpen {
		o.State, o.DueAt, o.RetryAt, o.ClosedAt, o.ClosedBy, o.Note = OwedClosed, nil, nil, &now, by, note
	}
	return o, nil
}

// Retry returns the owed refund after a person requested an immediate retry.
func (o OwedRefund) Retry(now time.Time) (OwedRefund, error) {
	if o.State != OwedOpen {
		return o, ErrOwedDone
	}
	o.DueAt, o.RetryAt = &now, nil
	return o, nil
}
