package app

import (
	"context"
	"errors"
	"strings"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/store"
)

// customer returns the given customer, else the one with the lead's e-mail address, else the id of a new one.
func (a *Leads) customer(ctx context.Context, tx pg.Tx, l domain.Lead, given *string) (id domain.CustomerID, isNew bool, err error) {
	switch {
	case given != nil:
		id, err = existing(ctx, tx, *given)
		return id, false, err
	case l.Email == nil:
		return id, false, apperr.Field("email", "The lead has no e-mail address: give it one, or name the customer in customer_id.")
	}
	if id, err = ofEmail(ctx, tx, *l.Email); err != nil || !id.IsZero() {
		return id, false, err
	}
	if !caller.FromContext(ctx).Has("write:customers") {
		return id, false, domain.MissingScope("write:customers")
	}
	return ids.New[ids.CustomerPrefix](), true, nil
}

// existing returns the id of a customer that a body names.
func existing(ctx context.Context, tx pg.Tx, text string) (domain.CustomerID, error) {
	id, err := domain.ParseCustomerID(text)
	if err == nil {
		_, err = store.CustomerForShare(ctx, tx, id)
	}
	if errors.Is(err, domain.ErrCustomerNotFound) {
		err = apperr.Field("customer_id", "No such customer.")
	}
	return id, err
}

// ofEmail returns the one customer with an e-mail address, or zero; errConverting while one is about to be made from a lead. No
// other conversion finds none until the transaction ends.
func ofEmail(ctx context.Context, tx pg.Tx, email string) (none domain.CustomerID, err error) {
	if err := store.LockEmail(ctx, tx, email); err != nil {
		return none, err
	}
	// Asked before the customers are: a conversion that ends in between has made the one that is found.
	busy, err := store.EmailIsConverting(ctx, tx, email)
	if err != nil {
		return none, err
	}
	if busy {
		return none, errConverting
	}
	found, err := store.CustomersByEmail(ctx, tx, email, maxNamed+1)
	switch {
	case err != nil || len(found) == 0:
		return none, err
	case len(found) > 1:
		return none, severalCustomers(found)
	}
	if _, err = store.CustomerForShare(ctx, tx, found[0].ID); errors.Is(err, domain.ErrCustomerNotFound) {
		err = errConverting // erased in between: looked for again
	}
	return found[0].ID, err
}

// maxNamed is how many customers with one e-mail address a message names.
const maxNamed = 10

func severalCustomers(found []domain.Customer) error {
	names := make([]string, min(len(found), maxNamed))
	for i := range names {
		names[i] = found[i].ID.String()
	}
	list := strings.Join(names, ", ")
	if len(found) > maxNamed {
		list += " and more"
	}
	return apperr.Field("customer_id", "Several customers have the lead's e-mail address: name one of %s.", list)
}
