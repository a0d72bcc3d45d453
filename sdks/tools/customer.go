package tools

import (
	"cmp"
	"context"
	"slices"

	"github.com/oapi-codegen/nullable"

	holdfast "holdfast.dev/sdks/go"
)

// optional returns a value for a field that can be null. The zero value leaves the field out.
func optional[T comparable](value T) nullable.Nullable[T] {
	var zero T
	if value == zero {
		return nil
	}
	return holdfast.Set(value)
}

func or(texts ...string) string { return cmp.Or(texts...) }

// can reports whether the credential has a scope.
func (t *toolbox) can(scope string) bool { return slices.Contains(t.me.Scopes, scope) }

// single is a result with one object.
type single struct {
	TimeZone string `json:"time_zone"`
	Object   any    `json:"object"`
}

func (v view) one(object any) single { return single{v.name(), object} }

// customerView is a customer.
type customerView struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Email     string  `json:"email,omitempty"`
	Phone     string  `json:"phone,omitempty"`
	Company   string  `json:"company,omitempty"`
	CreatedAt *moment `json:"created_at"`
}

func (v view) customer(c holdfast.Customer) customerView {
	return customerView{c.ID, cut(c.Name, nameText), cut(value(c.Email), nameText), cut(value(c.Phone), nameText), cut(value(c.Company), nameText), v.at(&c.CreatedAt)}
}

// search are the arguments of find_customers.
type search struct {
	Query string `json:"query" jsonschema:"starts of words of the name, email address or company, or a phone number" min:"1" max:"200"`
	paging
}

func (t *toolbox) findCustomers(ctx context.Context, in search) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Customer], error) {
		return t.client.Customers.ListPage(ctx, holdfast.CustomersListParams{Limit: limit, Cursor: in.Cursor, Q: in.Query})
	}, v.customer)
}

// newCustomer are the arguments of create_customer.
type newCustomer struct {
	FirstName string `json:"first_name" max:"100"`
	LastName  string `json:"last_name,omitempty" max:"100"`
	Email     string `json:"email,omitempty" jsonschema:"required if there is no phone" max:"255"`
	Phone     string `json:"phone,omitempty" jsonschema:"required if there is no email" max:"50"`
	Company   string `json:"company,omitempty" max:"200"`
	repeatable
}

func (t *toolbox) createCustomer(ctx context.Context, in newCustomer, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	c, err := t.client.Customers.Create(ctx, holdfast.CustomerCreate{
		FirstName: in.FirstName, LastName: optional(in.LastName), Email: optional(in.Email), Phone: optional(in.Phone), Company: optional(in.Company),
	}, options...)
	if err != nil {
		return nil, err
	}
	return v.one(v.customer(*c)), nil
}
