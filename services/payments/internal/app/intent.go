package app

import (
	"context"
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// Intents are the use cases of a payment intent.
type Intents struct {
	DB       *pg.DB
	Accounts store.Accounts
	Gateway  Gateway
	Bookings BookingService
	Invoices InvoiceService
	Keys     operation.Keys
	// Metrics counts; nil counts nothing.
	Metrics *Metrics
	// Wake signals the relay that an event has been committed.
	Wake func()
	// Now is real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// fieldOf names the field of the body by the gateway's parameter.
var fieldOf = map[string]string{"amount": "amount_minor", "currency": "currency", "receipt_email": "receipt_email", "description": "description"}

// gatewayError returns the error that a client gets for an error of the gateway. definite reports that the attempt had no effect
// there. A gateway that takes no request, or refuses the keys, has not checked whether an earlier call of the attempt had an
// effect. Such an error is therefore definite only for a fresh attempt.
func gatewayError(cause error, fresh bool) (definite bool, answer error) {
	var refused *domain.RefusedError
	var busy *domain.BusyError
	switch {
	case errors.As(cause, &refused):
		if field := fieldOf[refused.Param]; field != "" {
			return fresh || !refused.Unread, apperr.Field(field, "%s", refused.Message)
		}
		text := refused.Message
		if refused.DeclineCode != nil {
			text += " (" + *refused.DeclineCode + ")"
		}
		return fresh || !refused.Unread, domain.ErrGateway.WithMessage("%s", text).WithCause(cause)
	case errors.As(cause, &busy):
		return fresh, domain.ErrGateway.WithMessage("The payment gateway is not accepting requests at the moment.").
			WithRetryAfter(busy.RetryAfter).WithCause(cause)
	default:
		return false, domain.ErrGateway.WithMessage("The payment gateway did not respond. Retry with the same Idempotency-Key.").
			WithRetryAfter(unknownRetry).WithCause(cause)
	}
}

// made writes the intent that the gateway has created.
func (a *Intents) made(ctx context.Context, tx pg.Tx, id domain.IntentID, told domain.Snapshot) (domain.Intent, error) {
	current, err := store.IntentForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Intent{}, err
	}
	p := current
	if !current.Status.Known() {
		told.Charges, told.Refunds = nil, nil // what they have moved is written by the next read
		if p, err = a.settle(ctx, tx, current, current.Apply(told, a.now(ctx))); err != nil {
			return domain.Intent{}, err
		}
		if p, err = store.UpdateIntent(ctx, tx, p, false); err != nil {
			return domain.Intent{}, err
		}
		body, err := outbox.Body(ctx, view.Intent, p)
		if err != nil {
			return domain.Intent{}, err
		}
		if err := outbox.Emit(ctx, tx, a.Wake, changed(current, p, body, nil)); err != nil {
			return domain.Intent{}, err
		}
	}
	p.ClientSecret = told.ClientSecret
	return p, nil
}

// settle leaves an intent of a lost booking to Settler if it succeeds now. It leaves one that is open again to Canceler, which did
// not see it. It sets the booking's state for the event.
func (a *Intents) settle(ctx context.Context, tx pg.Tx, current, wanted domain.Intent) (domain.Intent, error) {
	succeeds := wanted.Status == domain.Succeeded && current.Status != domain.Succeeded
	reopens := wanted.Status.Open() && !current.Status.Open() && current.Status != domain.Creating
	if !succeeds && !reopens {
		return wanted, nil
	}
	var err error
	if wanted.BookingStatus, err = store.HeldStatus(ctx, tx, wanted.BookingID); err != nil || !(domain.Booking{Status: wanted.BookingStatus}).Lost() {
		return wanted, err
	}
	if succeeds {
		return wanted, store.PutSettlement(ctx, tx, wanted.BookingID, a.Now())
	}
	return wanted, store.PutReopened(ctx, tx, wanted.BookingID, a.Now())
}

// applyAnswer writes what the gateway has answered to an action on an intent.
func (a *Intents) applyAnswer(ctx context.Context, tx pg.Tx, id domain.IntentID, told domain.Snapshot) (domain.Intent, error) {
	current, err := store.IntentForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Intent{}, err
	}
	return a.apply(ctx, tx, current, told, domain.Intent.Apply)
}

// apply writes the gateway's state of an intent that the transaction has locked: its movements in the ledger, its disputes, and the
// intent as merge returns it, with an event for each change. A change that is not visible emits no event.
func (a *Intents) apply(
	ctx context.Context, tx pg.Tx, current domain.Intent, told domain.Snapshot,
	merge func(p domain.Intent, told domain.Snapshot, now time.Time) domain.Intent,
) (domain.Intent, error) {
	if err := store.PutMovements(ctx, tx, current, told.Movements); err != nil {
		return domain.Intent{}, err
	}
	before := current
	current, last, err := a.tellFailures(ctx, tx, current, told)
	if err != nil {
		return domain.Intent{}, err
	}
	wanted, err := a.settle(ctx, tx, before, merge(current, told, a.now(ctx)))
	if err != nil {
		return domain.Intent{}, err
	}
	if last != nil {
		wanted.FailedCharge = last.ID
	}
	saved, err := a.write(ctx, tx, current, wanted)
	if err != nil || !told.DisputesRead || told.More {
		return saved, err
	}
	return saved, a.applyDisputes(ctx, tx, saved, told.Disputes)
}

// write writes a change of an intent, which the transaction has locked, and its event.
func (a *Intents) write(ctx context.Context, tx pg.Tx, current, wanted domain.Intent) (domain.Intent, error) {
	before, err := outbox.Body(ctx, view.Intent, current)
	if err != nil {
		return domain.Intent{}, err
	}
	after, err := outbox.Body(ctx, view.Intent, wanted)
	if err != nil {
		return domain.Intent{}, err
	}
	if wanted.RefundedElsewhere < current.RefundedElsewhere || wanted.Refunded < current.Refunded { // a refund has failed that may have counted
		if err := store.WakeOwed(ctx, tx, wanted.BookingID, wanted.GatewayID, a.Now()); err != nil {
			return domain.Intent{}, err
		}
	}
	previous := outbox.Diff(before, after)
	if string(previous) == "{}" && wanted.FailedCharge == current.FailedCharge {
		switch {
		case wanted.RefundedElsewhere != current.RefundedElsewhere, wanted.Charges != current.Charges, wanted.Refunds != current.Refunds, wanted.EverDisputed != current.EverDisputed:
			return store.UpdateIntent(ctx, tx, wanted, false)
		case wanted.Applied != current.Applied:
			return wanted, store.SaveRead(ctx, tx, wanted)
		default:
			return current, nil
		}
	}
	saved, err := store.UpdateIntent(ctx, tx, wanted, true)
	if err != nil {
		return domain.Intent{}, err
	}
	body, err := outbox.Body(ctx, view.Intent, saved)
	if err != nil {
		return domain.Intent{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Wake, changed(current, saved, body, previous))
}

// actError returns the error that a client gets for an action that failed. It returns the service's own errors unchanged.
func actError(err error) error {
	var own *apperr.Error
	if errors.As(err, &own) {
		return err
	}
	_, answer := gatewayError(err, true)
	return answer
}

// now is the caller's time, as the columns keep it.
func (a *Intents) now(ctx context.Context) time.Time {
	return caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
}
