package domain

import (
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
)

// MaxNoteIntents is the largest number of intents that a refund of a credit note can name. The internal contract has the same limit.
const MaxNoteIntents = 200

// NoteRefund is a refund that a credit note requests.
type NoteRefund struct {
	Note    CreditNoteID
	Booking BookingID
	Intents []GatewayID // of the booking, in the order in which they are refunded
	Amount  money.Amount
}

// ParseNoteRefund reads the ids of a request. A malformed id of an intent counts as unknown.
func ParseNoteRefund(note, booking string, intents []string, amount money.Amount) (in NoteRefund, err error) {
	in.Amount = amount
	if in.Note, err = ids.Parse[ids.CreditNotePrefix](note); err != nil {
		return in, apperr.Field("credit_note_id", "Must be an ID that starts with cn_.")
	}
	if in.Booking, err = ids.Parse[ids.BookingPrefix](booking); err != nil {
		return in, ErrBookingNotFound
	}
	for i, text := range intents {
		id, err := ParseGatewayID(text)
		if err != nil {
			return in, apperr.Field(fmt.Sprintf("payment_intent_ids.%d", i), "Must be an ID that starts with pi_.")
		}
		in.Intents = append(in.Intents, id)
	}
	return in, nil
}

// Refund returns the refund over the intents, in the order of the request, before the gateway is called. real is the start of the
// first attempts.
func (in NoteRefund) Refund(intents []Intent, real time.Time) (Refund, error) {
	usable := slices.DeleteFunc(slices.Clone(intents), func(p Intent) bool { return p.Amount.Currency != in.Amount.Currency })
	slices.SortStableFunc(usable, func(a, b Intent) int {
		return slices.Index(in.Intents, a.GatewayID) - slices.Index(in.Intents, b.GatewayID)
	})
	r, err := NewRefund(RefundInput{Amount: &in.Amount.Minor, Reason: requestedByCustomer}, usable, real)
	r.CreditNote = in.Note
	return r, err
}
