package api

import (
	"errors"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
	"holdfast.dev/services/bookings/internal/view"
)

// listBookingPayments returns one page of the payments of a booking.
func (a *API) listBookingPayments(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := ids.Parse[domain.BookingPrefix](c.Param("id"))
	if err != nil {
		return domain.ErrBookingNotFound
	}
	// The booking's id is part of the list's name, so a cursor is valid only for one booking.
	req, err := a.Pages.Parse(ctx, httpx.Query(c), "listBookingPayments "+id.String())
	if err != nil {
		return errors.Join(a.bookings().Exists(ctx, id.String()), err)
	}
	rows, err := store.Payments(ctx, req.Reader(ctx, a.DB), id, req)
	if errors.Is(err, domain.ErrBookingNotFound) { // it may exist in the other mode
		err = errors.Join(a.bookings().Exists(ctx, id.String()), err)
	}
	if err != nil {
		return err
	}
	return page.Send(c, a.Pages, req, rows, func(p domain.BookingPayment) page.SortKey {
		return page.SortKey{ID: p.Row, Created: p.CreatedAt, Updated: p.CreatedAt}
	}, view.BookingPayment)
}
