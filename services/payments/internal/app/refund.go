package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
	"holdfast.dev/services/payments/internal/view"
)

// Refunds are the use cases of a refund.
type Refunds struct {
	Intents *Intents
	// Wake signals Events.Run that an intent must be read again.
	Wake func()
}

// createRefund creates a refund at the gateway. Begin reserves its amount under the locks of the intents. Call calls the gateway
// for one intent after the other. Finish writes the outcome of the last part.
type createRefund struct {
	*Refunds

	in     domain.RefundInput
	named  named
	unable error // why a new refund cannot be created

	r       domain.Refund
	fresh   bool          // whether these are the first calls of these attempts
	pending []partOutcome // outcomes that are not written yet
}

// partOutcome is the outcome of a part.
type partOutcome struct {
	part domain.Allocation
	out  outcome
}

// named is the intent or the booking in a request.
type named struct {
	intent   domain.GatewayID // "": the booking is named
	booking  domain.BookingID
	customer domain.CustomerID // of the booking
}

// Create returns the operation that creates a refund.
func (a *Refunds) Create(ctx context.Context, in domain.RefundInput) operation.Operation[domain.Refund] {
	o := &createRefund{Refunds: a, in: in}
	if o.unable = in.Check(); o.unable == nil {
		o.named, o.unable = a.lookup(ctx, in)
	}
	if in.Method != domain.ByGateway {
		return &manualRefund{o}
	}
	return o
}

// Name implements operation.Operation.
func (o *createRefund) Name() string { return operationOf(o.r.ID) }

// Begin writes the row of a new refund and reserves its amount, or takes over the calls of the refund that the same request began
// before.
func (o *createRefund) Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error) {
	found, err := o.begun(ctx, tx, begun)
	if err != nil {
		return false, err
	}
	if found != nil {
		return o.resume(ctx, tx, *found)
	}
	if o.unable != nil {
		return false, o.unable
	}
	intents, err := store.IntentsToRefund(ctx, tx, o.named.intent, o.named.booking, domain.MaxAllocations+1)
	if err != nil {
		return false, err
	}
	if len(intents) == 0 {
		return false, domain.ErrNothingToRefund
	}
	account, err := store.MoneyAccountForUpdate(ctx, tx, domain.BookingMoney(intents[0].BookingID, intents[0].Amount.Currency))
	if err != nil {
		return false, err
	}
	r, err := domain.NewRefund(o.in, intents, account.Left(), o.Intents.Now())
	if err != nil {
		return false, err
	}
	o.fresh = true
	o.r, err = o.insert(ctx, tx, r)
	return false, err
}

// insert writes a new refund and emits the event of the account whose money it holds.
func (a *Refunds) insert(ctx context.Context, tx pg.Tx, r domain.Refund) (domain.Refund, error) {
	r, err := store.InsertRefund(ctx, tx, r)
	if err != nil {
		return domain.Refund{}, err
	}
	_, err = emitMoney(ctx, tx, a.Intents.Wake, r.MoneyKey())
	return r, err
}

// begun locks and reads the refund of an operation. It returns nil if there is none, or if the gateway refused all of it.
func (o *createRefund) begun(ctx context.Context, tx pg.Tx, name string) (*domain.Refund, error) {
	if name == "" {
		return nil, nil
	}
	var id domain.RefundID
	if err := id.Scan(name); err != nil {
		return nil, fmt.Errorf("operation %q: %w", name, err)
	}
	r, err := store.RefundForUpdate(ctx, tx, id)
	if errors.Is(err, domain.ErrRefundNotFound) || err == nil && r.Status == domain.RefundRefused && !r.Shown {
		return nil, nil
	}
	return &r, err
}

// resume takes over the calls of a refund, if no other process holds them. If the gateway may have forgotten the calls, it leaves
// them to the completer.
func (o *createRefund) resume(ctx context.Context, tx pg.Tx, r domain.Refund) (done bool, err error) {
	o.r, o.fresh, o.pending = r, false, nil
	parts, real := r.UnderWay(), o.Intents.Now()
	if len(parts) == 0 {
		return true, nil
	}
	forgotten := func(part domain.Allocation) bool { return part.Forgotten(real) }
	if r.Lease.Held(real) || slices.ContainsFunc(parts, forgotten) {
		return false, operation.ErrUnderWay
	}
	o.r = r.Resume(real)
	return false, store.LeaseRefund(ctx, tx, o.r)
}

// Call sends the calls that are in progress to the gateway. It writes the outcome of each part except the last one before it sends
// the next call.
func (o *createRefund) Call(ctx context.Context) error {
	var refusal error // of the first part that was refused
	parts := o.r.UnderWay()
	for i, part := range parts {
		account, err := o.account(ctx, part)
		if err != nil {
			return err
		}
		failpoint.Here("refund.begun")
		snapshot, cause := o.Intents.Gateway.CreateRefund(ctx, account, o.r, part)
		failpoint.Here("refund.called")
		var busy *domain.BusyError
		if errors.As(cause, &busy) && o.fresh && !o.r.Shown {
			return o.giveBack(parts[i:], cause)
		}
		out, known := outcomeOf(snapshot, cause, o.fresh)
		if !known {
			return o.leave(ctx, o.r.ID, cause)
		}
		if refusal == nil {
			refusal = cause
		}
		o.pending = []partOutcome{{part, out}}
		if last := i == len(parts)-1; !last {
			if err := o.Intents.DB.Tx(ctx, o.write); err != nil {
				return err
			}
		}
	}
	if o.makesSomething() {
		return nil
	}
	_, clientErr := gatewayError(refusal, true)
	return &operation.RefusedError{Err: clientErr}
}

// makesSomething reports whether the gateway has created a part, according to the stored state and the outcome of the last part.
func (o *createRefund) makesSomething() bool { return o.r.Shown || o.pending[0].out.refused == nil }

// giveBack ends a refund without a created part, because the gateway accepts no requests.
func (o *createRefund) giveBack(parts []domain.Allocation, cause error) error {
	_, clientErr := gatewayError(cause, true)
	out := outcome{refused: &domain.Failure{Code: "gateway_busy", Message: "The payment gateway is not accepting requests at the moment."}}
	o.pending = nil
	for _, part := range parts {
		o.pending = append(o.pending, partOutcome{part, out})
	}
	return &operation.RefusedError{Err: clientErr}
}

// write writes the outcomes of parts that further parts follow.
func (o *createRefund) write(ctx context.Context, tx pg.Tx) (err error) {
	for _, s := range o.pending {
		if o.r, err = o.recordOutcome(ctx, tx, o.r, s.part, s.out, true); err != nil {
			return err
		}
	}
	return nil
}

// Finish writes the outcome of the last part.
func (o *createRefund) Finish(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
	tx.AfterCommit(func() { failpoint.Here("refund.committed") })
	if len(o.pending) == 0 {
		return store.RefundForUpdate(ctx, tx, o.r.ID)
	}
	last := o.pending[0]
	return o.recordOutcome(ctx, tx, o.r, last.part, last.out, false)
}

// Release records that the gateway refused all parts of the refund.
func (o *createRefund) Release(ctx context.Context, tx pg.Tx) error {
	if err := o.write(ctx, tx); err != nil {
		return err
	}
	if o.r.Shown || len(o.r.UnderWay()) > 0 {
		return operation.ErrUnderWay // read it again
	}
	return nil
}

// lookup checks that the intent or the booking in a request exists.
func (a *Refunds) lookup(ctx context.Context, in domain.RefundInput) (n named, err error) {
	if n.intent, err = in.NamedIntent(); err != nil {
		return n, err
	}
	if n.intent != "" {
		_, err := store.Intent(ctx, a.Intents.DB.Read(ctx), n.intent)
		return n, err
	}
	if n.booking, err = in.NamedBooking(); err != nil {
		return n, err
	}
	n.customer, err = store.CustomerOf(ctx, a.Intents.DB.Read(ctx), n.booking)
	if errors.Is(err, domain.ErrBookingNotFound) {
		var found domain.Booking
		found, err = a.Intents.Bookings.Booking(ctx, n.booking)
		n.customer = found.CustomerID
	}
	return n, err
}

// account returns the account of the intent of a part, even if it is disconnected now.
func (a *Refunds) account(ctx context.Context, part domain.Allocation) (domain.Account, error) {
	p, err := store.IntentRow(ctx, a.Intents.DB.Read(ctx), part.IntentID)
	if err != nil {
		return domain.Account{}, err
	}
	return a.Intents.Accounts.Account(ctx, a.Intents.DB.Read(ctx), p.AccountID)
}

// outcome is the gateway's response for a part: the created refund, or the reason for the refusal.
type outcome struct {
	refund  domain.GatewayRefund
	refused *domain.Failure
}

// outcomeOf reads the response to a call. known is false if the response does not show whether the refund was created. A gateway
// that accepts no request, or refuses the keys, does not check whether an earlier call of the same attempt created it.
func outcomeOf(refund domain.GatewayRefund, cause error, fresh bool) (out outcome, known bool) {
	var refused *domain.RefusedError
	switch {
	case cause == nil:
		return outcome{refund: refund}, true
	case errors.As(cause, &refused) && (fresh || !refused.Unread):
		return outcome{refused: &refused.Failure}, true
	default:
		return outcome{}, false
	}
}

// leave leaves the calls in progress to the next attempt, and returns the client's error.
func (a *Refunds) leave(ctx context.Context, id domain.RefundID, cause error) error {
	_, clientErr := gatewayError(cause, true)
	err := a.Intents.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx pg.Tx) error {
		current, err := store.RefundForUpdate(ctx, tx, id)
		if err != nil || len(current.UnderWay()) == 0 {
			return err
		}
		current.Lease = current.Lease.Renew(a.Intents.Now(), releaseAfter)
		return store.LeaseRefund(ctx, tx, current)
	})
	return errors.Join(clientErr, err)
}

// recordOutcome writes the outcome of a part of a refund whose calls the process holds, unless it is already recorded. A refusal counts only
// if no other process has taken over the calls. more reports that the process continues with the other parts.
func (a *Refunds) recordOutcome(
	ctx context.Context, tx pg.Tx, r domain.Refund, part domain.Allocation, out outcome, more bool,
) (domain.Refund, error) {
	p, err := store.IntentForUpdate(ctx, tx, part.IntentID)
	if err != nil {
		return domain.Refund{}, err
	}
	current, err := store.RefundForUpdate(ctx, tx, r.ID)
	if err != nil {
		return domain.Refund{}, err
	}
	found, ok := current.Allocation(part.ID)
	if !ok || found.Status != domain.RefundCreating || out.refused != nil && (found.Attempt != part.Attempt || !current.Lease.Holds(r.Lease)) {
		return current, nil
	}
	next, note := current.Reported(part.ID, out.refund), out.refund.ID
	if out.refused != nil {
		next, note = current.Refused(part.ID, *out.refused), part.ID.String()
	}
	if more && next.Lease.UnderWay() {
		next = next.Resume(a.Intents.Now())
	}
	if err := store.PutEvent(ctx, tx, domain.RefundReadRequested(p.AccountID, p.GatewayID, note), a.Intents.Now()); err != nil {
		return domain.Refund{}, err
	}
	if err := store.PutMovements(ctx, tx, p, out.refund.Movements); err != nil {
		return domain.Refund{}, err
	}
	tx.AfterCommit(a.Wake)
	return a.write(ctx, tx, current, next, part)
}

// write writes the change of a part and the amount it holds of its intent. It emits an event if the change is visible. The
// transaction has locked the intent and the refund.
func (a *Refunds) write(ctx context.Context, tx pg.Tx, current, next domain.Refund, part domain.Allocation) (domain.Refund, error) {
	previous, err := outbox.Previous(ctx, view.Refund, current, next)
	if err != nil {
		return domain.Refund{}, err
	}
	visible := next.Shown && (!current.Shown || string(previous) != "{}")
	changed, _ := next.Allocation(part.ID)
	if err := a.wakeOwed(ctx, tx, current, changed); err != nil {
		return domain.Refund{}, err
	}
	if held := next.Held(part.IntentID) - current.Held(part.IntentID); held != 0 { // after all other locks: it locks the account
		if err := store.Reserve(ctx, tx, part, next.MoneyKey(), held); err != nil {
			return domain.Refund{}, err
		}
		if _, err := emitMoney(ctx, tx, a.Intents.Wake, next.MoneyKey()); err != nil {
			return domain.Refund{}, err
		}
	}
	saved, err := store.UpdateRefund(ctx, tx, next, changed, visible && current.Shown, visible)
	if err != nil || !visible {
		return saved, err
	}
	if !current.Shown {
		previous = nil
	}
	body, err := outbox.Body(ctx, view.Refund, saved)
	if err != nil {
		return domain.Refund{}, err
	}
	return saved, outbox.Emit(ctx, tx, a.Intents.Wake, refundUpdated(saved, body, previous))
}

// wakeOwed makes the owed refund of the part's intent due, because money of the part has moved. If a refund created for it has
// failed, even after it had succeeded, the owed refund is retried after a while.
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
	store.WakeOwed(tx, r.BookingID, part.Intent, now)
	return nil
}

// openAtOnce limits how many unfinished refunds of an intent are in memory at a time.
const openAtOnce = 100

// Refresh reads the unfinished refunds of an intent, and those named in events, which may have failed after their end.
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

// refresh reads a refund at the gateway and applies it, unless a read that began later was already applied. A refund that this
// platform did not create shows only in the intent and the ledger.
func (a *Refunds) refresh(ctx context.Context, account domain.Account, p domain.Intent, gateway string) error {
	begun, err := a.Intents.beginRead(ctx, p.ID)
	if err != nil {
		return err
	}
	refund, err := a.Intents.Gateway.ReadRefund(ctx, account, gateway)
	if err != nil {
		return err
	}
	return a.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if _, err := store.IntentForUpdate(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := store.PutMovements(ctx, tx, p, refund.Movements); err != nil {
			return err
		}
		row, err := ids.Parse[domain.AllocationPrefix](refund.Row)
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
		if begun.Reads <= part.Applied || part.GatewayID != "" && part.GatewayID != refund.ID {
			return nil
		}
		_, err = a.write(ctx, tx, current, current.Reported(row, refund).Read(row, begun.Reads), part)
		return err
	})
}
