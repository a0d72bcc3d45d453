package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// Refunds are the use cases of a refund.
type Refunds struct {
	Intents *Intents
	// Wake tells Events.Run that an intent is to be read again.
	Wake func()
}

// Create makes a refund at the gateway, once for each Idempotency-Key, as Intents.Create makes an intent. Its amount is reserved
// under the locks of the intents before the gateway is asked, one intent after the other.
func (a *Refunds) Create(ctx context.Context, transact pg.Transact[domain.Refund], in domain.RefundInput, patience time.Duration) error {
	if err := in.Check(); err != nil {
		return err
	}
	return whileUnderWay(ctx, patience, func() error { return replayed(ctx, transact, a.create(ctx, transact, in)) })
}

func (a *Refunds) create(ctx context.Context, transact pg.Transact[domain.Refund], in domain.RefundInput) error {
	r, err := a.resume(ctx)
	if err != nil {
		return err
	}
	if r != nil {
		return a.run(ctx, transact, *r, false)
	}
	begun, err := a.begin(ctx, in)
	if err != nil {
		return err
	}
	return a.run(ctx, transact, begun, true)
}

// resume finds the refund that the same request has begun before, and takes its calls where nobody has them; nil when there is none.
func (a *Refunds) resume(ctx context.Context) (r *domain.Refund, err error) {
	err = a.Intents.claiming(ctx, func(ctx context.Context, tx pg.Tx, operation string) error {
		real := a.Intents.Now()
		if r, err = a.begun(ctx, tx, operation); err != nil {
			return err
		}
		if r == nil {
			return errNoCall
		}
		parts := r.UnderWay()
		if len(parts) == 0 {
			return nil
		}
		forgotten := func(part domain.Allocation) bool { return part.Forgotten(real) }
		if r.Leased(real) || slices.ContainsFunc(parts, forgotten) { // the completer looks for what the gateway has forgotten
			return errUnderWay
		}
		*r = r.Lease(real)
		return store.LeaseRefund(ctx, tx, *r)
	})
	if errors.Is(err, errNoCall) {
		err = nil
	}
	return r, err
}

// begun locks and reads the refund of an operation; nil when there is none, or when the gateway has refused all of it.
func (a *Refunds) begun(ctx context.Context, tx pg.Tx, operation string) (*domain.Refund, error) {
	if operation == "" {
		return nil, nil
	}
	var id domain.RefundID
	if err := id.Scan(operation); err != nil {
		return nil, fmt.Errorf("operation %q: %w", operation, err)
	}
	r, err := store.RefundForUpdate(ctx, tx, id)
	if errors.Is(err, domain.ErrRefundNotFound) || err == nil && r.Status == domain.RefundRefused && !r.Shown {
		return nil, nil
	}
	return &r, err
}

// begin writes the row of a new refund and reserves its amount.
func (a *Refunds) begin(ctx context.Context, in domain.RefundInput) (r domain.Refund, err error) {
	intent, booking, err := a.named(ctx, in)
	if err != nil {
		return domain.Refund{}, err
	}
	err = a.Intents.claiming(ctx, func(ctx context.Context, tx pg.Tx, operation string) error {
		if other, err := a.begun(ctx, tx, operation); err != nil || other != nil { // by the same request, since resume has looked
			return errors.Join(err, errUnderWay)
		}
		intents, err := store.IntentsToRefund(ctx, tx, intent, booking, domain.MaxAllocations+1)
		if err != nil {
			return err
		}
		if r, err = domain.NewRefund(in, intents, a.Intents.Now()); err != nil {
			return err
		}
		if r, err = store.InsertRefund(ctx, tx, r); err != nil {
			return err
		}
		return a.Intents.Replies.Begin(ctx, tx, operationOf(r.ID))
	})
	return r, err
}

// named finds out whether the intent or the booking of a request exists.
func (a *Refunds) named(ctx context.Context, in domain.RefundInput) (intent domain.GatewayID, booking domain.BookingID, err error) {
	if intent, err = in.NamedIntent(); err != nil {
		return "", domain.BookingID{}, err
	}
	if intent != "" {
		_, err := store.Intent(ctx, a.Intents.DB.Read(ctx), intent)
		return intent, domain.BookingID{}, err
	}
	if booking, err = in.NamedBooking(); err != nil {
		return "", domain.BookingID{}, err
	}
	known, err := store.BookingKnown(ctx, a.Intents.DB.Read(ctx), booking)
	if err == nil && !known {
		_, err = a.Intents.Bookings.Booking(ctx, booking)
	}
	return "", booking, err
}

// run asks the gateway for what is under way of a refund. What it says of the last part is written with the answer to the client,
// in one transaction. fresh says that no call of these attempts was made before.
func (a *Refunds) run(ctx context.Context, transact pg.Transact[domain.Refund], r domain.Refund, fresh bool) error {
	parts := r.UnderWay()
	if len(parts) == 0 {
		return transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
			return store.RefundForUpdate(ctx, tx, r.ID)
		})
	}
	var refusal error
	for i, part := range parts {
		account, err := a.account(ctx, part)
		if err != nil {
			return err
		}
		failpoint.Here("refund.begun")
		told, cause := a.Intents.Gateway.CreateRefund(ctx, account, r, part)
		failpoint.Here("refund.called")
		var busy *domain.BusyError
		if errors.As(cause, &busy) && fresh && !r.Shown {
			return a.giveBack(ctx, r, parts[i:], cause)
		}
		out, known := outcomeOf(told, cause, fresh)
		if !known {
			return a.leave(ctx, r.ID, cause)
		}
		if refusal == nil {
			refusal = cause
		}
		last := i == len(parts)-1
		settle := func(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
			return a.settle(ctx, tx, r.ID, part, out, !last)
		}
		if last && (r.Shown || cause == nil) {
			err = transact(ctx, settle)
			failpoint.Here("refund.committed")
			return err
		}
		if r, err = a.inTx(ctx, r.ID, settle); err != nil {
			return err
		}
	}
	if r.Shown {
		return a.run(ctx, transact, r, fresh)
	}
	_, answer := gatewayError(refusal, true)
	return answer
}

// inTx writes the outcome of a part; a refund of which nothing was made leaves the request's key free.
func (a *Refunds) inTx(
	ctx context.Context, id domain.RefundID, write func(ctx context.Context, tx pg.Tx) (domain.Refund, error),
) (r domain.Refund, err error) {
	err = a.Intents.holding(ctx, operationOf(id), func(ctx context.Context, tx pg.Tx) (nothing bool, err error) {
		r, err = write(ctx, tx)
		return !r.Shown && len(r.UnderWay()) == 0, err
	})
	return r, err
}

// account is the one of the intent of a part, also when it is disconnected now.
func (a *Refunds) account(ctx context.Context, part domain.Allocation) (domain.Account, error) {
	p, err := store.IntentRow(ctx, a.Intents.DB.Read(ctx), part.IntentID)
	if err != nil {
		return domain.Account{}, err
	}
	return a.Intents.Accounts.Account(ctx, a.Intents.DB.Read(ctx), p.AccountID)
}

// outcome is what the gateway has said of a part: either it has made the refund, or why it has not.
type outcome struct {
	told    domain.GatewayRefund
	refused *domain.Failure
}

// outcomeOf reads the answer to a call; known is false when it leaves open whether the refund was made. A gateway that takes no
// request, or refuses the keys, has not looked whether an earlier call of the same attempt has made it.
func outcomeOf(told domain.GatewayRefund, cause error, fresh bool) (out outcome, known bool) {
	var refused *domain.RefusedError
	switch {
	case cause == nil:
		return outcome{told: told}, true
	case errors.As(cause, &refused) && (fresh || !refused.Unread):
		return outcome{refused: &refused.Failure}, true
	default:
		return outcome{}, false
	}
}

// giveBack ends a refund of which nothing was made, because the gateway takes no requests.
func (a *Refunds) giveBack(ctx context.Context, r domain.Refund, parts []domain.Allocation, cause error) error {
	_, answer := gatewayError(cause, true)
	out := outcome{refused: &domain.Failure{Code: "gateway_busy", Message: "The payment gateway takes no requests at the moment."}}
	for _, part := range parts {
		// The client may have gone, and its context with it.
		_, err := a.inTx(context.WithoutCancel(ctx), r.ID, func(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
			return a.settle(ctx, tx, r.ID, part, out, true)
		})
		if err != nil {
			return errors.Join(answer, err)
		}
	}
	return answer
}

// leave leaves what is under way to the next attempt, and returns what the client is told.
func (a *Refunds) leave(ctx context.Context, id domain.RefundID, cause error) error {
	_, answer := gatewayError(cause, true)
	err := a.Intents.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx pg.Tx) error {
		current, err := store.RefundForUpdate(ctx, tx, id)
		if err != nil || len(current.UnderWay()) == 0 {
			return err
		}
		next := a.Intents.Now().Add(releaseAfter)
		current.LeasedUntil = &next
		return store.LeaseRefund(ctx, tx, current)
	})
	return errors.Join(answer, err)
}

// settle writes the outcome of a part, unless it is known already. more says that the process goes on with the other parts.
func (a *Refunds) settle(
	ctx context.Context, tx pg.Tx, id domain.RefundID, part domain.Allocation, out outcome, more bool,
) (domain.Refund, error) {
	p, err := store.IntentForUpdate(ctx, tx, part.IntentID)
	if err != nil {
		return domain.Refund{}, err
	}
	current, err := store.RefundForUpdate(ctx, tx, id)
	if err != nil {
		return domain.Refund{}, err
	}
	found, ok := current.Allocation(part.ID)
	if !ok || found.Status != domain.RefundCreating || out.refused != nil && found.Attempt != part.Attempt {
		return current, nil
	}
	next, note := current.Told(part.ID, out.told), out.told.ID
	if out.refused != nil {
		next, note = current.Refused(part.ID, *out.refused), part.ID.String()
	}
	if more && next.LeasedUntil != nil {
		next = next.Lease(a.Intents.Now())
	}
	if err := store.PutEvent(ctx, tx, domain.RefundAsked(p.AccountID, p.GatewayID, note), a.Intents.Now()); err != nil {
		return domain.Refund{}, err
	}
	if err := store.PutMovements(ctx, tx, p, out.told.Movements); err != nil {
		return domain.Refund{}, err
	}
	tx.AfterCommit(a.Wake)
	return a.write(ctx, tx, current, next, part)
}

// write writes the change of a part, what it holds of its intent, and the event of a change that is visible. The transaction has
// locked the intent and the refund.
func (a *Refunds) write(ctx context.Context, tx pg.Tx, current, next domain.Refund, part domain.Allocation) (domain.Refund, error) {
	if held := next.Held(part.IntentID) - current.Held(part.IntentID); held != 0 {
		if err := store.Reserve(ctx, tx, part.IntentID, held); err != nil {
			return domain.Refund{}, err
		}
	}
	before, err := renderRefund(ctx, current)
	if err != nil {
		return domain.Refund{}, err
	}
	after, err := renderRefund(ctx, next)
	if err != nil {
		return domain.Refund{}, err
	}
	previous := outbox.Diff(before, after)
	visible := next.Shown && (!current.Shown || string(previous) != "{}")
	changed, _ := next.Allocation(part.ID)
	if err := a.wakeOwed(ctx, tx, current, changed); err != nil {
		return domain.Refund{}, err
	}
	saved, err := store.UpdateRefund(ctx, tx, next, changed, visible && current.Shown, visible)
	if err != nil || !visible {
		return saved, err
	}
	if !current.Shown {
		previous = nil
	}
	body, err := renderRefund(ctx, saved)
	if err != nil {
		return domain.Refund{}, err
	}
	return saved, emit(ctx, tx, a.Intents.Wake, refundUpdated(saved, body, previous))
}

// wakeOwed makes what a policy owes of the part's intent due, as the part's money has moved. Where a refund that was made for it has
// failed, also after it had succeeded, that is tried again after a while.
func (a *Refunds) wakeOwed(ctx context.Context, tx pg.Tx, r domain.Refund, part domain.Allocation) error {
	before, _ := r.Allocation(part.ID)
	if before.Status == part.Status {
		return nil
	}
	now := a.Intents.Now()
	if before.Status.Holds() && !part.Status.Holds() && !r.Owed.IsZero() {
		if err := store.FailOwed(ctx, tx, r.Owed, part.Failure, now, now.Add(domain.OwedPause)); err != nil {
			return err
		}
	}
	return store.WakeOwed(ctx, tx, r.BookingID, part.Intent, now)
}

// openAtOnce is how many refunds of an intent that have not ended are in memory at a time.
const openAtOnce = 100

// Refresh reads the refunds of an intent that have not ended, and those that events name, which may have failed after their end.
func (a *Refunds) Refresh(ctx context.Context, account domain.Account, p domain.Intent, named ...string) error {
	var last domain.AllocationID
	named = slices.Clone(named)
	for {
		list, err := store.OpenRefunds(ctx, a.Intents.DB.Read(ctx), p.ID, last, openAtOnce)
		if err != nil {
			return err
		}
		for _, open := range list {
			if err := a.refresh(ctx, account, p, open.GatewayID); err != nil {
				return err
			}
			last = open.ID
			named = slices.DeleteFunc(named, func(id string) bool { return id == open.GatewayID })
		}
		if len(list) < openAtOnce {
			break
		}
	}
	for _, id := range named {
		if id == "" {
			continue
		}
		if err := a.refresh(ctx, account, p, id); err != nil {
			return err
		}
	}
	return nil
}

// refresh reads a refund at the gateway and applies it, unless a read that began later was applied before. One that this platform
// has not made shows in the intent and the ledger only.
func (a *Refunds) refresh(ctx context.Context, account domain.Account, p domain.Intent, gateway string) error {
	begun, err := a.Intents.beginRead(ctx, p.ID)
	if err != nil {
		return err
	}
	told, err := a.Intents.Gateway.ReadRefund(ctx, account, gateway)
	if err != nil {
		return err
	}
	return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.IntentForUpdate(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := store.PutMovements(ctx, tx, p, told.Movements); err != nil {
			return err
		}
		row, err := ids.Parse[domain.AllocationPrefix](told.Row)
		if err != nil {
			return nil //nolint:nilerr // another program's
		}
		id, err := store.RefundOfAllocation(ctx, tx, p.ID, row)
		if errors.Is(err, domain.ErrRefundNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		current, err := store.RefundForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		part, _ := current.Allocation(row)
		if begun.Reads <= part.Applied || part.GatewayID != "" && part.GatewayID != told.ID {
			return nil
		}
		_, err = a.write(ctx, tx, current, current.Told(row, told).Read(row, begun.Reads), part)
		return err
	})
}

func renderRefund(ctx context.Context, r domain.Refund) (json.RawMessage, error) {
	return contract.Encode(view.Refund(r, api.Mode(caller.FromContext(ctx).Mode)))
}
