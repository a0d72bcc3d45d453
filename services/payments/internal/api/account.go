package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/view"
)

// getAccount returns the account that is connected in the caller's tenant and mode.
func (a *API) getAccount(c *gin.Context) error {
	found, err := a.Gateways.Show(c.Request.Context())
	if err != nil {
		return noAccount(err)
	}
	return rest.Object(c, view.Account(found))
}

// connectAccount connects the account that the keys belong to.
func (a *API) connectAccount(c *gin.Context) error {
	body, err := httpx.Body[internalapi.GatewayKeys](c)
	if err != nil {
		return err
	}
	keys := domain.Keys{Publishable: body.PublishableKey, Secret: domain.Secret(body.SecretKey)}
	if body.WebhookSecret != nil {
		keys.Webhook = domain.Secret(*body.WebhookSecret)
	}
	ctx := c.Request.Context()
	connected, err := a.Gateways.Connect(ctx, caller.FromContext(ctx).Live(), keys)
	if err != nil {
		return keyRefused(err)
	}
	return rest.Object(c, view.Account(connected))
}

// disconnectAccount ends the connection.
func (a *API) disconnectAccount(c *gin.Context) error {
	if _, err := a.Gateways.Disconnect(c.Request.Context()); err != nil {
		return noAccount(err)
	}
	return httpx.JSON(c, http.StatusNoContent, "", nil)
}

// noAccount replaces the error of a missing account, because here the account is the resource itself.
func noAccount(err error) error {
	if errors.Is(err, domain.ErrNotConfigured) {
		return domain.ErrNoAccount
	}
	return err
}

// keyRefused returns the response for the payment gateway's error about a secret key.
func keyRefused(err error) error {
	var key *app.KeyError
	if !errors.As(err, &key) {
		return err
	}
	var refused *domain.RefusedError
	if errors.As(err, &refused) {
		return apperr.Field("secret_key", "The payment gateway does not accept the key.").WithCause(err)
	}
	return domain.ErrGateway.WithCause(err)
}
