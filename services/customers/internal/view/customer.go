// Package view turns nouns into their public bodies. Answers, stored replies and events all come from here,
// so they cannot differ.
package view

import (
	"encoding/json"
	"fmt"

	"github.com/oapi-codegen/nullable"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
)

// Customer is the public shape of a customer; the mode is the caller's.
func Customer(c domain.Customer, mode api.Mode) api.Customer {
	return api.Customer{
		Id:        c.ID.String(),
		Object:    api.CustomerObjectCustomer,
		Name:      c.Name(),
		FirstName: c.FirstName,
		LastName:  orNull(c.LastName),
		Email:     c.Email,
		Phone:     orNull(c.Phone),
		Company:   orNull(c.Company),
		Metadata:  orEmpty(c.Metadata),
		Mode:      mode,
		Version:   c.Version,
		CreatedAt: c.CreatedAt.UTC(),
		UpdatedAt: c.UpdatedAt.UTC(),
	}
}

func orNull(s *string) nullable.Nullable[string] {
	if s == nil {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(*s)
}

func orEmpty(m json.RawMessage) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage(`{}`)
	}
	return m
}

// Render is v as it is stored and sent: JSON without HTML escapes.
func Render(v any) (json.RawMessage, error) { return httpx.Encode(v) }

// Erased is all that is left of a customer.
type Erased struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	Erased bool   `json:"erased"`
}

// ErasedCustomer is the object of the event customer.erased.
func ErasedCustomer(id domain.CustomerID) Erased {
	return Erased{ID: id.String(), Object: string(api.CustomerObjectCustomer), Erased: true}
}

// ETag is the entity tag of a version.
func ETag(version int64) string { return fmt.Sprintf("%q", fmt.Sprint(version)) }
