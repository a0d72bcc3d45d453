// Package domain holds the nouns of this service and their rules. It does no I/O and reads no clock.
package domain

import (
	"encoding/json"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
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

// CustomerPatch is what a create or an update gives; an absent field stays as it is.
type CustomerPatch struct {
	FirstName, Email         patch.Field[string] // never null
	LastName, Phone, Company patch.Field[string]
	Metadata                 patch.Field[json.RawMessage]
}

// ParseCustomerID reads cu_…; a malformed id is ErrCustomerNotFound.
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

// Apply returns the customer with the given fields. The contract has checked each of them, so nothing fails here.
func (c Customer) Apply(p CustomerPatch) Customer {
	p.FirstName.Set(&c.FirstName)
	p.LastName.SetNullable(&c.LastName)
	p.Email.Set(&c.Email)
	p.Phone.SetNullable(&c.Phone)
	p.Company.SetNullable(&c.Company)
	patch.SetMetadata(p.Metadata, &c.Metadata)
	return c
}
