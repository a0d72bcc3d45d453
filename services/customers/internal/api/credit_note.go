package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// creditNotes defines how the handlers read and show a credit note.
func (a *API) creditNotes() rest.Collection[domain.CreditNoteID, domain.CreditNote] {
	return rest.Collection[domain.CreditNoteID, domain.CreditNote]{
		Parse: ids.Parse[ids.CreditNotePrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "credit-notes", NotFound: domain.ErrCreditNoteNotFound, Load: store.CreditNote,
		Show: func(n domain.CreditNote, mode api.Mode) rest.Response {
			return rest.Response{ID: n.ID.String(), Version: n.Version, Body: view.CreditNote(n, mode)}
		},
	}
}

// createCreditNote creates a credit note of the invoice in the path. A refund through the payment gateway requires the scope of
// refunds as well.
func (a *API) createCreditNote(c *gin.Context) error {
	body, err := httpx.Body[api.CreditNoteCreate](c)
	if err != nil {
		return err
	}
	in := fromCreditNoteCreate(body)
	ctx := c.Request.Context()
	const scope = "payments:write"
	if in.Way == domain.RefundGateway && !slices.Contains(caller.FromContext(ctx).Scopes, scope) {
		return domain.MissingScope(scope)
	}
	invoice, err := a.invoices().ID(c)
	if err != nil {
		return err
	}
	err = rest.OperateNew(c, a.creditNotes(), a.CreditNotes.Create(ctx, invoice, in, httpx.IfMatch(c)))
	if errors.Is(err, domain.ErrInvoiceNotFound) {
		return cmp.Or(a.invoices().Exists(ctx, c.Param("id")), err) // it may belong to the other mode
	}
	return err
}

func (a *API) getCreditNote(c *gin.Context) error { return rest.Get(c, a.creditNotes()) }

func (a *API) listCreditNotes(c *gin.Context) error {
	filter, none := creditNoteFilter(httpx.Query(c))
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.CreditNote], error) {
		if none {
			return page.Rows[domain.CreditNote]{}, nil
		}
		return store.CreditNotes(ctx, db, filter, r)
	}, func(n domain.CreditNote) page.SortKey {
		return page.SortKey{ID: n.ID.UUID(), Created: n.CreatedAt, Updated: n.UpdatedAt}
	}, view.CreditNote)
}

// creditNoteFilter reads the filters. none is true if an id among them is malformed, so that no row matches.
func creditNoteFilter(q contract.Query) (f store.CreditNoteFilter, none bool) {
	var bad [3]bool
	f.Invoice, bad[0] = rest.FilterID[ids.InvoicePrefix](q, "invoice_id")
	f.Customer, bad[1] = rest.FilterID[ids.CustomerPrefix](q, "customer_id")
	f.Booking, bad[2] = rest.FilterID[ids.BookingPrefix](q, "booking_id")
	return f, slices.Contains(bad[:], true)
}

func (a *API) getCreditNotePdf(c *gin.Context) error {
	ctx := c.Request.Context()
	release, err := printSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	n, err := a.creditNotes().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	v, err := store.Invoice(ctx, a.DB.Read(ctx), n.InvoiceID)
	if err != nil {
		return err
	}
	return a.print(c, func(info domain.Invoicing, zone *time.Location) view.Document {
		return view.PrintedCreditNote(n, v, info, zone)
	})
}

func fromCreditNoteCreate(b api.CreditNoteCreate) domain.CreditNoteInput {
	in := domain.CreditNoteInput{Lines: fromLines(b.LineItems), Reason: patch.FromNullable(b.Reason).Pointer(), Way: domain.RefundNone}
	if amount := patch.FromNullable(b.Amount).Pointer(); amount != nil {
		in.Amount = &money.Amount{Minor: amount.Amount, Currency: amount.Currency}
	}
	if b.Refund != nil {
		in.Way = domain.RefundWay(*b.Refund)
	}
	return in
}
