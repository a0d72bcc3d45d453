// Package app contains the use cases of payments. A use case opens its transactions itself and makes no call inside one.
package app

import (
	"context"
	"time"

	"holdfast.dev/services/payments/internal/domain"
)

// Gateway is the payment gateway. A definite refusal is a *domain.RefusedError or a *domain.BusyError. After any other error, it is
// unknown whether the call had an effect.
type Gateway interface {
	// Account verifies a key and returns the account that the key belongs to.
	Account(ctx context.Context, key domain.Secret) (id, country string, err error)
	// Create creates the intent of a row, once for each attempt.
	Create(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error)
	// Read reads the state of an intent, and those of its charges, refunds and disputes that the row does not contain yet.
	Read(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error)
	// Find searches for the intent of a row among those created since a time. It returns nil if there is none.
	Find(ctx context.Context, a domain.Account, row domain.IntentID, since time.Time) (*domain.Snapshot, error)
	Cancel(ctx context.Context, a domain.Account, p domain.Intent) (domain.Snapshot, error)
	Capture(ctx context.Context, a domain.Account, p domain.Intent, minor int64) (domain.Snapshot, error)
	// CreateRefund creates the refund of an allocation, once for each attempt.
	CreateRefund(ctx context.Context, a domain.Account, r domain.Refund, part domain.Allocation) (domain.GatewayRefund, error)
	ReadRefund(ctx context.Context, a domain.Account, id string) (domain.GatewayRefund, error)
	// FindRefund searches for the refund of an allocation among those of its intent that were created since a time. It returns nil
	// if there is none.
	FindRefund(ctx context.Context, a domain.Account, part domain.Allocation, since time.Time) (*domain.GatewayRefund, error)
}

// BookingService is the bookings service.
type BookingService interface {
	// Booking returns the amounts to pay, or domain.ErrBookingNotFound if the booking does not exist.
	Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error)
}

// InvoiceService is the customers service.
type InvoiceService interface {
	// Dues returns what is due on the invoices of a booking, with everything up to a version of its account, and the named invoice if it
	// is not zero and exists.
	Dues(ctx context.Context, account domain.MoneyKey, version int64, named domain.InvoiceID) (domain.Dues, error)
}
