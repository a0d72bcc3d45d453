package app

import (
	"context"
	"time"

	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/failpoint"
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
	return a.move(ctx, in.MoneyKey, in.Payment.String(), in.IfVersion, func(_ context.Context, _ pg.Tx, account domain.MoneyAccount, known *domain.MoneyEntry) (*domain.MoneyMove, error) {
		if known != nil {
			return nil, nil
		}
		move := in.Move()
		return &move, account.Expect(in.IfVersion)
	})
}

// Return records once what a credit note has returned outside the gateway, like Receive.
func (a *Money) Return(ctx context.Context, in domain.NoteReturn) (domain.MoneyAccount, error) {
	return a.move(ctx, in.MoneyKey, in.Note.String(), in.IfVersion, func(_ context.Context, _ pg.Tx, account domain.MoneyAccount, known *domain.MoneyEntry) (*domain.MoneyMove, error) {
		if known != nil {
			return nil, nil
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
	return a.move(ctx, key, payment.String(), since, func(ctx context.Context, tx pg.Tx, account domain.MoneyAccount, known *domain.MoneyEntry) (*domain.MoneyMove, error) {
		switch {
		case known == nil:
			return nil, domain.ErrPaymentNotFound
		case known.ReversedAt != nil:
			return nil, nil
		}
		last, err := store.LastReturn(ctx, tx, key)
		if err != nil {
			return nil, err
		}
		move, err := account.Reverse(*known, last, a.Now())
		return &move, err
	})
}

// decision decides about a change of an account. known is the entry of the object; nil: it is not recorded. It returns nil if nothing
// changes.
type decision func(ctx context.Context, tx pg.Tx, account domain.MoneyAccount, known *domain.MoneyEntry) (*domain.MoneyMove, error)

// move decides about a change under the lock of the account, and writes it with its event. It returns the account with the entries since a
// version.
func (a *Money) move(
	ctx context.Context, key domain.MoneyKey, object string, since int64, decide decision,
) (out domain.MoneyAccount, err error) {
	err = a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		store.WakeOwed(tx, key.Booking, "", a.Now()) // locked before the account
		account, known, err := store.MoneyObjectForUpdate(ctx, tx, key, object)
		if err != nil {
			return err
		}
		move, err := decide(ctx, tx, account, known)
		if err != nil {
			return err
		}
		if move != nil {
			store.MoveMoney(tx, key, *move)
			if out, err = emitMoney(ctx, tx, a.Wake, key); err != nil {
				return err
			}
			tx.AfterCommit(func() { failpoint.Here("money.committed") })
		}
		if move == nil || since != account.Version { // otherwise the event contains all entries since then
			out, err = store.MoneyAccount(ctx, tx, key, &since)
		}
		return err
	})
	return out, err
}

// emitMoney emits the event of an account that the transaction has changed, with the entries that changed since the last event.
func emitMoney(ctx context.Context, tx pg.Tx, wake func(), key domain.MoneyKey) (domain.MoneyAccount, error) {
	account, moved, err := store.UnpublishedMoney(ctx, tx, key)
	if err != nil || !moved {
		return account, err
	}
	body, err := contract.Encode(view.MoneyAccount(account))
	if err != nil {
		return account, err
	}
	return account, outbox.Emit(ctx, tx, wake, accountMoved(account, body))
}
