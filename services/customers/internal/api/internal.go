package api

import (
	"context"
	"errors"
	"slices"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto"
	"holdfast.dev/proto/api"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// mountInternal registers the calls of other services, which proto/internal/customers.yaml declares.
func (a *API) mountInternal(e *gin.Engine) error {
	return a.Server.MountInternal(e, proto.InternalCustomers, map[string]httpx.Route{
		"lookupCustomer":  {Handle: a.lookupCustomer},
		"lookupCustomers": {Handle: a.lookupCustomers},
		"lookupDues":      {Handle: a.lookupDues},
		"expireDueQuotes": {Handle: a.expireDueQuotes},
	})
}

func (a *API) lookupCustomer(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := domain.ParseCustomerID(c.Param("id"))
	if err != nil {
		return err
	}
	customer, err := a.customer(ctx, id)
	if err != nil {
		return err
	}
	return httpx.Resource(c, customer.Version, view.Customer(customer, httpx.Mode(ctx)))
}

func (a *API) lookupDues(c *gin.Context) error {
	ctx := c.Request.Context()
	booking, err := ids.Parse[ids.BookingPrefix](c.Param("id"))
	if err != nil {
		return domain.ErrBookingNotFound
	}
	q := httpx.Query(c)
	named, _ := ids.Parse[ids.InvoicePrefix](q.String("invoice_id")) // a malformed id is unknown
	of := domain.AccountRef{Booking: booking, Currency: q.String("currency")}
	dues, err := a.Accounts.Dues(ctx, of, int64(q.Int("version", 0)), named)
	if err != nil {
		return err
	}
	out := internalapi.BookingDues{Version: dues.Version, Invoiced: dues.Invoiced, Due: dues.Due, Placed: dues.Placed}
	if n := dues.Named; n != nil {
		out.Invoice = &internalapi.DuesInvoice{Status: string(n.Status), Due: n.Due, Currency: n.Currency}
		if !n.Booking.IsZero() {
			out.Invoice.BookingID = new(n.Booking.String())
		}
	}
	return rest.Object(c, out)
}

// customer reads a customer, or one that is about to be created from a lead: bookings must know the customer before it exists.
func (a *API) customer(ctx context.Context, id domain.CustomerID) (domain.Customer, error) {
	c, err := store.Customer(ctx, a.DB.Read(ctx), id)
	if !errors.Is(err, domain.ErrCustomerNotFound) {
		return c, err
	}
	l, err := store.LeadOfNewCustomer(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return domain.Customer{}, err
	}
	c = l.NewCustomer(id)
	c.Version, c.CreatedAt, c.UpdatedAt = 1, l.UpdatedAt, l.UpdatedAt
	return c, nil
}

func (a *API) lookupCustomers(c *gin.Context) error {
	ctx := c.Request.Context()
	in, err := httpx.Body[internalapi.CustomerBatch](c)
	if err != nil {
		return err
	}
	requested := make([]domain.CustomerID, 0, len(in.IDs))
	for _, s := range in.IDs {
		if id, err := domain.ParseCustomerID(s); err == nil && !slices.Contains(requested, id) {
			requested = append(requested, id)
		}
	}
	rows, err := store.CustomersByID(ctx, a.DB.Read(ctx), requested)
	if err != nil {
		return err
	}
	data, more, err := page.Fit(rows, func(c domain.Customer) api.Customer { return view.Customer(c, httpx.Mode(ctx)) })
	if err != nil {
		return err
	}
	out := internalapi.CustomerBatchAnswer{Data: data}
	if more {
		last := rows.Items[len(data)-1].ID
		for _, id := range requested[slices.Index(requested, last)+1:] {
			out.Rest = append(out.Rest, id.String())
		}
	}
	return rest.Object(c, out)
}

func (a *API) expireDueQuotes(c *gin.Context) error {
	more, err := a.Quotes.ExpireDue(c.Request.Context())
	if err != nil {
		return err
	}
	return rest.Object(c, internalapi.QuoteExpiryAnswer{More: more})
}
