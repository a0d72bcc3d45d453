package domain

import (
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
)

// NoteRefund is a refund that a credit note requests.
type NoteRefund struct {
	Note     CreditNoteID
	Booking  BookingID
	Parts    []NotePart
	Currency string
	// IfVersion is the version of the booking's account on which the amounts rest, or AnyVersion.
	IfVersion int64
}

// NotePart is the amount to refund of an intent of the booking.
type NotePart struct {
	Intent GatewayID
	Minor  int64
}

// ParseNoteRefund reads the ids of a request.
func ParseNoteRefund(note, booking string, intents []string, amounts []int64) (in NoteRefund, err error) {
	if in.Note, err = ids.Parse[ids.CreditNotePrefix](note); err != nil {
		return in, apperr.Field("credit_note_id", "Must be an ID that starts with cn_.")
	}
	if in.Booking, err = ids.Parse[ids.BookingPrefix](booking); err != nil {
		return in, ErrBookingNotFound
	}
	for i, text := range intents {
		field := fmt.Sprintf("parts.%d.payment_intent_id", i)
		id, err := ParseGatewayID(text)
		if err != nil {
			return in, apperr.Field(field, "Must be an ID that starts with pi_.")
		}
		if slices.ContainsFunc(in.Parts, func(p NotePart) bool { return p.Intent == id }) {
			return in, apperr.Field(field, "Must be named once.")
		}
		in.Parts = append(in.Parts, NotePart{Intent: id, Minor: amounts[i]})
	}
	return in, nil
}

// Intents returns the intents of the parts.
func (in NoteRefund) Intents() []GatewayID {
	list := make([]GatewayID, len(in.Parts))
	for i, p := range in.Parts {
		list[i] = p.Intent
	}
	return list
}

// Refund returns the refund of the parts before the gateway is called. intents are those of the booking that have a refundable
// amount. real is the start of the first attempts.
func (in NoteRefund) Refund(intents []Intent, real time.Time) (Refund, error) {
	r := Refund{
		ID: ids.New[RefundPrefix](), Status: RefundCreating, Amount: money.Amount{Currency: in.Currency}, Reason: requestedByCustomer, Method: ByGateway,
		BookingID: in.Booking, CreditNote: in.Note, Version: 1,
	}
	for _, part := range in.Parts {
		i := slices.IndexFunc(intents, func(p Intent) bool { return p.GatewayID == part.Intent && p.Amount.Currency == in.Currency })
		if i < 0 {
			return Refund{}, ErrNothingToRefund
		}
		if intents[i].Disputed {
			return Refund{}, ErrDisputed
		}
		if left := intents[i].Refundable(); part.Minor > left {
			return Refund{}, apperr.Field("parts", "Of %s, at most %d is left to refund.", part.Intent, left)
		}
		if _, err := ToStripe(part.Minor, in.Currency); err != nil {
			return Refund{}, apperr.Field("parts", "%s.", sentence(err))
		}
		r.Amount.Minor += part.Minor
		r.Allocations = append(r.Allocations, Allocation{
			ID: ids.New[AllocationPrefix](), IntentID: intents[i].ID, Intent: part.Intent, Minor: part.Minor, Status: RefundCreating,
			Attempt: 1, AttemptedAt: real,
		})
	}
	return r.Resume(real), nil
}
