// Package app contains the use cases of payments. A use case opens its transactions itself and makes no call inside one.
package app

import (
	"context"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// Gateway is the payment gateway. A definite refusal is a *domain.RefusedError or a *domain.BusyError; any other error leaves it
// unknown whether the call had an effect.
type Gateway interface {
	// Account proves a key and returns the account that it belongs to.
	Account(ctx context.Context, key domain.Secret) (id, country string, err error)
	// Create creates the intent of a row, once for each attempt.
	Create(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error)
	// Read reads the state of an intent, and what the row does not know yet of its charges, refunds and disputes.
	Read(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error)
	// Find searches for the intent of a row among those created since a time. It returns nil when there is none.
	Find(ctx context.Context, a domain.Account, row domain.IntentID, since time.Time) (*domain.Snapshot, error)
	Cancel(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error)
	Capture(ctx context.Context, a domain.Account, p domain.Intent, minor int64) (domain.Snapshot, error)
	// CreateRefund creates the refund of an allocation, once for each attempt.
	CreateRefund(ctx context.Context, a domain.Account, r domain.Refund, part domain.Allocation) (domain.GatewayRefund, error)
	ReadRefund(ctx context.Context, a domain.Account, id string) (domain.GatewayRefund, error)
	// FindRefund looks for the refund of an allocation among those of its intent that were created since a time; nil when there is none.
	FindRefund(ctx context.Context, a domain.Account, part domain.Allocation, since time.Time) (*domain.GatewayRefund, error)
}

// BookingService is the bookings service.
type BookingService interface {
	// Booking returns what is to be paid, or domain.ErrBookingNotFound when the booking does not exist.
	Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error)
}

// InvoiceService is the customers service.
type InvoiceService interface {
	// Invoice returns what is due, or domain.ErrInvoiceNotFound when the invoice does not exist.
	Invoice(ctx context.Context, id domain.InvoiceID) (domain.Invoice, error)
}
