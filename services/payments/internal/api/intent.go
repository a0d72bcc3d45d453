package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// intents defines how the handlers read and show an intent.
func (a *API) intents() rest.Collection[domain.GatewayID, domain.Intent] {
	return a.shown(view.Intent)
}

// newIntents is like intents but includes the client secret, for the response to a creation.
func (a *API) newIntents() rest.Collection[domain.GatewayID, domain.Intent] {
	return a.shown(view.NewIntent)
}

func (a *API) shown(body func(domain.Intent, api.Mode) api.PaymentIntent) rest.Collection[domain.GatewayID, domain.Intent] {
	return rest.Collection[domain.GatewayID, domain.Intent]{
		Parse: domain.ParseGatewayID,
		DB:    a.DB, Idempotency: a.Idempotency, Path: "payment-intents", NotFound: domain.ErrIntentNotFound, Load: store.Intent, MaxWait: a.MaxWait,
		Show: func(p domain.Intent, mode api.Mode) rest.Response {
			return rest.Response{ID: string(p.GatewayID), Version: p.Version, Body: body(p, mode)}
		},
	}
}

func (a *API) createIntent(c *gin.Context) error {
	body, err := httpx.Body[api.PaymentIntentCreate](c)
	if err != nil {
		return err
	}
	return rest.OperateNew(c, a.newIntents(), a.Intents.Create(c.Request.Context(), fromIntentCreate(body)))
}

// getIntent looks up the gateway first. Without a gateway, it does not look up any id.
func (a *API) getIntent(c *gin.Context) error {
	if err := a.configured(c.Request.Context()); err != nil {
		return err
	}
	return rest.Get(c, a.intents())
}

func (a *API) intentExists(ctx context.Context, id string) error {
	if err := a.configured(ctx); err != nil {
		return err
	}
	return a.intents().Exists(ctx, id)
}

func (a *API) configured(ctx context.Context) error {
	_, err := a.Accounts.Shown(ctx, a.DB.Read(ctx))
	return err
}

func (a *API) cancelIntent(c *gin.Context) error {
	id, err := a.intents().ID(c)
	if err != nil {
		return err
	}
	return rest.Operate(c, a.intents(), id, a.Intents.Cancel(id, httpx.IfMatch(c)))
}

func (a *API) captureIntent(c *gin.Context) error {
	id, err := a.intents().ID(c)
	if err != nil {
		return err
	}
	body, err := httpx.Body[api.PaymentIntentCapture](c)
	if err != nil {
		return err
	}
	return rest.Operate(c, a.intents(), id, a.Intents.Capture(id, patch.FromNullable(body.AmountMinor).Pointer(), httpx.IfMatch(c)))
}

func (a *API) listIntents(c *gin.Context) error {
	filter, none := intentFilter(httpx.Query(c))
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Intent], error) {
		if none {
			return page.Rows[domain.Intent]{}, nil
		}
		return store.Intents(ctx, db, filter, r)
	}, func(p domain.Intent) page.SortKey {
		return page.SortKey{ID: p.ID.UUID(), Created: p.CreatedAt, Updated: p.UpdatedAt}
	}, view.Intent)
}

// intentFilter reads the filters. none is true if the id among them is malformed, so that no row matches.
func intentFilter(q contract.Query) (f store.IntentFilter, none bool) {
	f.Metadata = q.Map("metadata")
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.Status(s))
	}
	f.Booking, none = rest.FilterID[ids.BookingPrefix](q, "booking_id")
	return f, none
}

func fromIntentCreate(b api.PaymentIntentCreate) domain.IntentInput {
	in := domain.IntentInput{
		Booking: b.BookingId, Amount: patch.FromNullable(b.AmountMinor).Pointer(), Currency: patch.FromNullable(b.Currency).Pointer(),
		Invoice: patch.FromNullable(b.InvoiceId).Pointer(), Description: patch.FromNullable(b.Description).Pointer(),
		ReceiptEmail: patch.FromNullable(b.ReceiptEmail).Pointer(),
	}
	if m := patch.FromNullable(b.Metadata).Pointer(); m != nil {
		in.Metadata = *m
	}
	if m := patch.FromNullable(b.CaptureMethod).Pointer(); m != nil {
		in.CaptureMethod = domain.CaptureMethod(*m)
	}
	return in
}
