package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// manualRefund records money that was handed back. It calls nothing: Finish decides and writes in the transaction that stores the
// response, so a repeated request records it once.
type manualRefund struct{ *createRefund }

// Begin implements operation.Operation. It stores nothing.
func (o *manualRefund) Begin(context.Context, pg.Tx, string) (done bool, err error) {
	return true, o.unable
}

// Finish records the refund under the lock of the account. Refunds that are owed to the payer decrease by it.
func (o *manualRefund) Finish(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
	r, err := o.record(ctx, tx)
	if refused := new(apperr.Error); errors.As(err, &refused) {
		return r, &operation.RefusedError{Err: err}
	}
	failpoint.Here("handback.written")
	tx.AfterCommit(func() { failpoint.Here("handback.committed") })
	return r, err
}

// Release implements operation.Operation. It does nothing, because Begin has stored nothing.
func (*manualRefund) Release(context.Context, pg.Tx) error { return nil }

func (o *manualRefund) record(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
	key, err := store.MoneyToReturn(ctx, tx, o.named.booking)
	if err != nil {
		return domain.Refund{}, err
	}
	store.WakeOwed(tx, o.named.booking, "", o.Intents.Now())
	account, err := store.MoneyAccountForUpdate(ctx, tx, key)
	if err != nil {
		return domain.Refund{}, err
	}
	r, err := domain.NewManualRefund(o.in, account, o.named.customer)
	if err != nil {
		return domain.Refund{}, err
	}
	if r, err = store.InsertRefund(ctx, tx, r); err != nil {
		return domain.Refund{}, err
	}
	store.MoveMoney(tx, key, r.Move())
	if _, err := emitMoney(ctx, tx, o.Intents.Wake, key); err != nil {
		return domain.Refund{}, err
	}
	body, err := outbox.Body(ctx, view.Refund, r)
	if err != nil {
		return domain.Refund{}, err
	}
	return r, outbox.Emit(ctx, tx, o.Intents.Wake, refundUpdated(r, body, nil))
}
