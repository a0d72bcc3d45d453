package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// getMoney returns an account of money, with the entries after a version.
func (a *API) getMoney(c *gin.Context) error {
	key, err := domain.ParseMoneyKey(c.Param("id"), httpx.Query(c).String("currency"))
	if err != nil {
		return err
	}
	var since *int64
	if q := httpx.Query(c); q.Has("since") {
		version := int64(q.Int("since", 0))
		since = &version
	}
	ctx := c.Request.Context()
	account, err := store.MoneyAccount(ctx, a.DB.Read(ctx), key, since)
	if err != nil {
		return err
	}
	return rest.Object(c, view.MoneyAccount(account))
}

// recordReceipt records a payment outside the gateway. The payment is the key, and does not expire.
func (a *API) recordReceipt(c *gin.Context) error {
	return moveMoney(c, func(ctx context.Context, body internalapi.ReceiptCreate) (domain.MoneyAccount, error) {
		key, err := domain.ParseMoneyKey(c.Param("id"), body.Currency)
		if err != nil {
			return domain.MoneyAccount{}, err
		}
		in := domain.Receipt{MoneyKey: key, Minor: body.Amount, Method: domain.EntryMethod(body.Method), At: body.ReceivedAt, IfVersion: body.IfVersion}
		if in.Payment, err = ids.Parse[ids.PaymentPrefix](body.PaymentID); err != nil {
			return domain.MoneyAccount{}, apperr.Field("payment_id", "Must be an ID that starts with pay_.")
		}
		if in.Invoice, err = invoiceID(body.InvoiceID); err != nil {
			return domain.MoneyAccount{}, err
		}
		return a.Money.Receive(ctx, in)
	})
}

// reverseReceipt reverses a payment outside the gateway.
func (a *API) reverseReceipt(c *gin.Context) error {
	return moveMoney(c, func(ctx context.Context, body internalapi.ReceiptReversal) (domain.MoneyAccount, error) {
		key, err := domain.ParseMoneyKey(c.Param("id"), body.Currency)
		if err != nil {
			return domain.MoneyAccount{}, err
		}
		payment, err := domain.ParsePayment(c.Param("payment_id"))
		if err != nil {
			return domain.MoneyAccount{}, err
		}
		return a.Money.Reverse(ctx, key, payment, body.Since)
	})
}

// recordReturn records what a credit note has returned outside the gateway.
func (a *API) recordReturn(c *gin.Context) error {
	return moveMoney(c, func(ctx context.Context, body internalapi.ReturnCreate) (domain.MoneyAccount, error) {
		key, err := domain.ParseMoneyKey(c.Param("id"), body.Currency)
		if err != nil {
			return domain.MoneyAccount{}, err
		}
		in := domain.NoteReturn{MoneyKey: key, Minor: body.Amount, IfVersion: body.IfVersion}
		if in.Note, err = ids.Parse[ids.CreditNotePrefix](body.CreditNoteID); err != nil {
			return domain.MoneyAccount{}, apperr.Field("credit_note_id", "Must be an ID that starts with cn_.")
		}
		if in.Invoice, err = invoiceID(body.InvoiceID); err != nil {
			return domain.MoneyAccount{}, err
		}
		return a.Money.Return(ctx, in)
	})
}

// moveMoney decodes a body, applies it and returns the account.
func moveMoney[Body any](c *gin.Context, apply func(ctx context.Context, body Body) (domain.MoneyAccount, error)) error {
	body, err := httpx.Body[Body](c)
	if err != nil {
		return err
	}
	account, err := apply(c.Request.Context(), body)
	if err != nil {
		return err
	}
	return rest.Object(c, view.MoneyAccount(account))
}

func invoiceID(text string) (domain.InvoiceID, error) {
	id, err := ids.Parse[ids.InvoicePrefix](text)
	if err != nil {
		return id, apperr.Field("invoice_id", "Must be an ID that starts with inv_.")
	}
	return id, nil
}
