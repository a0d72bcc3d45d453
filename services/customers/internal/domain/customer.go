// Package domain contains the types of this service and their rules. It does no I/O and reads no clock.
package domain

import (
	"encoding/json"
	"strings"
	"time"

	"golang.org/x/text/language"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/patch"
)

// ErrCustomerNotFound is the response for an id that is unknown, erased, malformed or of another tenant.
var ErrCustomerNotFound = apperr.New(apperr.NotFound, "customer_not_found", "Customer not found.")

// errNoContact is the response for a customer that could not be reached.
var errNoContact = apperr.Fields([]apperr.FieldError{
	{Field: "email", Message: "Is required if there is no phone number."}, {Field: "phone", Message: "Is required if there is no email address."},
})

// Customer is a person or company that books, with an e-mail address, a telephone number or both. Nil means unknown.
type Customer struct {
	ID        CustomerID
	FirstName string
	LastName  *string
	Email     string // "": unknown
	Phone     *string
	Company   *string
	TaxID     *string
	// BillingAddress is the postal address that documents show.
	BillingAddress *Address
	Country        *string         // ISO 3166-1 alpha-2
	Locale         *string         // BCP 47, as sent
	Metadata       json.RawMessage // compact JSON in the order sent, an object or an array of strings; nil when empty
	Version        int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
	ErasedAt       *time.Time // set: a tombstone without personal data
}

// CustomerPatch holds the fields of a create or an update. An absent field stays unchanged.
type CustomerPatch struct {
	FirstName                       patch.Field[string] // never null
	LastName, Email, Phone, Company patch.Field[string]
	TaxID, Country, Locale          patch.Field[string]
	BillingAddress                  patch.Field[Address]
	Metadata                        patch.Field[json.RawMessage]
}

// ParseCustomerID reads cu_…. It returns ErrCustomerNotFound for a malformed id.
func ParseCustomerID(s string) (CustomerID, error) {
	id, err := ids.Parse[ids.CustomerPrefix](s)
	if err != nil {
		return CustomerID{}, ErrCustomerNotFound
	}
	return id, nil
}

// Name returns the first and the last name.
func (c Customer) Name() string {
	if c.LastName == nil {
		return strings.TrimSpace(c.FirstName)
	}
	return strings.TrimSpace(c.FirstName + " " + *c.LastName)
}

// Apply returns the customer with the given fields, or an error on email and phone if it has neither an e-mail address nor a telephone number.
func (c Customer) Apply(p CustomerPatch) (Customer, error) {
	p.FirstName.Set(&c.FirstName)
	p.LastName.SetNullable(&c.LastName)
	if p.Email.Given() {
		c.Email = ""
		p.Email.Set(&c.Email)
	}
	p.Phone.SetNullable(&c.Phone)
	p.Company.SetNullable(&c.Company)
	p.TaxID.SetNullable(&c.TaxID)
	p.BillingAddress.SetNullable(&c.BillingAddress)
	p.Country.SetNullable(&c.Country)
	p.Locale.SetNullable(&c.Locale)
	patch.SetMetadata(p.Metadata, &c.Metadata)
	if err := p.check(); err != nil {
		return Customer{}, err
	}
	if c.Email == "" && !hasText(c.Phone) {
		return Customer{}, errNoContact
	}
	return c, nil
}

// check returns the errors on codes that have the right form but do not exist.
func (p CustomerPatch) check() error {
	var failed []apperr.FieldError
	known := func(field string, code *string) {
		if code != nil && !isCountry(*code) {
			failed = append(failed, apperr.FieldError{Field: field, Message: "Must be an ISO 3166-1 country code, two capital letters such as US."})
		}
	}
	if a := p.BillingAddress.Pointer(); a != nil {
		known("billing_address.country", a.Country)
	}
	known("country", p.Country.Pointer())
	if text := p.Locale.Pointer(); text != nil {
		if _, err := language.Parse(*text); err != nil {
			failed = append(failed, apperr.FieldError{Field: "locale", Message: "Must be a BCP 47 language tag such as en, de or fr-CA."})
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return apperr.Fields(failed)
}

// Billing returns the customer as the recipient of a document in a language. An address of the document's own replaces that of the
// customer.
func (c Customer) Billing(address *string, reader language.Tag) *Billing {
	if address == nil && c.BillingAddress != nil {
		if printed := c.BillingAddress.Print(reader); printed != "" {
			address = &printed
		}
	}
	return &Billing{
		Name: c.Name(), Company: c.Company, Email: c.EmailOrNil(), Address: address, TaxID: c.TaxID, Country: c.Country, Locale: c.Locale,
	}
}

// EmailOrNil returns the e-mail address, or nil if it is unknown.
func (c Customer) EmailOrNil() *string {
	if c.Email == "" {
		return nil
	}
	return &c.Email
}

func hasText(s *string) bool { return s != nil && *s != "" }
