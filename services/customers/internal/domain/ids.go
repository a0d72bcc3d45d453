package domain

import "holdfast.dev/libs/ids"

// PaymentPrefix is the prefix of ids that only this service reads.
type PaymentPrefix struct{}

// Prefix implements ids.Prefix.
func (PaymentPrefix) Prefix() string { return "pay" }

// LeadID and the other types are the ids of this service's resources and of the resources that they reference.
type (
	CustomerID   = ids.Customer
	LeadID       = ids.Lead
	QuoteID      = ids.Quote
	InvoiceID    = ids.Invoice
	PaymentID    = ids.ID[PaymentPrefix]
	CreditNoteID = ids.CreditNote
	BookingID    = ids.Booking
	ServiceID    = ids.Service
	UnitID       = ids.Unit
	PackageID    = ids.Package
)
