package api

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/quota"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

func (a *API) getInvoicePdf(c *gin.Context) error {
	ctx := c.Request.Context()
	release, err := printSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	v, err := a.invoices().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	served, err := a.Invoices.Served(ctx, v)
	if err != nil {
		return err
	}
	customer, err := a.printedCustomer(ctx, v.CustomerID)
	if err != nil {
		return err
	}
	return a.print(c, func(info domain.Invoicing, zone *time.Location) view.Document {
		return view.PrintedInvoice(v, customer, info, zone, served)
	})
}

func (a *API) getQuotePdf(c *gin.Context) error {
	ctx := c.Request.Context()
	release, err := printSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	q, err := a.quotes().Read(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	q = q.At(a.now(ctx))
	customer, err := a.printedCustomer(ctx, q.CustomerID)
	if err != nil {
		return err
	}
	return a.print(c, func(info domain.Invoicing, zone *time.Location) view.Document {
		return view.PrintedQuote(q, customer, info, zone)
	})
}

// print responds with a document, created from the operator's printed details, with the operator's logo.
func (a *API) print(c *gin.Context, document func(info domain.Invoicing, zone *time.Location) view.Document) error {
	ctx := c.Request.Context()
	zone, err := civil.Location(caller.FromContext(ctx).Timezone)
	if err != nil {
		return err
	}
	info, err := a.Tenants.Invoicing(ctx)
	if err != nil {
		return err
	}
	d := document(info, zone)
	if d.Logo, err = a.Tenants.Logo(ctx, info.LogoHash); err != nil {
		return err
	}
	body, err := view.PDF(ctx, d)
	if err != nil {
		return err
	}
	return httpx.PDF(c, body)
}

// DocumentLimits limits how many documents a process prints at the same time.
var DocumentLimits = quota.Limits{Work: "documents", All: 4, PerTenant: 1, Waiting: 15, Wait: 5 * time.Second, Rests: true}

var documents = quota.NewSlots(DocumentLimits)

// printSlot waits until the tenant may print. A waiting request has read nothing yet, so it holds no memory.
func printSlot(ctx context.Context) (release func(), err error) {
	return documents.Acquire(ctx, caller.FromContext(ctx).Tenant)
}

// printedCustomer reads the customer of a document. It returns nil if the customer was erased.
func (a *API) printedCustomer(ctx context.Context, id domain.CustomerID) (*domain.Customer, error) {
	customer, err := store.Customer(ctx, a.DB.Read(ctx), id)
	if errors.Is(err, domain.ErrCustomerNotFound) {
		return nil, nil
	}
	return &customer, err
}
