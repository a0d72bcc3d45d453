// Package api contains the HTTP handlers by operationId. A handler decodes the request, calls one use case and encodes the result.
package api

import (
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto"

	"holdfast.dev/services/payments/internal/app"
	"holdfast.dev/services/payments/internal/store"
)

// API holds what the handlers use.
type API struct {
	DB          *pg.DB
	Idempotency *idemstore.Store
	Accounts    store.Accounts
	Gateways    *app.Accounts
	Intents     *app.Intents
	Refunds     *app.Refunds
	Owed        *app.OwedRefunds
	Money       *app.Money
	Events      *app.Events
	MaxWait     time.Duration // how long a request waits for another request's call
	Pages       *page.Codec
	Server      *httpx.Server
}

// Mount registers the contract's operations, and the calls of other services.
func (a *API) Mount(e *gin.Engine) error {
	e.POST("/internal/v1/gateway-events/:account", a.Server.Internal(a.receiveEvent, "gateway"))
	err := a.Server.MountInternal(e, proto.InternalPayments, map[string]httpx.Route{
		"listPaymentIntentsOfCustomer": {Handle: a.intentsOfCustomer},
		"listRefundsOfCustomer":        {Handle: a.refundsOfCustomer},
		"createCreditNoteRefund":       {Handle: a.refundCreditNote},
		"getAccount":                   {Handle: a.getMoney},
		"recordReceipt":                {Handle: a.recordReceipt},
		"reverseReceipt":               {Handle: a.reverseReceipt},
		"recordReturn":                 {Handle: a.recordReturn},
		"getGatewayAccount":            {Handle: a.getAccount},
		"connectGatewayAccount":        {Handle: a.connectAccount},
		"disconnectGatewayAccount":     {Handle: a.disconnectAccount},
		"listOwedRefunds":              {Handle: a.listOwedRefunds},
		"getOwedRefund":                {Handle: a.getOwedRefund},
		"closeOwedRefund":              {Handle: a.closeOwedRefund},
		"retryOwedRefund":              {Handle: a.retryOwedRefund},
	})
	if err := errors.Join(err, a.usage().Mount(a.Server, e)); err != nil {
		return err
	}
	return a.Server.Mount(e, map[string]httpx.Route{
		"createPaymentIntent":  {Handle: a.createIntent},
		"listPaymentIntents":   {Handle: a.listIntents},
		"getPaymentIntent":     {Handle: a.getIntent, Exists: a.intentExists},
		"cancelPaymentIntent":  {Handle: a.cancelIntent, Exists: a.intents().Exists},
		"capturePaymentIntent": {Handle: a.captureIntent, Exists: a.intents().Exists},
		"createRefund":         {Handle: a.createRefund},
		"listRefunds":          {Handle: a.listRefunds},
		"getRefund":            {Handle: a.getRefund, Exists: a.refunds().Exists},
	})
}
