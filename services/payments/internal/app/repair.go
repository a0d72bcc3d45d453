package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/libs/repair"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// Repair describes how this service agrees with the others and with the payment gateway again after a restore. The gateway is the
// truth about money: the running service compares all accounts and adopts intents that it has lost.
func Repair() repair.Service {
	return repair.Service{
		Name: "payments", Copies: store.Copies,
		Kinds: []repair.Kind{
			{Prefix: "pi", Own: store.OwnIntents, Publish: publishIntent},
			{Prefix: "ma", Own: store.OwnMoney, Publish: publishMoney},
		},
		Fixes: []repair.Fix{
			{What: "accounts to be compared with the payment gateway", SQL: store.CompareAccounts, Open: store.Comparing},
			{What: "accounts of money that differ from their payments", SQL: store.UnbalancedMoney, Shown: true},
			{What: "payments of bookings that are lost", SQL: store.Unbooked, Shown: true},
		},
		Forget: map[string]func(ctx context.Context, tx pg.Tx, id string) error{"bk": func(ctx context.Context, tx pg.Tx, id string) error {
			booking, err := ids.Parse[ids.BookingPrefix](id)
			if err != nil {
				return err
			}
			return store.ForgetBooking(ctx, tx, booking)
		}},
	}
}

// publishIntent publishes the stored state of an intent.
func publishIntent(ctx context.Context, tx pg.Tx, key string, version int64, events []string) error {
	id := domain.GatewayID(key)
	if err := store.RaiseIntentVersion(ctx, tx, id, version); err != nil {
		return err
	}
	p, err := store.Intent(ctx, tx, id)
	if errors.Is(err, domain.ErrIntentNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	body, err := outbox.Body(ctx, view.Intent, p)
	if err != nil {
		return err
	}
	e := intentUpdated(p, body, nil)
	if len(events) > 0 { // it is the only type that the log must contain
		e = paymentSucceeded(p, body, nil)
	}
	return outbox.Emit(ctx, tx, nil, e)
}

// publishMoney publishes an account of money with all its entries.
func publishMoney(ctx context.Context, tx pg.Tx, id string, version int64, _ []string) error {
	key, err := store.RaiseMoneyVersion(ctx, tx, id, version)
	if err == nil {
		_, err = emitMoney(ctx, tx, nil, key)
	}
	return err
}
