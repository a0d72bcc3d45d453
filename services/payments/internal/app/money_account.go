package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// Money are the use cases of the accounts of money. The database keeps the card payments of an account with their intents.
type Money struct {
	DB   *pg.DB
	Wake func()
	Now  func() time.Time
}

// Receive records a payment outside the gateway once, and returns the account with the entries since the version in the request. A
// repeated request finds the payment.
func (a *Money) Receive(ctx context.Context, in domain.Receipt) (domain.MoneyAccount, error) {
	return a.move(ctx, in.MoneyKey, in.IfVersion, func(ctx context.Context, tx pg.Tx, account domain.MoneyAccount) (*domain.MoneyMove, error) {
		if known, err := recorded(ctx, tx, account.MoneyKey, in.Payment.String()); err != nil || known {
			return nil, err
		}
		move := in.Move()
		return &move, account.Expect(in.IfVersion)
	})
}

// Return records once what a credit note has returned outside the gateway, like Receive.
func (a *Money) Return(ctx context.Context, in domain.NoteReturn) (domain.MoneyAccount, error) {
	return a.move(ctx, in.MoneyKey, in.IfVersion, func(ctx context.Context, tx pg.Tx, account domain.MoneyAccount) (*domain.MoneyMove, error) {
		if known, err := recorded(ctx, tx, account.MoneyKey, in.Note.String()); err != nil || known {
			return nil, err
		}
		if err := account.Expect(in.IfVersion); err != nil {
			return nil, err
		}
		move := in.Move(a.Now())
		return &move, account.Backed(in.Minor, "amount")
	})
}

// Reverse reverses a payment outside the gateway once, and returns the account with the entries since a version.
func (a *Money) Reverse(ctx context.Context, key domain.MoneyKey, payment domain.PaymentID, since int64) (domain.MoneyAccount, error) {
	return a.move(ctx, key, since, func(ctx context.Context, tx pg.Tx, account domain.MoneyAccount) (*domain.MoneyMove, error) {
		found, err := store.MoneyObject(ctx, tx, key, payment.String())
		if err != nil || found.ReversedAt != nil {
			return nil, err
		}
		last, err := store.LastReturn(ctx, tx, key)
		if err != nil {
			return nil, err
		}
		move, err := account.Reverse(found, last, a.Now())
		return &move, err
	})
}

// recorded reports whether a payment or a return outside the gateway is recorded.
func recorded(ctx context.Context, q pg.Q, key domain.MoneyKey, object string) (bool, error) {
	_, err := store.MoneyObject(ctx, q, key, object)
	if errors.Is(err, domain.ErrPaymentNotFound) {
		return false, nil
	}
	return err == nil, err
}

// move decides about a change under the lock of the account, and writes it with its event. decide returns nil if nothing changes.
func (a *Money) move(
	ctx context.Context, key domain.MoneyKey, since int64,
	decide func(ctx context.Context, tx pg.Tx, account domain.MoneyAccount) (*domain.MoneyMove, error),
) (out domain.MoneyAccount, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := store.WakeOwed(ctx, tx, key.Booking, "", a.Now()); err != nil { // locked before the account
			return err
		}
		account, err := store.MoneyAccountForUpdate(ctx, tx, key)
		if err != nil {
			return err
		}
		move, err := decide(ctx, tx, account)
		if err != nil {
			return err
		}
		if move != nil {
			if err := store.MoveMoney(ctx, tx, key, *move); err != nil {
				return err
			}
			if err := emitMoney(ctx, tx, a.Wake, key); err != nil {
				return err
			}
			tx.AfterCommit(func() { failpoint.Here("money.committed") })
		}
		out, err = store.MoneyAccount(ctx, tx, key, &since)
		return err
	})
	return out, err
}

// emitMoney emits the event of an account that the transaction has changed, with the entries that changed.
func emitMoney(ctx context.Context, tx pg.Tx, wake func(), key domain.MoneyKey) error {
	account, moved, err := store.UnpublishedMoney(ctx, tx, key)
	if err != nil || !moved {
		return err
	}
	body, err := contract.Encode(view.MoneyAccount(account))
	if err != nil {
		return err
	}
	return outbox.Emit(ctx, tx, wake, accountMoved(account, body))
}

// MoneyPublisher emits the events of accounts that something other than this version of the service has changed: the migration, the
// version before, or a repair. Any number of processes may run it at the same time.
type MoneyPublisher struct {
	Money  *Money
	Worker *pg.DB // worker role: finds the accounts
	Log    *slog.Logger

	failing operation.Failing
}

// Run emits the missing events of all tenants.
func (a *MoneyPublisher) Run(ctx context.Context) error {
	due := operation.Workers[store.MoneyDue]{
		Service: "payments",
		DB:      a.Worker, Now: a.Money.Now, Find: store.MoneyUnpublished, Owner: func(row store.MoneyDue) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.MoneyDue) error {
			return a.Money.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return emitMoney(ctx, tx, a.Money.Wake, row.Key()) })
		},
		Report: a.failing.Report(a.Log, "accounts of money whose event cannot be emitted"),
	}
	if err := due.Run(ctx); err != nil {
		return fmt.Errorf("accounts of money without an event: %w", err)
	}
	return nil
}
