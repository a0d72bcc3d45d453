package api

import (
	"context"
	"io"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/page"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/rest"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// customers defines how the handlers read and show a customer.
func (a *API) customers() rest.Collection[ids.ID[ids.CustomerPrefix], domain.Customer] {
	return rest.Collection[ids.ID[ids.CustomerPrefix], domain.Customer]{
		Parse: ids.Parse[ids.CustomerPrefix],
		DB:    a.DB, Idempotency: a.Idempotency, Path: "customers", NotFound: domain.ErrCustomerNotFound, Load: store.Customer,
		Show: func(c domain.Customer, mode api.Mode) rest.Response {
			return rest.Response{ID: c.ID.String(), Version: c.Version, Body: view.Customer(c, mode)}
		},
	}
}

func (a *API) createCustomer(c *gin.Context) error {
	return rest.Create(c, a.customers(), fromCustomer, rest.None, a.Customers.Create)
}

func (a *API) updateCustomer(c *gin.Context) error {
	return rest.Update(c, a.customers(), fromCustomer, rest.None, a.Customers.Update)
}

func (a *API) deleteCustomer(c *gin.Context) error {
	return rest.Delete(c, a.customers(), a.Customers.Erase)
}

func (a *API) getCustomer(c *gin.Context) error { return rest.Get(c, a.customers()) }

// exportCustomer streams all data of a customer as it is read.
func (a *API) exportCustomer(c *gin.Context) error {
	customer, err := a.customers().Read(c.Request.Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return page.Download(c, "application/json", func(ctx context.Context, w io.Writer) error {
		return a.Exports.Write(ctx, customer, w)
	})
}

func (a *API) listCustomers(c *gin.Context) error {
	q := httpx.Query(c)
	f := store.CustomerFilter{Search: q.String("q"), Metadata: q.Map("metadata")}
	if q.Has("email") {
		f.Email = new(q.String("email"))
	}
	if q.Has("phone") {
		f.Phone = new(q.String("phone"))
	}
	return page.Serve(c, a.Pages, a.DB, func(ctx context.Context, db pg.Q, r page.Request) (page.Rows[domain.Customer], error) {
		return store.Customers(ctx, db, f, r)
	}, func(c domain.Customer) page.SortKey {
		return page.SortKey{ID: c.ID.UUID(), Created: c.CreatedAt, Updated: c.UpdatedAt}
	}, view.Customer)
}

// fromCustomer also converts the body of a create, which has the same fields. The contract checks the required ones.
func fromCustomer(b api.CustomerUpdate) domain.CustomerPatch {
	return domain.CustomerPatch{
		FirstName: patch.FromPointer(b.FirstName), LastName: patch.FromNullable(b.LastName), Email: patch.FromNullable(b.Email),
		Phone: patch.FromNullable(b.Phone), Company: patch.FromNullable(b.Company), Metadata: patch.FromNullable(b.Metadata),
		TaxID: patch.FromNullable(b.TaxId), Country: patch.FromNullable(b.Country), Locale: patch.FromNullable(b.Locale),
		BillingAddress: fromAddress(b.BillingAddress),
	}
}

func fromAddress(n nullable.Nullable[api.PostalAddressInput]) patch.Field[domain.Address] {
	f := patch.FromNullable(n)
	a := f.Pointer()
	if a == nil && f.Given() {
		return patch.Null[domain.Address]()
	} else if a == nil {
		return patch.Field[domain.Address]{}
	}
	text := func(n nullable.Nullable[string]) *string { return patch.FromNullable(n).Pointer() }
	return patch.Value(domain.Address{
		Line1: text(a.Line1), Line2: text(a.Line2), City: text(a.City), State: text(a.State), PostalCode: text(a.PostalCode), Country: text(a.Country),
	})
}
