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

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// exportPage is the page size that proto/internal/bookings.yaml specifies.
const exportPage = page.DownloadRows

// bookingsOfCustomer returns one page of a customer's bookings, or of their ids.
func (a *API) bookingsOfCustomer(c *gin.Context) error {
	ctx := c.Request.Context()
	customer, err := ids.Parse[ids.CustomerPrefix](httpx.Query(c).String("customer_id"))
	if err != nil {
		return apperr.Field("customer_id", "Must be an ID that starts with cu_.")
	}
	r := page.Request{Limit: exportPage}
	if r.After, err = page.ParsePosition(httpx.Query(c).String("cursor")); err != nil {
		return err
	}
	read := a.bodiesOfCustomer
	if httpx.Query(c).String("ids_only") == "true" {
		read = a.idsOfCustomer
	}
	out, err := read(ctx, customer, r)
	if err != nil {
		return err
	}
	return rest.Object(c, out)
}

func (a *API) bodiesOfCustomer(ctx context.Context, customer domain.CustomerID, r page.Request) (out internalapi.BookingsOfCustomer, err error) {
	now := a.now(ctx)
	rows, err := store.Bookings(ctx, a.DB.Read(ctx), store.BookingFilter{Now: now, Customer: &customer}, r)
	if err != nil {
		return out, err
	}
	data, more, err := page.Fit(rows, func(b domain.Booking) api.Booking { return view.Booking(b.At(now), httpx.Mode(ctx)) })
	if err != nil {
		return out, err
	}
	out.Data = data
	if more {
		last := rows.Items[len(data)-1]
		out.Next = page.Position{At: last.CreatedAt, ID: last.ID.UUID()}.Text()
	}
	return out, nil
}

func (a *API) idsOfCustomer(ctx context.Context, customer domain.CustomerID, r page.Request) (out internalapi.BookingsOfCustomer, err error) {
	rows, err := store.BookingIDs(ctx, a.DB.Read(ctx), customer, r)
	if err != nil {
		return out, err
	}
	for _, b := range rows.Items {
		out.IDs = append(out.IDs, b.ID.String())
	}
	if rows.More {
		last := rows.Items[len(rows.Items)-1]
		out.Next = page.Position{At: last.CreatedAt, ID: last.ID.UUID()}.Text()
	}
	return out, nil
}
