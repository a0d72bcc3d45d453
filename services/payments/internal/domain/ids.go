// Package domain contains gateway accounts, payment intents and the inputs of a payment gateway. It is pure: no I/O and no clock.
package domain

import (
	"errors"
	"strings"

	"holdfast.dev/libs/ids"
)

// IntentPrefix and the other types are the prefixes of ids that only this service creates.
type (
	IntentPrefix     struct{}
	AccountPrefix    struct{}
	SecretPrefix     struct{}
	RefundPrefix     struct{}
	AllocationPrefix struct{}
	OwedPrefix       struct{}
)

// Prefix implements ids.Prefix.
func (IntentPrefix) Prefix() string { return "pir" }

// Prefix implements ids.Prefix.
func (AccountPrefix) Prefix() string { return "ga" }

// Prefix implements ids.Prefix.
func (SecretPrefix) Prefix() string { return "gas" }

// Prefix implements ids.Prefix.
func (RefundPrefix) Prefix() string { return "rf" }

// Prefix implements ids.Prefix.
func (AllocationPrefix) Prefix() string { return "rfa" }

// Prefix implements ids.Prefix.
func (OwedPrefix) Prefix() string { return "rfo" }

// IntentID and the other types are the ids of this service's rows and of the rows that they reference.
type (
	IntentID     = ids.ID[IntentPrefix] // of the row; clients know the gateway's
	AccountID    = ids.ID[AccountPrefix]
	SecretID     = ids.ID[SecretPrefix]
	RefundID     = ids.ID[RefundPrefix]
	AllocationID = ids.ID[AllocationPrefix]
	OwedID       = ids.ID[OwedPrefix]
	BookingID    = ids.Booking
	InvoiceID    = ids.Invoice
	CustomerID   = ids.Customer
	CreditNoteID = ids.CreditNote
	PaymentID    = ids.Payment
)

// GatewayID is the id that the payment gateway assigned to an intent, pi_…. It is the public id.
type GatewayID string

// maxGatewayID bounds the ids that are looked up. Stripe limits its ids to 255 characters.
const maxGatewayID = 255

var errNoGatewayID = errors.New("not an id of a payment intent")

// ParseGatewayID reads the id of a path. The gateway defines the part after the prefix: ASCII letters, digits and underscores.
func ParseGatewayID(text string) (GatewayID, error) {
	rest, ok := strings.CutPrefix(text, "pi_")
	if !ok || rest == "" || len(text) > maxGatewayID {
		return "", errNoGatewayID
	}
	for _, c := range []byte(rest) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' {
			return "", errNoGatewayID
		}
	}
	return GatewayID(text), nil
}
