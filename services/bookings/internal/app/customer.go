package app

import (
	"context"
	"errors"
	"fmt"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/bookings/internal/domain"
	"holdfast.dev/services/bookings/internal/store"
)

// consumer is this service's name in the inbox.
const consumer = "bookings"

// Customers maintains the projection of the customers service's rows.
type Customers struct{ DB *pg.DB }

// ApplyEvent applies an event about a customer once, even if it is delivered repeatedly. It never replaces a state by an older one.
// The context carries the event's tenant and mode.
func (a *Customers) ApplyEvent(ctx context.Context, event ids.Event, c domain.Customer) error {
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		return store.PutCustomer(ctx, tx, c)
	})
	if err != nil {
		return fmt.Errorf("apply event of customer: %w", err)
	}
	return nil
}

// fetchCustomer requests a customer from the customers service and writes it into the projection. A customer that does not exist
// stays unknown.
func (a *Bookings) fetchCustomer(ctx context.Context, id domain.CustomerID) error {
	c, err := a.Directory.Customer(ctx, id)
	if errors.Is(err, domain.ErrCustomerNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return store.PutCustomer(ctx, tx, c) })
}
