package api

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// maxBatch is the bound of proto/internal/customers.yaml.
const maxBatch = 100

// mountInternal registers the calls of other services, which proto/internal/customers.yaml states.
func (a *API) mountInternal(e *gin.Engine) {
	e.GET("/internal/v1/customers/:id", a.Server.Internal(a.lookupCustomer, "bookings"))
	e.POST("/internal/v1/customers/batch", a.Server.Internal(a.lookupCustomers, "bookings"))
}

func (a *API) lookupCustomer(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := domain.ParseCustomerID(c.Param("id"))
	if err != nil {
		return err
	}
	customer, err := store.Customer(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	body, err := render(ctx, customer)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, httpx.ETag(customer.Version), body)
}

func (a *API) lookupCustomers(c *gin.Context) error {
	ctx := c.Request.Context()
	var in internalapi.CustomerBatch
	if err := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, 1<<20)).Decode(&in); err != nil {
		return contract.ErrMalformed.With(err)
	}
	if len(in.IDs) > maxBatch {
		return apperr.Field("ids", "Must have at most %d items.", maxBatch)
	}
	ids := make([]domain.CustomerID, 0, len(in.IDs))
	for _, s := range in.IDs {
		if id, err := domain.ParseCustomerID(s); err == nil {
			ids = append(ids, id)
		}
	}
	list, err := store.CustomersByID(ctx, a.DB.Read(ctx), ids)
	if err != nil {
		return err
	}
	data, err := renderAll(ctx, list)
	if err != nil {
		return err
	}
	body, err := httpx.Encode(internalapi.CustomerBatchAnswer{Data: data})
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}
