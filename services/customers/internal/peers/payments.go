package peers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
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

// Account reads an account with the entries that changed after a version.
func (p *Payments) Account(ctx context.Context, of domain.AccountRef, since int64) (domain.Account, error) {
	path := "?currency=" + url.QueryEscape(of.Currency) + "&since=" + strconv.FormatInt(since, 10)
	return p.account(ctx, http.MethodGet, of, path, nil)
}

// RecordReceipt records a payment. The payment identifies it, so a repeated call needs no key.
func (p *Payments) RecordReceipt(ctx context.Context, r domain.Receipt, version int64) (domain.Account, error) {
	return p.account(ctx, http.MethodPost, r.Account, "/receipts", internalapi.ReceiptCreate{
		PaymentID: r.ID.String(), InvoiceID: r.Invoice.String(), Amount: r.Amount, Currency: r.Account.Currency, Method: r.Method,
		ReceivedAt: r.PaidAt.UTC(), IfVersion: version,
	})
}

// ReverseReceipt reverses a payment.
func (p *Payments) ReverseReceipt(ctx context.Context, of domain.AccountRef, id domain.PaymentID, version int64) (domain.Account, error) {
	return p.account(ctx, http.MethodPost, of, "/receipts/"+id.String()+"/reverse", internalapi.ReceiptReversal{Currency: of.Currency, Since: version})
}

// RecordReturn records the manual refund of a credit note. The credit note identifies it, so a repeated call needs no key.
func (p *Payments) RecordReturn(ctx context.Context, n domain.CreditNote, version int64) (domain.Account, error) {
	return p.account(ctx, http.MethodPost, n.Account(), "/returns", internalapi.ReturnCreate{
		CreditNoteID: n.ID.String(), InvoiceID: n.InvoiceID.String(), Amount: n.Refund.Minor, Currency: n.Refund.Currency, IfVersion: version,
	})
}

// account makes a call about an account. The previous version of payments does not know the calls and responds with 404.
func (p *Payments) account(ctx context.Context, method string, of domain.AccountRef, path string, body any) (domain.Account, error) {
	var got internalapi.Account
	if err := p.Client.Do(ctx, method, "/internal/v1/accounts/"+of.ID()+path, body, &got); err != nil {
		return domain.Account{}, moved(err)
	}
	return domain.FromAccount(got)
}

// moved returns domain.ErrAccountMoved for that response of payments, and apperr.ErrUnavailable for a call that payments does not know.
func moved(err error) error {
	var e *apperr.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == domain.ErrAccountMoved.Code:
		return domain.ErrAccountMoved
	case e.Kind == apperr.NotFound:
		return apperr.ErrUnavailable.WithCause(err)
	}
	return err
}

// RefundNote creates the refund of a credit note. The credit note identifies the refund, so a repeated call needs no key. Only a
// conflict or an invalid amount is a refusal: the previous version of payments does not know the call and responds with 404.
func (p *Payments) RefundNote(ctx context.Context, n domain.CreditNote, version int64) (domain.NoteRefund, error) {
	var got internalapi.CreditNoteRefund
	in := internalapi.CreditNoteRefundCreate{CreditNoteID: n.ID.String(), BookingID: n.BookingID.String(), Currency: n.Refund.Currency, IfVersion: version}
	for _, part := range n.Parts {
		in.Parts = append(in.Parts, internalapi.CreditNoteRefundPartCreate{PaymentIntentID: part.Charge, Amount: part.Amount})
	}
	err := p.Client.Do(ctx, http.MethodPost, "/internal/v1/credit-note-refunds", in, &got, peer.Within(refundWithin))
	var refused *apperr.Error
	if errors.As(err, &refused) && (refused.Code == "nothing_to_refund" || refused.Kind == apperr.Invalid) {
		return domain.NoteRefund{}, &domain.RefusedRefundError{Err: err}
	}
	if err != nil {
		return domain.NoteRefund{}, moved(err)
	}
	r := domain.NoteRefund{ID: got.ID, Status: got.Status, Shown: got.Shown, Version: got.Version}
	for _, part := range got.Parts {
		r.Parts = append(r.Parts, domain.NoteRefundPart{Charge: part.PaymentIntentID, Amount: part.Amount, Status: part.Status})
	}
	return r, nil
}
