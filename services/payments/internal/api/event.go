package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

// receiveEvent accepts an event of the payment gateway, which the gateway process forwards with its original bytes and signature.
func (a *API) receiveEvent(c *gin.Context) error {
	id, err := ids.Parse[domain.AccountPrefix](c.Param("account"))
	if err != nil {
		return domain.ErrAccountNotFound
	}
	body, err := httpx.ReadBody(c, nil)
	if err != nil {
		return err
	}
	if err := a.Events.Receive(c.Request.Context(), id, body, c.GetHeader("Stripe-Signature")); err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", []byte(`{"received":true}`))
}
