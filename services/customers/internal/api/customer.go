package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/page"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

func (a *API) createCustomer(c *gin.Context) error {
	body, err := httpx.Body[api.CustomerCreate](c)
	if err != nil {
		return err
	}
	reply, err := a.Customers.Create(c.Request.Context(), fromCustomerCreate(body))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func (a *API) updateCustomer(c *gin.Context) error {
	body, err := httpx.Body[api.CustomerUpdate](c)
	if err != nil {
		return err
	}
	id, err := domain.ParseCustomerID(c.Param("id"))
	if err != nil {
		return err
	}
	reply, err := a.Customers.Update(c.Request.Context(), id, fromCustomerUpdate(body), httpx.IfMatch(c))
	if err != nil {
		return err
	}
	return httpx.Send(c, reply)
}

func (a *API) deleteCustomer(c *gin.Context) error {
	id, err := domain.ParseCustomerID(c.Param("id"))
	if err != nil {
		return err
	}
	if err := a.Customers.Erase(c.Request.Context(), id, httpx.IfMatch(c)); err != nil {
		return err
	}
	return httpx.Send(c, idem.Reply{Status: http.StatusNoContent})
}

func (a *API) getCustomer(c *gin.Context) error {
	customer, err := a.customer(c.Request.Context(), c.Param("id"))
	if err != nil {
		return err
	}
	body, err := render(c.Request.Context(), customer)
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, httpx.ETag(customer.Version), body)
}

func (a *API) listCustomers(c *gin.Context) error {
	ctx, q := c.Request.Context(), httpx.Query(c)
	req, err := a.Pages.Parse(ctx, q, "listCustomers")
	if err != nil {
		return err
	}
	filter := store.CustomerFilter{Search: q.String("q"), Metadata: q.Map("metadata")}
	if q.Has("email") {
		filter.Email = new(q.String("email"))
	}
	if q.Has("phone") {
		filter.Phone = new(q.String("phone"))
	}
	rows, err := store.Customers(ctx, req.Reader(ctx, a.DB), filter, req)
	if err != nil {
		return err
	}
	body, err := page.Body(a.Pages, req, rows, func(c domain.Customer) page.Place {
		return page.Place{ID: c.ID.UUID(), Created: c.CreatedAt, Updated: c.UpdatedAt}
	}, func(c domain.Customer) api.Customer { return view.Customer(c, api.Mode(caller.Must(ctx).Mode)) })
	if err != nil {
		return err
	}
	return httpx.JSON(c, http.StatusOK, "", body)
}

// customer reads one for the caller; a miss is a 404, or a 403 when the id is of the other mode.
func (a *API) customer(ctx context.Context, param string) (domain.Customer, error) {
	id, err := domain.ParseCustomerID(param)
	if err != nil {
		return domain.Customer{}, err
	}
	customer, err := store.Customer(ctx, a.DB.Read(ctx), id)
	if errors.Is(err, domain.ErrCustomerNotFound) {
		err = store.MissingCustomer(ctx, a.DB, id)
	}
	return customer, err
}

func (a *API) customerExists(ctx context.Context, id string) error {
	_, err := a.customer(ctx, id)
	return err
}

func render(ctx context.Context, c domain.Customer) (json.RawMessage, error) {
	return httpx.Encode(view.Customer(c, api.Mode(caller.Must(ctx).Mode)))
}

func fromCustomerCreate(b api.CustomerCreate) domain.CustomerChange {
	return domain.CustomerChange{
		FirstName: given(&b.FirstName), Email: given(&b.Email),
		LastName: clearable(b.LastName), Phone: clearable(b.Phone), Company: clearable(b.Company),
		Metadata: metadata(b.Metadata),
	}
}

func fromCustomerUpdate(b api.CustomerUpdate) domain.CustomerChange {
	return domain.CustomerChange{
		FirstName: given(b.FirstName), Email: given(b.Email),
		LastName: clearable(b.LastName), Phone: clearable(b.Phone), Company: clearable(b.Company),
		Metadata: metadata(b.Metadata),
	}
}

func given[T any](v *T) domain.Maybe[T] {
	if v == nil {
		return domain.Maybe[T]{}
	}
	return domain.Maybe[T]{Given: true, To: *v}
}

func clearable(n nullable.Nullable[string]) domain.Maybe[*string] {
	m := domain.Maybe[*string]{Given: n.IsSpecified()}
	if v, err := n.Get(); err == nil {
		m.To = &v
	}
	return m
}

func metadata(n nullable.Nullable[api.Metadata]) domain.Maybe[json.RawMessage] {
	v, _ := n.Get() // nil when it is null or absent
	return domain.Maybe[json.RawMessage]{Given: n.IsSpecified(), To: v}
}
