// Package view converts domain types to their public bodies. Responses, stored responses and events all use it, so they cannot
// differ.
package view

import (
	"encoding/json"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// Customer returns the public body of a customer in the caller's mode.
func Customer(c domain.Customer, mode api.Mode) api.Customer {
	return api.Customer{
		Id:             c.ID.String(),
		Object:         api.CustomerObjectCustomer,
		Name:           c.Name(),
		FirstName:      c.FirstName,
		LastName:       api.OrNull(c.LastName),
		Email:          api.OrNull(c.EmailOrNil()),
		Phone:          api.OrNull(c.Phone),
		Company:        api.OrNull(c.Company),
		TaxId:          api.OrNull(c.TaxID),
		BillingAddress: address(c.BillingAddress),
		Country:        api.OrNull(c.Country),
		Locale:         api.OrNull(c.Locale),
		Metadata:       orEmpty(c.Metadata),
		Mode:           mode,
		Version:        c.Version,
		CreatedAt:      c.CreatedAt.UTC(),
		UpdatedAt:      c.UpdatedAt.UTC(),
		ErasedAt:       timeOrNull(c.ErasedAt),
	}
}

func address(a *domain.Address) nullable.Nullable[api.PostalAddress] {
	if a == nil {
		return api.Null[api.PostalAddress]()
	}
	return nullable.NewNullableWithValue(api.PostalAddress{
		Line1: api.OrNull(a.Line1), Line2: api.OrNull(a.Line2), City: api.OrNull(a.City), State: api.OrNull(a.State),
		PostalCode: api.OrNull(a.PostalCode), Country: api.OrNull(a.Country),
	})
}

func orEmpty(m json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage(`{}`)
	}
	return m
}

// Erased is the remainder of an erased resource.
type Erased struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	Erased bool   `json:"erased"`
	// Deleted reports that the resource does not exist any more.
	Deleted bool `json:"deleted,omitempty"`
}

// ErasedCustomer returns the object of the event customer.erased.
func ErasedCustomer(id domain.CustomerID) Erased {
	return Erased{ID: id.String(), Object: string(api.CustomerObjectCustomer), Erased: true}
}
