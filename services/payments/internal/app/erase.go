package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/inbox"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// StoredResponses are the responses to repeated requests. *idemstore.Store implements it.
type StoredResponses interface {
	// Erase replaces each stored response about the resources by the result of erase.
	Erase(ctx context.Context, tx pg.Tx, resources []string, erase func(body []byte) ([]byte, error)) error
}

// Eraser erases the personal data that payments stores about a person. The gateway's data stays: the operator erases it there.
type Eraser struct {
	DB          *pg.DB
	Idempotency StoredResponses
	Contract    *contract.Contract // defines which fields are personal data
	Wake        func()
}

// eraseBatch is how many intents are in memory at a time.
const eraseBatch = 100

// EraseCustomer clears the personal data in the intents of an erased customer and their refunds, in the responses about them and in
// unpublished events. It does so once, however often the event arrives. An intent that is being created remains in that state. A
// repetition of its call then contains less than the first call, so the gateway refuses it, and the completer searches for the
// intent.
func (a *Eraser) EraseCustomer(ctx context.Context, event ids.Event, customer domain.CustomerID) error {
	err := a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		first, err := inbox.Once(ctx, tx, consumer, event)
		if err != nil || !first {
			return err
		}
		if err := a.eraseIntents(ctx, tx, customer); err != nil {
			return err
		}
		list, err := store.EraseManualRefunds(ctx, tx, customer)
		if err != nil {
			return err
		}
		return a.eraseRefundCopies(ctx, tx, list)
	})
	if err != nil {
		return fmt.Errorf("erase %s: %w", customer, err)
	}
	return nil
}

// eraseIntents clears all intents of a customer and their copies. It holds few in memory at a time.
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
		if err := a.eraseRefunds(ctx, tx, list); err != nil {
			return err
		}
		if err := store.EraseOwedNotes(ctx, tx, list); err != nil {
			return err
		}
		last = slices.MaxFunc(list, store.Erased.Compare).ID
	}
}

// eraseRefunds clears the refunds of intents and their copies. No other service stores personal data of a refund.
func (a *Eraser) eraseRefunds(ctx context.Context, tx pg.Tx, intents []store.Erased) error {
	list, err := store.EraseRefunds(ctx, tx, intents)
	if err != nil {
		return err
	}
	return a.eraseRefundCopies(ctx, tx, list)
}

// eraseRefundCopies clears the copies of refunds outside their rows.
func (a *Eraser) eraseRefundCopies(ctx context.Context, tx pg.Tx, list []domain.RefundID) error {
	for _, id := range list {
		if err := a.Idempotency.Erase(ctx, tx, []string{id.String()}, a.Contract.Erase); err != nil {
			return err
		}
		if err := outbox.Erase(ctx, tx, a.Contract, id.String()); err != nil {
			return err
		}
	}
	return nil
}

// eraseCopies erases the copies of an intent outside its row, and emits an event so that other services erase their copies.
func (a *Eraser) eraseCopies(ctx context.Context, tx pg.Tx, e store.Erased) error {
	if e.GatewayID == "" {
		return nil // no event about it was emitted
	}
	id := string(e.GatewayID)
	if err := a.Idempotency.Erase(ctx, tx, []string{id}, a.Contract.Erase); err != nil {
		return err
	}
	if err := outbox.Erase(ctx, tx, a.Contract, id); err != nil {
		return err
	}
	body, err := contract.Encode(view.ErasedIntent(e.GatewayID))
	if err != nil {
		return err
	}
	return outbox.Emit(ctx, tx, a.Wake, intentErased(e, body))
}

// sweepAtOnce is how many rows one statement deletes.
const sweepAtOnce = 1000

// Sweeper deletes rows of all tenants that are no longer needed. Any number of processes may run it at the same time.
type Sweeper struct {
	Worker *pg.DB // worker role: deletes them
	Now    func() time.Time
}

// Run deletes events that were processed long ago, and intents and refunds that the gateway refused to create long ago.
func (a *Sweeper) Run(ctx context.Context) error {
	for _, s := range []struct {
		rows     store.Sweep
		lifetime time.Duration
	}{
		{store.SweepEvents, domain.EventLifetime}, {store.SweepIntents, domain.RefusedLifetime}, {store.SweepRefunds, domain.RefusedLifetime},
	} {
		for n := int64(sweepAtOnce); n == sweepAtOnce; {
			err := a.Worker.SystemTx(ctx, func(ctx context.Context, tx pg.Tx) (err error) {
				n, err = s.rows(ctx, tx, a.Now().Add(-s.lifetime), sweepAtOnce)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
