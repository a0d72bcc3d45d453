// Package api has the HTTP handlers by operationId. A handler decodes the request, calls one use case and encodes the
// result.
package api

import (
	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idemstore"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/app"
)

// API holds what the handlers use.
type API struct {
	DB        *pg.DB
	Answers   *idemstore.Store
	Customers *app.Customers
	Pages     *page.Codec
	Server    *httpx.Server
}

// Mount registers the contract's operations and the internal calls.
func (a *API) Mount(e *gin.Engine) error {
	a.mountInternal(e)
	return a.Server.Mount(e, map[string]httpx.Route{
		"createCustomer": {Handle: a.createCustomer},
		"listCustomers":  {Handle: a.listCustomers},
		"getCustomer":    {Handle: a.getCustomer, Exists: a.customers().Exists},
		"updateCustomer": {Handle: a.updateCustomer, Exists: a.customers().Exists},
		"deleteCustomer": {Handle: a.deleteCustomer, Exists: a.customers().Exists},
	})
}
