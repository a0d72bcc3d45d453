// Package app holds the verbs: one method per use case, each the owner of its transaction. Inside it are SQL
// and outbox only.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/idem"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
	"holdfast.dev/services/customers/internal/view"
)

// Customers are the verbs of a customer.
type Customers struct {
	DB   *pg.DB
	Idem *idem.Store
	// Contract says which fields are a person's.
	Contract *contract.Contract
	// Wake tells the relay that an event has been committed.
	Wake func()
}

// Create makes a customer.
func (a *Customers) Create(ctx context.Context, given domain.CustomerChange) (idem.Reply, error) {
	return a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		c := domain.Customer{ID: ids.New[ids.CustomerPrefix]()}.With(given)
		c, err := store.InsertCustomer(ctx, tx, c)
		if err != nil {
			return idem.Reply{}, err
		}
		body, err := render(ctx, c)
		if err != nil {
			return idem.Reply{}, err
		}
		reply := answer(http.StatusCreated, c, body)
		reply.Location = "/api/v1/customers/" + c.ID.String()
		return reply, a.emit(ctx, tx, customerCreated(c, body))
	})
}

// Update changes what is given. A change that nobody could see is none: no new version, no event.
func (a *Customers) Update(ctx context.Context, id domain.CustomerID, change domain.CustomerChange, match httpx.Match) (idem.Reply, error) {
	reply, err := a.Idem.Run(ctx, func(ctx context.Context, tx pg.Tx) (idem.Reply, error) {
		current, err := store.CustomerForUpdate(ctx, tx, id)
		if err != nil {
			return idem.Reply{}, err
		}
		if err := match.Check(current.Version); err != nil {
			return idem.Reply{}, err
		}
		return a.change(ctx, tx, current, current.With(change))
	})
	return reply, a.explain(ctx, id, err)
}

func (a *Customers) change(ctx context.Context, tx pg.Tx, current, wanted domain.Customer) (idem.Reply, error) {
	before, err := render(ctx, current)
	if err != nil {
		return idem.Reply{}, err
	}
	after, err := render(ctx, wanted)
	if err != nil {
		return idem.Reply{}, err
	}
	previous := outbox.Diff(before, after)
	if string(previous) == "{}" {
		return answer(http.StatusOK, current, before), nil
	}
	updated, err := store.UpdateCustomer(ctx, tx, wanted)
	if err != nil {
		return idem.Reply{}, err
	}
	body, err := render(ctx, updated)
	if err != nil {
		return idem.Reply{}, err
	}
	return answer(http.StatusOK, updated, body), a.emit(ctx, tx, customerUpdated(updated, body, previous))
}

// Erase clears the personal data for good: of the row, of what finds it, of the stored answers about it and of the
// events that wait to be published. The id stays taken, and nothing reads it again.
func (a *Customers) Erase(ctx context.Context, id domain.CustomerID, match httpx.Match) error {
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := store.CustomerForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := match.Check(current.Version); err != nil {
			return err
		}
		version, err := store.EraseCustomer(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := a.Idem.Erase(ctx, tx, []string{id.String()}, a.Contract.Erase); err != nil {
			return err
		}
		if err := outbox.Erase(ctx, tx, a.Contract, id.String()); err != nil {
			return err
		}
		body, err := httpx.Encode(view.ErasedCustomer(id))
		if err != nil {
			return err
		}
		return a.emit(ctx, tx, customerErased(id, version, body))
	})
	return a.explain(ctx, id, err)
}

// explain turns a miss into the wrong-mode 403 where it is one.
func (a *Customers) explain(ctx context.Context, id domain.CustomerID, err error) error {
	if errors.Is(err, domain.ErrCustomerNotFound) {
		return store.MissingCustomer(ctx, a.DB, id)
	}
	return err
}

func (a *Customers) emit(ctx context.Context, tx pg.Tx, e outbox.Event) error {
	tx.AfterCommit(a.Wake)
	if err := outbox.Add(ctx, tx, e); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

func answer(status int, c domain.Customer, body json.RawMessage) idem.Reply {
	return idem.Reply{Status: status, ETag: httpx.ETag(c.Version), Resource: c.ID.String(), Body: body}
}

func render(ctx context.Context, c domain.Customer) (json.RawMessage, error) {
	return httpx.Encode(view.Customer(c, api.Mode(caller.Must(ctx).Mode)))
}
