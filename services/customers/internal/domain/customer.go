// Package domain holds the nouns of this service and their rules. It does no I/O and reads no clock.
package domain

import (
	"encoding/json"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// CustomerID is cu_….
type CustomerID = ids.Customer

// ErrCustomerNotFound is the answer for an id that is unknown, erased, malformed or another tenant's.
var ErrCustomerNotFound = apperr.New(apperr.NotFound, "customer_not_found", "Customer not found.")

// Customer is a person or company that books. Nil means that nothing is known.
type Customer struct {
	ID        CustomerID
	FirstName string
	LastName  *string
	Email     string
	Phone     *string
	Company   *string
	Metadata  json.RawMessage // compact JSON in the order sent, an object or an array of strings; nil when empty
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Maybe is a field of a change: when Given, it becomes To.
type Maybe[T any] struct {
	Given bool
	To    T
}

// CustomerChange is what a PATCH asks for; what is not given stays as it is.
type CustomerChange struct {
	FirstName, Email         Maybe[string]
	LastName, Phone, Company Maybe[*string]
	Metadata                 Maybe[json.RawMessage]
}

// ParseCustomerID reads cu_…; what is no such id belongs to no customer.
func ParseCustomerID(s string) (CustomerID, error) {
	id, err := ids.Parse[ids.CustomerPrefix](s)
	if err != nil {
		return CustomerID{}, ErrCustomerNotFound
	}
	return id, nil
}

// Name is the first and the last name.
func (c Customer) Name() string {
	if c.LastName == nil {
		return strings.TrimSpace(c.FirstName)
	}
	return strings.TrimSpace(c.FirstName + " " + *c.LastName)
}

// With returns the customer with the change applied.
func (c Customer) With(change CustomerChange) Customer {
	set(&c.FirstName, change.FirstName)
	set(&c.LastName, change.LastName)
	set(&c.Email, change.Email)
	set(&c.Phone, change.Phone)
	set(&c.Company, change.Company)
	set(&c.Metadata, change.Metadata)
	c.Metadata = orNil(c.Metadata)
	return c
}

func set[T any](field *T, m Maybe[T]) {
	if m.Given {
		*field = m.To
	}
}

// orNil is metadata as the door hands it over, compact; an empty bag, in any of its forms, is nil.
func orNil(raw json.RawMessage) json.RawMessage {
	switch string(raw) {
	case "", "null", "{}", "[]":
		return nil
	}
	return raw
}

// MetadataPairs are the pairs a list can be filtered by: those of an object.
func (c Customer) MetadataPairs() map[string]string {
	var pairs map[string]string
	if err := json.Unmarshal(c.Metadata, &pairs); err != nil { // empty, or an array, which has no keys
		return nil
	}
	return pairs
}
