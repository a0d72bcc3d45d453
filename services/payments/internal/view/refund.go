package view

import (
	"time"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
)

// Refund returns the public body of a refund in the caller's mode.
func Refund(r domain.Refund, mode api.Mode) api.Refund {
	list := make([]api.RefundAllocation, 0, len(r.Allocations))
	for _, a := range r.Allocations {
		list = append(list, api.RefundAllocation{
			PaymentIntentId: string(a.Intent), Amount: a.Minor, GatewayRefundId: textOrNull(a.GatewayID),
			Status: api.RefundStatus(a.Status.Shown()), Failure: failure(a.Failure),
		})
	}
	return api.Refund{
		Id:              r.ID.String(),
		Object:          api.RefundObjectRefund,
		Status:          api.RefundStatus(r.Status.Shown()),
		Amount:          r.Amount.Minor,
		Currency:        r.Amount.Currency,
		Reason:          api.RefundReason(r.Reason),
		Method:          api.RefundMethod(r.Method),
		Reference:       api.OrNull(r.Reference),
		BookingId:       r.BookingID.String(),
		PaymentIntentId: textOrNull(string(r.Intent)),
		CreditNoteId:    textOrNull(r.CreditNote.String()),
		Allocations:     list,
		Metadata:        orEmpty(r.Metadata),
		Mode:            mode,
		Version:         r.Version,
		CreatedAt:       r.CreatedAt.UTC(),
		UpdatedAt:       r.UpdatedAt.UTC(),
	}
}

// NoteRefund returns the internal body of the refund of a credit note.
func NoteRefund(r domain.Refund) internalapi.CreditNoteRefund {
	out := internalapi.CreditNoteRefund{
		ID: r.ID.String(), Status: string(r.Status.Shown()), Shown: r.Shown, Version: r.Version,
		Parts: make([]internalapi.CreditNoteRefundPart, len(r.Allocations)),
	}
	for i, a := range r.Allocations {
		out.Parts[i] = internalapi.CreditNoteRefundPart{PaymentIntentID: string(a.Intent), Amount: a.Minor, Status: string(a.Status.Shown())}
	}
	return out
}

func textOrNull(s string) nullable.Nullable[string] {
	if s == "" {
		return api.Null[string]()
	}
	return nullable.NewNullableWithValue(s)
}

// OwedRefund returns the internal body of an owed refund.
func OwedRefund(o domain.OwedRefund) internalapi.OwedRefund {
	out := internalapi.OwedRefund{
		ID: o.ID.String(), Cause: string(o.Cause), BookingID: o.Booking.String(), Amount: o.Amount, RemainingAmount: o.Remaining, Currency: o.Code,
		Status: string(o.State), Tries: o.Tries, FailedAt: utc(o.FailedAt), NextTryAt: utc(o.NextTry()), ClosedAt: utc(o.ClosedAt), Version: o.Version,
		CreatedAt: o.CreatedAt.UTC(),
	}
	if intent := string(o.Intent()); intent != "" {
		out.PaymentIntentID = &intent
	}
	if o.State == domain.OwedDone {
		out.FailedAt = nil
	} else if o.Failure != nil {
		out.Failure = &internalapi.OwedRefundFailure{Code: o.Failure.Code, Message: o.Failure.Message}
	}
	if o.ClosedAt != nil {
		out.ClosedBy = &o.ClosedBy
	}
	if o.Note != "" {
		out.Note = &o.Note
	}
	return out
}

func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	t := at.UTC()
	return &t
}
