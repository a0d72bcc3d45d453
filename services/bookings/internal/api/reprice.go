package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
)

func (a *API) repriceBooking(c *gin.Context) error {
	id, err := bookingID(c)
	if err != nil {
		return err
	}
	reply, err := a.Bookings.Reprice(c.Request.Context(), id, httpx.IfMatch(c))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}
