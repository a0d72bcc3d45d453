package domain

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
)

// RefundInput is the body of a create.
type RefundInput struct {
	Intent  *string
	Booking *string
	Amount  *int64
	Reason  string
	// Method is how the money is returned. The gateway returns it for ByGateway; any other method records money that was handed back.
	Method    RefundMethod
	Reference *string
	Metadata  json.RawMessage
}

// requestedByCustomer is Stripe's reason of a refund that the platform creates.
const requestedByCustomer = "requested_by_customer"

// MaxAllocations is the largest number of intents of one refund. The contract has the same limit for allocations.
const MaxAllocations = 20

// Check verifies that the request names either an intent or a booking.
func (in RefundInput) Check() error {
	switch {
	case in.Intent == nil && in.Booking == nil:
		return apperr.Field("payment_intent_id", "Is required without booking_id.")
	case in.Intent != nil && in.Booking != nil:
		return apperr.Field("payment_intent_id", "Must not be sent with booking_id. Send only one of them.")
	case in.Booking == nil && in.Method != ByGateway:
		return apperr.Field("booking_id", "Is required with this method.")
	}
	return nil
}

// NamedIntent reads the id of the intent. It returns "" if the request names the booking. A malformed id counts as unknown.
func (in RefundInput) NamedIntent() (GatewayID, error) {
	if in.Intent == nil {
		return "", nil
	}
	id, err := ParseGatewayID(*in.Intent)
	if err != nil {
		return "", ErrIntentNotFound
	}
	return id, nil
}

// NamedBooking reads the id of the booking. A malformed id counts as unknown.
func (in RefundInput) NamedBooking() (BookingID, error) {
	id, err := ids.Parse[ids.BookingPrefix](*in.Booking)
	if err != nil {
		return BookingID{}, ErrBookingNotFound
	}
	return id, nil
}

// Refundable returns the amount of an intent that can still be refunded.
func (p Intent) Refundable() int64 {
	return max(0, p.Received-max(p.Refunded, p.RefundedElsewhere+p.RefundReserved))
}

// NewRefund returns a refund over intents, in their order, before the gateway is called. intents can contain one more than a refund
// can cover. most is what is left on the account of their booking. A disputed intent is left out, and ErrDisputed is returned if there is
// no other. real is the start of the first attempts.
func NewRefund(in RefundInput, intents []Intent, most int64, real time.Time) (Refund, error) {
	var left int64
	used := make([]Intent, 0, MaxAllocations)
	more, disputed := false, false
	for _, p := range intents {
		switch {
		case p.Disputed && p.Refundable() > 0:
			disputed = true
		case p.Refundable() == 0 || len(used) > 0 && p.Amount.Currency != used[0].Amount.Currency:
		case len(used) == MaxAllocations:
			more = true
		default:
			used, left = append(used, p), left+p.Refundable()
		}
	}
	switch {
	case len(used) == 0 && disputed:
		return Refund{}, ErrDisputed
	case len(used) == 0:
		return Refund{}, ErrNothingToRefund
	}
	code := used[0].Amount.Currency
	if left = byCard(min(left, most), code); left == 0 { // cash that was handed back can leave less than the gateway's unit
		return Refund{}, ErrNothingToRefund
	}
	amount, err := in.amount(left, more, code)
	if err != nil {
		return Refund{}, err
	}
	r := Refund{
		ID: ids.New[RefundPrefix](), Status: RefundCreating, Amount: money.Amount{Minor: amount, Currency: code}, Reason: in.Reason,
		Method: ByGateway, Reference: in.Reference, BookingID: used[0].BookingID, Metadata: in.Metadata, Version: 1,
	}
	if in.Intent != nil {
		r.Intent = used[0].GatewayID
	}
	for _, p := range used {
		part := min(amount, p.Refundable())
		if part == 0 {
			break
		}
		amount -= part
		r.Allocations = append(r.Allocations, Allocation{
			ID: ids.New[AllocationPrefix](), IntentID: p.ID, Intent: p.GatewayID, Minor: part, Status: RefundCreating, Attempt: 1, AttemptedAt: real,
		})
	}
	return r.Resume(real), nil
}

// NewManualRefund returns a refund that was handed back to the payer of a booking, in the currency of its account.
func NewManualRefund(in RefundInput, account MoneyAccount, customer CustomerID) (Refund, error) {
	amount := account.Left()
	if amount == 0 {
		return Refund{}, ErrNothingToRefund
	}
	if in.Amount != nil {
		amount = *in.Amount
	}
	return Refund{
		ID: ids.New[RefundPrefix](), Status: RefundSucceeded, Shown: true, Amount: money.Amount{Minor: amount, Currency: account.Currency},
		Reason: in.Reason, Method: in.Method, Reference: in.Reference, BookingID: account.Booking, CustomerID: customer, Metadata: in.Metadata, Version: 1,
	}, account.Backed(amount, "amount_minor")
}

func (in RefundInput) amount(left int64, more bool, code string) (int64, error) {
	switch {
	case in.Amount == nil && more:
		return 0, apperr.Field("amount_minor",
			"Is required because more than %d payments can be refunded. Must be at most %d, the amount left on the newest %d.", MaxAllocations, left, MaxAllocations)
	case in.Amount == nil:
		return left, nil
	case *in.Amount > left && more:
		return 0, apperr.Field("amount_minor", "Must be at most %d, the amount left on the newest %d payments. Refund the others afterwards.",
			left, MaxAllocations)
	case *in.Amount > left:
		return 0, apperr.Field("amount_minor", "Must be at most the amount left to refund, %d.", left)
	}
	if _, err := ToStripe(*in.Amount, code); err != nil {
		return 0, apperr.Field("amount_minor", "%s.", sentence(err))
	}
	return *in.Amount, nil
}
