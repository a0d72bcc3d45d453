package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/view"
)

// refundCreditNote creates the refund of a credit note, or returns the one that exists.
func (a *API) refundCreditNote(c *gin.Context) error {
	body, err := httpx.Body[internalapi.CreditNoteRefundCreate](c)
	if err != nil {
		return err
	}
	intents, amounts := make([]string, len(body.Parts)), make([]int64, len(body.Parts))
	for i, p := range body.Parts {
		intents[i], amounts[i] = p.PaymentIntentID, p.Amount
	}
	in, err := domain.ParseNoteRefund(body.CreditNoteID, body.BookingID, intents, amounts)
	if err != nil {
		return err
	}
	in.Currency, in.IfVersion = body.Currency, body.IfVersion
	r, err := a.Refunds.RefundNote(c.Request.Context(), in)
	if err != nil {
		return err
	}
	return rest.Object(c, view.NoteRefund(r))
}
