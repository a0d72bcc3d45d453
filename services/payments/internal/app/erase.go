package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// StoredAnswers are the answers that repeated requests get; *idemstore.Store has them.
type StoredAnswers interface {
	// Erase replaces the answers about resources by what erase leaves of them.
	Erase(ctx context.Context, tx pg.Tx, resources []string, erase func(body []byte) ([]byte, error)) error
}

// Eraser erases what payments holds of a person. What the gateway holds stays: the operator erases it there.
type Eraser struct {
	DB       *pg.DB
	Answers  StoredAnswers
	Contract *contract.Contract // says which fields are personal data
	Wake     func()
}

// eraseBatch is how many intents are in memory at a time.
const eraseBatch = 100

// errCreating says that an intent of the customer is being made: a repetition of its call must say the same to the gateway.
var errCreating = errors.New("an intent of the customer is being made")

// EraseCustomer clears the personal data in the intents of an erased customer, in the answers about them and in unpublished events,
// once however often the event comes. It fails, to be repeated, while an intent of the customer is being made.
func (a *Eraser) EraseCustomer(ctx context.Context, event ids.Event, customer domain.CustomerID) error {
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		creating, err := store.CreatingIntents(ctx, tx, customer)
		if err != nil {
			return err
		}
		if creating {
			return errCreating
		}
		return a.eraseIntents(ctx, tx, customer)
	})
	if err != nil {
		return fmt.Errorf("erase %s: %w", customer, err)
	}
	return nil
}

// eraseIntents clears all intents of a customer and what is kept about them. It has few in memory at a time.
func (a *Eraser) eraseIntents(ctx context.Context, tx pg.Tx, customer domain.CustomerID) error {
	var last domain.IntentID
	for {
		list, err := store.EraseIntents(ctx, tx, customer, last, eraseBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, e := range list {
			if err := a.eraseCopies(ctx, tx, e); err != nil {
				return err
			}
		}
		last = slices.MaxFunc(list, store.Erased.Compare).ID
	}
}

// eraseCopies erases what is kept about an intent beside its row, and tells the platform to erase its copies.
func (a *Eraser) eraseCopies(ctx context.Context, tx pg.Tx, e store.Erased) error {
	if e.GatewayID == "" {
		return nil // nobody was told of it
	}
	id := string(e.GatewayID)
	if err := a.Answers.Erase(ctx, tx, []string{id}, a.Contract.Erase); err != nil {
		return err
	}
	if err := outbox.Erase(ctx, tx, a.Contract, id); err != nil {
		return err
	}
	body, err := contract.Encode(view.ErasedIntent(e.GatewayID))
	if err != nil {
		return err
	}
	return emit(ctx, tx, a.Wake, intentErased(e, body))
}
