// Package app contains the use cases: one method for each, which works in the given transaction. A transaction contains only SQL
// and outbox writes.
package app

import (
	"context"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// StoredResponses are the responses to repeated requests. *idemstore.Store implements it.
type StoredResponses interface {
	// Erase replaces each stored response about the resources by the result of erase.
	Erase(ctx context.Context, tx pg.Tx, resources []string, erase func(body []byte) ([]byte, error)) error
}

// Customers are the use cases of a customer.
type Customers struct {
	Idempotency StoredResponses
	// Contract defines which fields are personal.
	Contract *contract.Contract
	// Wake signals the relay that an event has been committed.
	Wake func()
}

// Create creates a customer.
func (a *Customers) Create(ctx context.Context, tx pg.Tx, in domain.CustomerPatch) (domain.Customer, error) {
	c, err := domain.Customer{ID: ids.New[ids.CustomerPrefix]()}.Apply(in)
	if err != nil {
		return domain.Customer{}, err
	}
	return a.insert(ctx, tx, c)
}

// insert writes a new customer with its event.
func (a *Customers) insert(ctx context.Context, tx pg.Tx, c domain.Customer) (domain.Customer, error) {
	c, err := store.InsertCustomer(ctx, tx, c)
	if err != nil {
		return domain.Customer{}, err
	}
	body, err := outbox.Body(ctx, view.Customer, c)
	if err != nil {
		return domain.Customer{}, err
	}
	return c, outbox.Emit(ctx, tx, a.Wake, customerCreated(c, body))
}

// Update changes the given fields. A change that is not visible creates no new version and no event.
func (a *Customers) Update(
	ctx context.Context, tx pg.Tx, id domain.CustomerID, in domain.CustomerPatch, match patch.Precondition,
) (domain.Customer, error) {
	current, err := store.CustomerForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Customer{}, err
	}
	if err := match.Check(current.Version); err != nil {
		return domain.Customer{}, err
	}
	next, err := current.Apply(in)
	if err != nil {
		return domain.Customer{}, err
	}
	previous, err := outbox.Previous(ctx, view.Customer, current, next)
	if err != nil || string(previous) == "{}" {
		return current, err
	}
	updated, err := store.UpdateCustomer(ctx, tx, next)
	if err != nil {
		return domain.Customer{}, err
	}
	body, err := outbox.Body(ctx, view.Customer, updated)
	if err != nil {
		return domain.Customer{}, err
	}
	return updated, outbox.Emit(ctx, tx, a.Wake, customerUpdated(updated, body, previous))
}

// Erase clears the personal data permanently: in the row, in its indexes, in the stored responses about it, in the unpublished
// events, and in everything that belongs to the customer. The id is never used again, and the customer can no longer be read.
func (a *Customers) Erase(ctx context.Context, tx pg.Tx, id domain.CustomerID, match patch.Precondition) error {
	current, err := store.CustomerForUpdate(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := match.Check(current.Version); err != nil {
		return err
	}
	erased, err := store.EraseCustomer(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := a.Idempotency.Erase(ctx, tx, []string{id.String()}, a.Contract.Erase); err != nil {
		return err
	}
	if err := outbox.Erase(ctx, tx, a.Contract, id.String()); err != nil {
		return err
	}
	if err := a.eraseOwned(ctx, tx, id); err != nil {
		return err
	}
	return a.emitErased(ctx, tx, current, erased)
}

// emitErased emits the internal event, by which projections erase their copies, and then the public one. The reverse order would make
// projections ignore the erasure, because both have its version. The public event names the cleared fields and contains none of their
// values.
func (a *Customers) emitErased(ctx context.Context, tx pg.Tx, current, erased domain.Customer) error {
	body, err := contract.Encode(view.ErasedCustomer(erased.ID))
	if err != nil {
		return err
	}
	if err := outbox.Emit(ctx, tx, a.Wake, customerErased(erased.ID, erased.Version, body)); err != nil {
		return err
	}
	previous, err := outbox.Previous(ctx, view.Customer, current, erased)
	if err != nil {
		return err
	}
	if body, err = outbox.Body(ctx, view.Customer, erased); err != nil {
		return err
	}
	if body, previous, err = a.Contract.EraseChange("customer", body, previous); err != nil {
		return err
	}
	return outbox.Emit(ctx, tx, a.Wake, customerUpdated(erased, body, previous))
}
