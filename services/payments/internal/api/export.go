package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// exportPage is the maximum page size in proto/internal/payments.yaml.
const exportPage = page.DownloadRows

// intentsOfCustomer returns one page of the intents of a customer, or of their ids.
func (a *API) intentsOfCustomer(c *gin.Context) error {
	ctx := c.Request.Context()
	customer, r, err := exportRequest(c)
	if err != nil {
		return err
	}
	rows, err := store.Intents(ctx, a.DB.Read(ctx), store.IntentFilter{Customer: &customer}, r)
	if err != nil {
		return err
	}
	out, err := pageOfCustomer(ctx, rows, httpx.Query(c).String("ids_only") == "true")
	if err != nil {
		return err
	}
	return rest.Object(c, out)
}

// refundsOfCustomer returns one page of the refunds of a customer's intents.
func (a *API) refundsOfCustomer(c *gin.Context) error {
	ctx := c.Request.Context()
	customer, r, err := exportRequest(c)
	if err != nil {
		return err
	}
	rows, err := store.Refunds(ctx, a.DB.Read(ctx), store.RefundFilter{Customer: &customer}, r)
	if err != nil {
		return err
	}
	var out internalapi.RefundsOfCustomer
	bodies, more, err := page.Fit(rows, func(r domain.Refund) api.Refund { return view.Refund(r, httpx.Mode(ctx)) })
	if err != nil {
		return err
	}
	if out.Data = bodies; more {
		last := rows.Items[len(bodies)-1]
		out.Next = page.Position{At: last.CreatedAt, ID: last.ID.UUID()}.Text()
	}
	return rest.Object(c, out)
}

// exportRequest reads the customer and the requested page.
func exportRequest(c *gin.Context) (customer domain.CustomerID, r page.Request, err error) {
	if customer, err = ids.Parse[ids.CustomerPrefix](httpx.Query(c).String("customer_id")); err != nil {
		return customer, r, apperr.Field("customer_id", "Must be an ID that starts with cu_.")
	}
	r.Limit = exportPage
	r.After, err = page.ParsePosition(httpx.Query(c).String("cursor"))
	return customer, r, err
}

func pageOfCustomer(ctx context.Context, rows page.Rows[domain.Intent], idsOnly bool) (out internalapi.PaymentIntentsOfCustomer, err error) {
	n, more := len(rows.Items), rows.More
	if idsOnly {
		for _, p := range rows.Items {
			out.IDs = append(out.IDs, string(p.GatewayID))
		}
	} else {
		out.Data, more, err = page.Fit(rows, func(p domain.Intent) api.PaymentIntent { return view.Intent(p, httpx.Mode(ctx)) })
		n = len(out.Data)
	}
	if err == nil && more {
		last := rows.Items[n-1]
		out.Next = page.Position{At: last.CreatedAt, ID: last.ID.UUID()}.Text()
	}
	return out, err
}
