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
	// Now returns real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// fieldOf maps the gateway's parameters to the fields of the body.
var fieldOf = map[string]string{"amount": "amount_minor", "currency": "currency", "receipt_email": "receipt_email", "description": "description"}

// gatewayError returns the client's error for an error of the gateway. definite reports that the attempt had no effect there. A
// gateway that accepts no request, or refuses the keys, does not check whether an earlier call of the attempt had an effect. Such
// an error is therefore definite only for a fresh attempt.
func gatewayError(cause error, fresh bool) (definite bool, clientErr error) {
	var refused *domain.RefusedError
	var busy *domain.BusyError
	switch {
	case errors.As(cause, &refused) && refused.Code == domain.ChargeDisputed:
		return fresh || !refused.Unread, domain.ErrDisputed.WithCause(cause)
	case errors.As(cause, &refused):
		if field := fieldOf[refused.Param]; field != "" {
			return fresh || !refused.Unread, apperr.Field(field, "%s", refused.Message)
		}
		text := refused.Message
		if refused.DeclineCode != nil {
			text += " (" + *refused.DeclineCode + ")"
		}
		return fresh || !refused.Unread, domain.ErrGateway.WithMessage("%s", text).WithCause(cause).WithoutRetry()
	case errors.As(cause, &busy):
		return fresh, domain.ErrGateway.WithMessage("The payment gateway is not accepting requests at the moment.").
			WithRetryAfter(busy.RetryAfter).WithCause(cause)
	default:
		return false, domain.ErrGateway.WithMessage("The payment gateway did not respond. Retry with the same Idempotency-Key.").
			WithRetryAfter(unknownRetry).WithCause(cause)
	}
}

// writeCreated writes the intent that the gateway created.
func (a *Intents) writeCreated(ctx context.Context, tx pg.Tx, id domain.IntentID, snapshot domain.Snapshot) (domain.Intent, error) {
	current, err := store.IntentForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Intent{}, err
	}
	p := current
	if !current.Status.Known() {
		snapshot.Charges, snapshot.Refunds = nil, nil // the next read writes their movements
		if p, err = a.scheduleFollowUp(ctx, tx, current, current.Apply(snapshot, a.now(ctx))); err != nil {
			return domain.Intent{}, err
		}
		if p, err = a.save(ctx, tx, current, p, false); err != nil {
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
	p.ClientSecret = snapshot.ClientSecret
	return p, nil
}

// scheduleFollowUp schedules work for an intent of a lost booking. Settler processes an intent that succeeds now. Canceler
// processes one that is open again and that it did not see before. scheduleFollowUp sets the booking's state for the event.
func (a *Intents) scheduleFollowUp(ctx context.Context, tx pg.Tx, current, next domain.Intent) (domain.Intent, error) {
	succeeds := next.Status == domain.Succeeded && current.Status != domain.Succeeded
	reopens := next.Status.Open() && !current.Status.Open() && current.Status != domain.Creating
	if !succeeds && !reopens {
		return next, nil
	}
	var err error
	if next.BookingStatus, err = store.HeldStatus(ctx, tx, next.BookingID); err != nil || !(domain.Booking{Status: next.BookingStatus}).Lost() {
		return next, err
	}
	if succeeds {
		return next, store.Settlements.Put(ctx, tx, next.BookingID, a.Now())
	}
	return next, store.Cancellations.Put(ctx, tx, next.BookingID, a.Now())
}

// applyResponse writes the gateway's response to an action on an intent.
func (a *Intents) applyResponse(ctx context.Context, tx pg.Tx, id domain.IntentID, snapshot domain.Snapshot) (domain.Intent, error) {
	current, err := store.IntentForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Intent{}, err
	}
	return a.apply(ctx, tx, current, snapshot, domain.Intent.Apply)
}

// apply writes the gateway's state of an intent that the transaction has locked: its movements in the ledger, its disputes, and the
// intent as merge returns it. It emits an event for each change that is visible.
func (a *Intents) apply(
	ctx context.Context, tx pg.Tx, current domain.Intent, snapshot domain.Snapshot,
	merge func(p domain.Intent, snapshot domain.Snapshot, now time.Time) domain.Intent,
) (domain.Intent, error) {
	if err := store.PutMovements(ctx, tx, current, snapshot.Movements); err != nil {
		return domain.Intent{}, err
	}
	before := current
	current, last, err := a.notifyFailures(ctx, tx, current, snapshot)
	if err != nil {
		return domain.Intent{}, err
	}
	next, err := a.scheduleFollowUp(ctx, tx, before, merge(current, snapshot, a.now(ctx)))
	if err != nil {
		return domain.Intent{}, err
	}
	if last != nil {
		next.FailedCharge = last.ID
	}
	saved, err := a.write(ctx, tx, current, next)
	if err != nil || !snapshot.DisputesRead || snapshot.More {
		return saved, err
	}
	return saved, a.applyDisputes(ctx, tx, saved, snapshot.Disputes)
}

// write writes a change of an intent that the transaction has locked, with its event.
func (a *Intents) write(ctx context.Context, tx pg.Tx, current, next domain.Intent) (domain.Intent, error) {
	previous, err := outbox.Previous(ctx, view.Intent, current, next)
	if err != nil {
		return domain.Intent{}, err
	}
	if next.RefundedElsewhere < current.RefundedElsewhere || next.Refunded < current.Refunded { // a refund that may have counted has failed
		store.WakeOwed(tx, next.BookingID, next.GatewayID, a.Now())
	}
	if string(previous) == "{}" && next.FailedCharge == current.FailedCharge {
		switch {
		case next.Money() != current.Money(), next.Charges != current.Charges, next.Refunds != current.Refunds, next.EverDisputed != current.EverDisputed:
			return a.save(ctx, tx, current, next, false)
		case next.Applied != current.Applied:
			return next, store.SaveRead(ctx, tx, next)
		default:
			return current, nil
		}
	}
	saved, err := a.save(ctx, tx, current, next, true)
	if err != nil {
		return domain.Intent{}, err
	}
	body, err := outbox.Body(ctx, view.Intent, saved)
	if err != nil {
		return domain.Intent{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Wake, changed(current, saved, body, previous))
}

// save writes a change of an intent that the transaction has locked, and emits the event of its account if its money has changed.
func (a *Intents) save(ctx context.Context, tx pg.Tx, current, next domain.Intent, visible bool) (domain.Intent, error) {
	saved, err := store.UpdateIntent(ctx, tx, next, visible)
	if err != nil || next.Money() == current.Money() {
		return saved, err
	}
	_, err = emitMoney(ctx, tx, a.Wake, domain.BookingMoney(next.BookingID, next.Amount.Currency))
	return saved, err
}

// actError returns the client's error for an action that failed. It returns the service's own errors unchanged.
func actError(err error) error {
	var own *apperr.Error
	if errors.As(err, &own) {
		return err
	}
	_, clientErr := gatewayError(err, true)
	return clientErr
}

// now returns the caller's time with the precision of the columns.
func (a *Intents) now(ctx context.Context) time.Time {
	return caller.FromContext(ctx).Now(a.Now()).UTC().Truncate(time.Microsecond)
}
