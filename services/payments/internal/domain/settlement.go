package domain

import (
	"fmt"
	"time"

	"holdfast.dev/libs/money"
)

// Settlement is the data that bookings returns about a canceled or expired booking.
type Settlement struct {
	Lost               bool // it is cancelled or has expired
	AutoRefund         bool
	RefundLatePayments bool
	Due                *money.Amount // what is to be refunded by the policy; nil: it says nothing
	Counted            map[GatewayID]Counted
}

// Counted reports how a payment was counted by its booking. A payment that is absent is not counted yet.
type Counted struct {
	Late bool // the booking was cancelled or had expired before
}

// InTime are the payments that were counted before the booking was lost.
func (s Settlement) InTime() (list []GatewayID) {
	for id, counted := range s.Counted {
		if !counted.Late {
			list = append(list, id)
		}
	}
	return list
}

// Cause is why a refund is created without a request.
type Cause string

// The causes of automatic refunds.
const (
	BookingCancelled Cause = "cancelled" // one refund for the booking
	PaidLate         Cause = "late"      // one refund for the payment
)

// OwedState is the state of an owed refund.
type OwedState string

// The states of an owed refund. One that is done is open again when a refund of its payments fails later.
const (
	OwedOpen   OwedState = "open"
	OwedDone   OwedState = "done"   // refunds have returned it
	OwedClosed OwedState = "closed" // a person has ended it
)

// OwedRefund is what a policy owes a payer, once for its cause and subject, until refunds have returned it or a person closes it.
type OwedRefund struct {
	ID        OwedID // zero: a version of this service before has written the row, and it is still to be taken over
	Cause     Cause
	Subject   string // the id of the booking, or the gateway's of the payment
	Booking   BookingID
	Amount    int64     `db:"wanted"`
	Code      string    // the currency of Amount
	Since     time.Time // refunds of its payments created from then on count, no matter who requested them
	Elsewhere int64     // what others had refunded of its payments before
	State     OwedState
	Remaining int64 // what no refund had finally returned when it was last looked at
	Tries     int   // refunds that were created for it
	RefundID  RefundID
	DueAt     *time.Time // when a worker checks it again; nil: never automatically
	RetryAt   *time.Time // until then no payment is tried again whose refund has failed
	FailedAt  *time.Time // since when it cannot be returned; nil: nothing has failed
	Failure   *Failure   // the last one
	ClosedAt  *time.Time
	ClosedBy  string
	Note      string // of the person who has closed it
	Version   int64
	CreatedAt time.Time
}

// AllRefunds is OwedRefund.Since where all refunds of its payments count.
var AllRefunds = time.Unix(0, 0)

// OwedPause is the time after which a payment whose refund has failed is retried, and a refund in progress is checked again.
const OwedPause = 24 * time.Hour

// nothingLeft is the failure of an owed refund that card payments can no longer return.
var nothingLeft = Failure{Code: ErrNothingToRefund.Code, Message: "Nothing is left to refund by card."}

// OwedMoney is how the payments of an owed refund stand.
type OwedMoney struct {
	Returned  int64 // by refunds since OwedRefund.Since, those under way included
	UnderWay  int64 // the part of Returned whose outcome is not final
	Elsewhere int64 // what others have refunded, in all
}

// Intent returns the payment that is owed back, or "" if the owed refund is a share of the booking's.
func (o OwedRefund) Intent() GatewayID {
	if o.Cause == PaidLate {
		return GatewayID(o.Subject)
	}
	return ""
}

// Look is the owed refund after a look at its payments, and how much no refund is under way for. What is less than the gateway's unit is
// not owed. One that is open again retains the failure that its payments still wait for.
func (o OwedRefund) Look(m OwedMoney, now time.Time) (next OwedRefund, left int64) {
	open := o.Amount - m.Returned - max(0, m.Elsewhere-o.Elsewhere)
	again, before := now.Add(OwedPause), o.State
	left, o.Remaining = taken(open, o.Code), max(0, open+m.UnderWay)
	o.State, o.DueAt = OwedOpen, &again
	if left == 0 && m.UnderWay == 0 {
		o.State, o.DueAt = OwedDone, nil
	} else if before == OwedDone && !o.Waits(now) {
		o.RetryAt, o.FailedAt, o.Failure = nil, nil, nil
	}
	return o, left
}

// Seen is what a person sees of it.
func (o OwedRefund) Seen() string {
	if o.Failure == nil {
		return fmt.Sprint(o.State, o.Remaining)
	}
	return fmt.Sprint(o.State, o.Remaining, o.Failure.Code)
}

// NextTry returns when a worker checks the owed refund again and may retry what has failed. It returns nil if that never happens
// automatically.
func (o OwedRefund) NextTry() *time.Time {
	if o.DueAt != nil && o.Waits(*o.DueAt) {
		return o.RetryAt
	}
	return o.DueAt
}

// Waits reports whether payments whose refund has failed are left alone for now.
func (o OwedRefund) Waits(now time.Time) bool { return o.RetryAt != nil && now.Before(*o.RetryAt) }

// SelectPayments orders the payments over which the next refund goes: those whose refund has failed come last, and not at all while it waits.
func (o OwedRefund) SelectPayments(intents []Intent, failed map[IntentID]bool, now time.Time) []Intent {
	var first, last []Intent
	for _, p := range intents {
		switch {
		case p.Amount.Currency != o.Code:
		case !failed[p.ID]:
			first = append(first, p)
		case !o.Waits(now):
			last = append(last, p)
		}
	}
	return append(first, last...)
}

// Stuck is the owed refund when no payment can return what is left: it waits until a payment is tried again, and where none has
// anything left, for a person.
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

// Refund is a refund over the intents, of what is left as far as they have it and the gateway takes it; more intents than one refund
// goes over are for the next one. ErrNothingToRefund when that is nothing.
func (o OwedRefund) Refund(intents []Intent, left int64, now time.Time) (Refund, error) {
	var have int64
	used := make([]Intent, 0, MaxAllocations)
	for _, p := range intents {
		if p.Refundable() > 0 && len(used) < MaxAllocations {
			have, used = have+p.Refundable(), append(used, p)
		}
	}
	amount := taken(min(left, have), o.Code)
	if amount == 0 {
		return Refund{}, ErrNothingToRefund
	}
	in := RefundInput{Amount: &amount, Reason: "requested_by_customer"}
	if intent := string(o.Intent()); intent != "" {
		in.Intent = &intent
	}
	r, err := NewRefund(in, used, now)
	r.Owed = o.ID
	return r, err
}

// Close ends an owed refund; closing it again changes nothing.
func (o OwedRefund) Close(by, note string, now time.Time) (OwedRefund, error) {
	if o.State == OwedDone {
		return o, ErrOwedDone
	}
	if o.State == OwedOpen {
		o.State, o.DueAt, o.RetryAt, o.ClosedAt, o.ClosedBy, o.Note = OwedClosed, nil, nil, &now, by, note
	}
	return o, nil
}

// Retry is the owed refund when a person does not want to wait for the next try.
func (o OwedRefund) Retry(now time.Time) (OwedRefund, error) {
	if o.State != OwedOpen {
		return o, ErrOwedDone
	}
	o.DueAt, o.RetryAt = &now, nil
	return o, nil
}

// taken is the largest amount up to minor that the gateway takes; 0 when there is none.
func taken(minor int64, code string) int64 {
	for _, unit := range []int64{1, 10, 100} {
		if down := minor - minor%unit; down > 0 {
			if _, err := ToStripe(down, code); err == nil {
				return down
			}
		}
	}
	return 0
}
