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

// refunds says how the handlers read and show a refund.
func (a *API) refunds() rest.Collection[domain.RefundID, domain.Refund] {
	return rest.Collection[domain.RefundID, domain.Refund]{
		Parse: ids.Parse[domain.RefundPrefix],
		DB:    a.DB, Answers: a.Answers, Path: "refunds", NotFound: domain.ErrRefundNotFound, Load: store.Refund,
		Show: func(r domain.Refund, mode api.Mode) rest.Answer {
			return rest.Answer{ID: r.ID.String(), Version: r.Version, Body: view.Refund(r, mode)}
		},
	}
}

// createRefund looks for the stored answer first, as createIntent does.
func (a *API) createRefund(c *gin.Context) error {
	if prior, err := a.Answers.Check(c.Request.Context()); err != nil {
		return err
	} else if prior != nil {
		return httpx.Send(c, *prior)
	}
	return rest.CreateVia(c, a.refunds(), fromRefundCreate,
		func(ctx context.Context, transact pg.Transact[domain.Refund], in domain.RefundInput) error {
			in.Request = requestOf(ctx)
			return a.Refunds.Create(ctx, transact, in, a.Patience)
		})
}

func (a *API) getRefund(c *gin.Context) error { return rest.Get(c, a.refunds()) }

func (a *API) listRefunds(c *gin.Context) error {
	filter, none := refundFilter(httpx.Query(c))
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Refund], error) {
		if none {
			return page.Rows[domain.Refund]{}, nil
		}
		return store.Refunds(ctx, db, filter, r)
	}, func(r domain.Refund) page.Place {
		return page.Place{ID: r.ID.UUID(), Created: r.CreatedAt, Updated: r.UpdatedAt}
	}, view.Refund)
}

// refundFilter reads the filters; none when an id among them is malformed, so that no row matches.
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
		Amount: patch.FromNullable(b.AmountMinor).Pointer(), Reason: string(b.Reason),
	}
	if m := patch.FromNullable(b.Metadata).Pointer(); m != nil {
		in.Metadata = *m
	}
	return in
}
