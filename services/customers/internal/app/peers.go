package app

import (
	"context"
	"encoding/json"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/customers/internal/domain"
)

// BookingService is the bookings service. It returns a refusal as an *apperr.Error. A call that may have had an effect fails with
// apperr.ErrUnavailable or apperr.ErrTimeout. No method may be called inside a transaction.
type BookingService interface {
	// Create creates the booking of a quote or a lead, or returns the one that exists.
	Create(ctx context.Context, in domain.LinkedBooking) (domain.Booking, error)
	// Booking looks up a booking that the projection lacks. It returns domain.ErrBookingNotFound if there is none.
	Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error)
	// Catalogue looks up a service, a unit or a package that the projection lacks. It returns domain.ErrNotInCatalogue if there is
	// none.
	Catalogue(ctx context.Context, id string) (domain.CatalogueItem, error)
	// UnitNames returns the names of those units that exist, by id.
	UnitNames(ctx context.Context, units []domain.UnitID) (map[domain.UnitID]string, error)
	// Price returns the price of a booking of a package on a day. A wrong package or day is a 422 on its field.
	Price(ctx context.Context, id domain.PackageID, eventDate string, guests int) (domain.PackagePrice, error)
}

// PaymentService is the payments service, which has the ledger of money and calls the payment gateway. It returns
// domain.ErrAccountMoved if the account has another version than the decision rests on, and a refusal as an *apperr.Error. After any
// other error, the call may have had an effect. No method may be called inside a transaction.
type PaymentService interface {
	// Account reads an account with the entries that changed after a version.
	Account(ctx context.Context, of domain.AccountRef, since int64) (domain.Account, error)
	// RecordReceipt records a payment once, and returns the account with the entries since version.
	RecordReceipt(ctx context.Context, r domain.Receipt, version int64) (domain.Account, error)
	// ReverseReceipt reverses a payment once, and returns the account with the entries since version.
	ReverseReceipt(ctx context.Context, of domain.AccountRef, id domain.PaymentID, version int64) (domain.Account, error)
	// RecordReturn records the manual refund of a credit note once, and returns the account with the entries since version.
	RecordReturn(ctx context.Context, n domain.CreditNote, version int64) (domain.Account, error)
	// RefundNote creates the refund of a credit note through the gateway, or returns the state of the one that exists.
	// *domain.RefusedRefundError means that there is none and nothing was refunded.
	RefundNote(ctx context.Context, n domain.CreditNote, version int64) (domain.NoteRefund, error)
}

// CustomerBodies is another service in an export, with its data about a customer. No method may be called inside a transaction.
type CustomerBodies interface {
	// BodiesOf returns a page of the resources of a customer, newest first, as their public bodies. next is the cursor of the next
	// page, or "" after the last one.
	BodiesOf(ctx context.Context, customer domain.CustomerID, cursor string) (bodies []json.RawMessage, next string, err error)
}

// CustomerResources is another service in an export, with resources that events are about.
type CustomerResources interface {
	CustomerBodies

	// IDsOf returns a page of the ids of these resources.
	IDsOf(ctx context.Context, customer domain.CustomerID, cursor string) (ids []string, next string, err error)
}

// ObjectEvents is the webhooks service, which stores the log of events.
type ObjectEvents interface {
	// EventsOf returns a page of the events about at most 100 objects, as their public bodies. It returns one object after the
	// other, and the oldest event of each first. next is the cursor of the next page, or "" after the last one. It must not be
	// called inside a transaction.
	EventsOf(ctx context.Context, objects []string, cursor string) (bodies []json.RawMessage, next string, err error)
}

// TenantService is identity, which owns the operators.
type TenantService interface {
	// Invoicing returns the data of the caller's tenant that invoices and quotes show.
	Invoicing(ctx context.Context) (domain.Invoicing, error)
	// Logo returns the logo of the caller's tenant, whose hash is that of Invoicing. It returns the zero Logo for "", or if the logo was
	// removed since.
	Logo(ctx context.Context, hash string) (domain.Logo, error)
	// Acting returns this service as the caller for a tenant, for work that no request is waiting for. The caller carries the
	// tenant's time zone, currency, policy version and test clock.
	Acting(ctx context.Context, tenant ids.Tenant, mode caller.Mode) (caller.Caller, error)
}
