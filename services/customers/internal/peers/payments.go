package peers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/peer"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/domain"
)

// refundWithin is how long to wait for payments, which waits for the payment gateway. Then the refund is pending.
const refundWithin = 5 * time.Second

// Payments calls the payments service on behalf of the caller in the context. It implements app.PaymentService.
type Payments struct{ Client *peer.Client }

// RefundNote creates the refund of a credit note. The credit note identifies the refund, so a repeated call needs no key. Only a
// conflict or an invalid amount is a refusal: the previous version of payments does not know the call and responds with 404.
func (p *Payments) RefundNote(ctx context.Context, n domain.CreditNote) (domain.NoteRefund, error) {
	var got internalapi.CreditNoteRefund
	in := internalapi.CreditNoteRefundCreate{CreditNoteID: n.ID.String(), BookingID: n.BookingID.String(), Currency: n.Refund.Currency, IfVersion: -1}
	for _, part := range n.Parts {
		in.Parts = append(in.Parts, internalapi.CreditNoteRefundPartCreate{PaymentIntentID: part.Charge, Amount: part.Amount})
	}
	err := p.Client.Do(ctx, http.MethodPost, "/internal/v1/credit-note-refunds", in, &got, peer.Within(refundWithin))
	var refused *apperr.Error
	if errors.As(err, &refused) && (refused.Code == "nothing_to_refund" || refused.Kind == apperr.Invalid) {
		return domain.NoteRefund{}, &domain.RefusedRefundError{Err: err}
	}
	if err != nil {
		return domain.NoteRefund{}, err
	}
	r := domain.NoteRefund{ID: got.ID, Status: got.Status, Shown: got.Shown, Version: got.Version}
	for _, part := range got.Parts {
		r.Parts = append(r.Parts, domain.NoteRefundPart{Charge: part.PaymentIntentID, Amount: part.Amount, Status: part.Status})
	}
	return r, nil
}
