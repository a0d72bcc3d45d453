package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/money"
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
	in, err := domain.ParseNoteRefund(body.CreditNoteID, body.BookingID, body.PaymentIntentIDs, money.Amount{Minor: body.AmountMinor, Currency: body.Currency})
	if err != nil {
		return err
	}
	r, err := a.Refunds.RefundNote(c.Request.Context(), in)
	if err != nil {
		return err
	}
	return rest.Object(c, view.NoteRefund(r))
}
