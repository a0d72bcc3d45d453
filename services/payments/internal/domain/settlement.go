package domain

import (
	"crypto/sha256"

	"holdfast.dev/libs/money"
)

// Settlement is what bookings says of a booking that was cancelled or has expired.
type Settlement struct {
	Lost               bool // it is cancelled or has expired
	AutoRefund         bool
	RefundLatePayments bool
	Due                *money.Amount // what is to be refunded by the policy; nil: it says nothing
	Counted            map[GatewayID]Counted
}

// Counted says how a payment was counted by its booking. One that is absent is still to be counted.
type Counted struct {
	Late bool // the booking was cancelled or had expired before
}

// Cause is why a refund is made without a request.
type Cause string

// The causes of automatic refunds.
const (
	BookingCancelled Cause = "cancelled" // one refund for the booking
	PaidLate         Cause = "late"      // one refund for the payment
)

// AutomaticRefund is a refund that is made without a request, once for its cause and subject.
type AutomaticRefund struct {
	Cause   Cause
	Subject string // the id of the booking, or the gateway's of the payment
	Booking BookingID
	Intent  GatewayID // "" for the booking's
	Wanted  int64
	Code    string // the currency of what is wanted
}

// automaticCredential stands for a client's in the key of a refund that no client has asked for.
const automaticCredential = "svc:payments"

// Refund is the refund over the intents, of what is wanted as far as it is left and the gateway takes it.
// ErrNothingToRefund when that is nothing.
func (a AutomaticRefund) Refund(intents []Intent) (RefundInput, error) {
	var left int64
	used := 0
	for _, p := range intents {
		if p.Amount.Currency == a.Code && p.Refundable() > 0 && used < MaxAllocations {
			left, used = left+p.Refundable(), used+1
		}
	}
	amount := taken(min(a.Wanted, left), a.Code)
	if amount <= 0 {
		return RefundInput{}, ErrNothingToRefund
	}
	sum := sha256.Sum256([]byte(string(a.Cause) + ":" + a.Subject))
	booking := a.Booking.String()
	in := RefundInput{
		Booking: &booking, Amount: &amount, Reason: "requested_by_customer",
		Request: Request{Credential: automaticCredential, Key: string(a.Cause) + ":" + a.Subject, Fingerprint: sum[:]},
	}
	if a.Intent != "" {
		intent := string(a.Intent)
		in.Booking, in.Intent = nil, &intent
	}
	return in, nil
}

// taken is the largest amount up to minor that the gateway takes.
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
