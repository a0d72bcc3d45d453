package domain

import "holdfast.dev/libs/ids"

// LeadID and the other types are the ids of this service's resources and of the resources that they reference.
type (
	CustomerID   = ids.Customer
	LeadID       = ids.Lead
	QuoteID      = ids.Quote
	InvoiceID    = ids.Invoice
	PaymentID    = ids.Payment
	CreditNoteID = ids.CreditNote
	BookingID    = ids.Booking
	ServiceID    = ids.Service
	UnitID       = ids.Unit
	PackageID    = ids.Package
)
