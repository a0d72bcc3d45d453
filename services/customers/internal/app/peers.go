package app

import (
	"context"
	"encoding/json"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"

	"holdfast.dev/services/customers/internal/domain"
)

// BookingService is the bookings service. A refusal is its *apperr.Error; a call that may have had an effect fails with
// apperr.ErrUnavailable or apperr.ErrTimeout. No method may be called inside a transaction.
type BookingService interface {
	// Create creates the booking of a quote or a lead, or returns the one that exists.
	Create(ctx context.Context, in domain.LinkedBooking) (domain.Booking, error)
	// Booking looks one up that the projection does not know yet; domain.ErrBookingNotFound when there is none.
	Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error)
	// Catalogue looks up a service, a unit or a package that the projection does not know yet; domain.ErrNotInCatalogue
	// when there is none.
	Catalogue(ctx context.Context, id string) (domain.CatalogueItem, error)
	// Price returns what a booking of a package on a day would cost. A wrong package or day is a 422 on its field.
	Price(ctx context.Context, id domain.PackageID, eventDate string) (domain.PackagePrice, error)
}

// CustomerBodies is another service for exports: what it has of a customer. next is the cursor of the next page, "" after the last
// one. No method may be called inside a transaction.
type CustomerBodies interface {
	// BodiesOf returns a page of the resources of a customer, the newest first, as their public bodies.
	BodiesOf(ctx context.Context, customer domain.CustomerID, cursor string) (bodies []json.RawMessage, next string, err error)
}

// CustomerResources is another service for exports, which has resources that events are about.
type CustomerResources interface {
	CustomerBodies

	// IDsOf returns a page of their ids.
	IDsOf(ctx context.Context, customer domain.CustomerID, cursor string) (ids []string, next string, err error)
}

// ObjectEvents is the webhooks service, which stores the log of events.
type ObjectEvents interface {
	// EventsOf returns a page of the events about at most 100 objects, one object after the other, the oldest event first, as their
	// public bodies; next is the cursor of the next page, "" after the last one. It may not be called inside a transaction.
	EventsOf(ctx context.Context, objects []string, cursor string) (bodies []json.RawMessage, next string, err error)
}

// TenantService is identity, which owns the operators.
type TenantService interface {
	// Invoicing returns what invoices and quotes of the caller's tenant show of it.
	Invoicing(ctx context.Context) (domain.Invoicing, error)
	// Acting returns this service as the caller for a tenant, with the tenant's time zone, currency, policy version and
	// test clock, for work that no request is waiting for.
	Acting(ctx context.Context, tenant ids.Tenant, mode caller.Mode) (caller.Caller, error)
}
