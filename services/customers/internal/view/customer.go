// Package view converts domain types to their public bodies. Responses, stored responses and events all use it, so they cannot
// differ.
package view

import (
	"encoding/json"

	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// Customer returns the public body of a customer in the caller's mode.
func Customer(c domain.Customer, mode api.Mode) api.Customer {
	return api.Customer{
		Id:        c.ID.String(),
		Object:    api.CustomerObjectCustomer,
		Name:      c.Name(),
		FirstName: c.FirstName,
		LastName:  api.OrNull(c.LastName),
		Email:     api.OrNull(c.EmailOrNil()),
		Phone:     api.OrNull(c.Phone),
		Company:   api.OrNull(c.Company),
		Metadata:  orEmpty(c.Metadata),
		Mode:      mode,
		Version:   c.Version,
		CreatedAt: c.CreatedAt.UTC(),
		UpdatedAt: c.UpdatedAt.UTC(),
	}
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
}

// ErasedCustomer returns the object of the event customer.erased.
func ErasedCustomer(id domain.CustomerID) Erased {
	return Erased{ID: id.String(), Object: string(api.CustomerObjectCustomer), Erased: true}
}
