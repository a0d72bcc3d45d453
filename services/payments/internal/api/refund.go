package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// refunds defines how the handlers read and show a refund.
func (a *API) refunds() rest.Collection[domain.RefundID, domain.Refund] {
	return rest.Collection[domain.RefundID, domain.Refund]{
		Parse: ids.Parse[domain.RefundPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "refunds", NotFound: domain.ErrRefundNotFound, Load: store.Refund, MaxWait: a.MaxWait,
		Show: func(r domain.Refund, mode api.Mode) rest.Response {
			return rest.Response{ID: r.ID.String(), Version: r.Version, Body: view.Refund(r, mode)}
		},
	}
}

func (a *API) createRefund(c *gin.Context) error {
	body, err := httpx.Body[api.RefundCreate](c)
	if err != nil {
		return err
	}
	return rest.OperateNew(c, a.refunds(), a.Refunds.Create(c.Request.Context(), fromRefundCreate(body)))
}

func (a *API) getRefund(c *gin.Context) error { return rest.Get(c, a.refunds()) }

func (a *API) listRefunds(c *gin.Context) error {
	filter, none := refundFilter(httpx.Query(c))
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Refund], error) {
		if none {
			return page.Rows[domain.Refund]{}, nil
		}
		return store.Refunds(ctx, db, filter, r)
	}, func(r domain.Refund) page.SortKey {
		return page.SortKey{ID: r.ID.UUID(), Created: r.CreatedAt, Updated: r.UpdatedAt}
	}, view.Refund)
}

// refundFilter reads the filters. none is true if an id among them is malformed, so that no row matches.
func refundFilter(q contract.Query) (f store.RefundFilter, none bool) {
	for _, s := range q.List("status") {
		f.Status = append(f.Status, domain.RefundStatus(s))
	}
	f.Metadata = q.Map("metadata")
	if q.Has("payment_intent_id") {
		id, err := domain.ParseGatewayID(q.String("payment_intent_id"))
		if err != nil {
			return f, true
		}
		f.Intent = id
	}
	f.Booking, none = rest.FilterID[ids.BookingPrefix](q, "booking_id")
	return f, none
}

func fromRefundCreate(b api.RefundCreate) domain.RefundInput {
	in := domain.RefundInput{
		Intent: patch.FromNullable(b.PaymentIntentId).Pointer(), Booking: patch.FromNullable(b.BookingId).Pointer(),
		Amount: patch.FromNullable(b.AmountMinor).Pointer(), Reason: string(b.Reason), Method: domain.ByGateway,
		Reference: patch.FromNullable(b.Reference).Pointer(),
	}
	if b.Method != nil {
		in.Method = domain.RefundMethod(*b.Method)
	}
	if m := patch.FromNullable(b.Metadata).Pointer(); m != nil {
		in.Metadata = *m
	}
	return in
}

const owedPage = 25

// listOwedRefunds returns one page of the owed refunds that could not be created, and their total number.
func (a *API) listOwedRefunds(c *gin.Context) (err error) {
	ctx := c.Request.Context()
	r := page.Request{Limit: httpx.Query(c).Int("limit", owedPage)}
	if r.After, err = page.ParsePosition(httpx.Query(c).String("cursor")); err != nil {
		return err
	}
	rows, err := store.OwedRefunds(ctx, a.DB.Read(ctx), r)
	if err != nil {
		return err
	}
	out := internalapi.OwedRefunds{Data: make([]internalapi.OwedRefund, 0, len(rows.Items)), HasMore: rows.More}
	for _, o := range rows.Items {
		out.Data = append(out.Data, view.OwedRefund(o))
	}
	if rows.More {
		last := rows.Items[len(rows.Items)-1]
		next := page.Position{At: last.CreatedAt, ID: last.ID.UUID()}.Text()
		out.NextCursor = &next
	}
	if out.Count, err = store.CountOwedRefunds(ctx, a.DB.Read(ctx)); err != nil {
		return err
	}
	return rest.Object(c, out)
}

func owedID(c *gin.Context) (domain.OwedID, error) {
	id, err := ids.Parse[domain.OwedPrefix](c.Param("id"))
	if err != nil {
		return id, domain.ErrOwedNotFound
	}
	return id, nil
}

func (a *API) getOwedRefund(c *gin.Context) error {
	id, err := owedID(c)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	o, err := store.OwedRefund(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	return rest.Object(c, view.OwedRefund(o))
}

func (a *API) closeOwedRefund(c *gin.Context) error {
	body, err := httpx.Body[internalapi.OwedRefundClose](c)
	if err != nil {
		return err
	}
	note := strings.TrimSpace(body.Note)
	if note == "" {
		return apperr.Field("note", "Must not be empty.")
	}
	return a.changeOwed(c, func(ctx context.Context, tx pg.Tx, id domain.OwedID, match patch.Precondition) (domain.OwedRefund, error) {
		return a.Owed.Close(ctx, tx, id, match, note)
	})
}

func (a *API) retryOwedRefund(c *gin.Context) error { return a.changeOwed(c, a.Owed.Retry) }

// changeOwed applies an action to the owed refund in the path, once per Idempotency-Key.
func (a *API) changeOwed(
	c *gin.Context, verb func(ctx context.Context, tx pg.Tx, id domain.OwedID, match patch.Precondition) (domain.OwedRefund, error),
) error {
	id, err := owedID(c)
	if err != nil {
		return err
	}
	match, err := httpx.ParseIfMatch(c.Request.Header)
	if err != nil {
		return err
	}
	response, err := idemstore.Run(c.Request.Context(), a.Idempotency, func(ctx context.Context, tx pg.Tx) (domain.OwedRefund, error) {
		return verb(ctx, tx, id, match)
	}, func(_ context.Context, o domain.OwedRefund) (idem.Response, error) {
		o.Note = "" // the response is stored, and an erasure would not find it
		body, err := contract.Encode(view.OwedRefund(o))
		return idem.Response{Status: http.StatusOK, Body: body}, err
	})
	if err != nil {
		return err
	}
	return httpx.Send(c, response)
}
