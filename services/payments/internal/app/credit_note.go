package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// noteRefund is createRefund for a credit note, which identifies the refund forever. A repeated request finds it, however late it
// arrives.
type noteRefund struct {
	createRefund

	note domain.NoteRefund
}

// Begin writes the row of a new refund and reserves its amount, or takes over the calls of the refund that exists. It locks the
// intents first. Of two simultaneous requests, the second one therefore finds the row of the first one. A call of a credit note
// never counts as fresh: if the gateway is busy or refuses the keys, RefundCompleter continues it.
func (o *noteRefund) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	intents, err := store.NamedIntents(ctx, tx, o.note.Booking, o.note.Intents())
	if err != nil {
		return false, err
	}
	found, err := store.RefundOfNote(ctx, tx, o.note.Note)
	if err == nil {
		if found, err = store.RefundForUpdate(ctx, tx, found.ID); err != nil {
			return false, err
		}
		return o.resume(ctx, tx, found)
	}
	if !errors.Is(err, domain.ErrRefundNotFound) {
		return false, err
	}
	account, err := store.MoneyAccountForUpdate(ctx, tx, domain.BookingMoney(o.note.Booking, o.note.Currency))
	if err == nil {
		err = account.Expect(o.note.IfVersion)
	}
	if err != nil {
		return false, err
	}
	r, err := o.note.Refund(intents, o.Intents.Now())
	if err == nil {
		err = account.Backed(r.Amount.Minor, "parts")
	}
	if err != nil {
		return false, err
	}
	o.r, err = o.insert(ctx, tx, r)
	return false, err
}

// RefundNote creates the refund of a credit note once, and returns its state. It returns an error only if there is no refund.
func (a *Refunds) RefundNote(ctx context.Context, in domain.NoteRefund) (domain.Refund, error) {
	err := operation.Resume(ctx, a.Intents.operations(), &noteRefund{createRefund: createRefund{Refunds: a}, note: in})
	found, missing := store.RefundOfNote(ctx, a.Intents.DB.Read(ctx), in.Note)
	switch {
	case missing == nil:
		return found, nil // also after an error: RefundCompleter continues the calls
	case err != nil:
		return domain.Refund{}, err
	default:
		return domain.Refund{}, missing
	}
}
