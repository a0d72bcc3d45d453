package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/contract"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/outbox"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"
	"holdfast.dev/proto/api"

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
	Replies  Replies
	// Metrics counts; nil counts nothing.
	Metrics *Metrics
	// Wake tells the relay that an event has been committed.
	Wake func()
	// Now is real time; a caller's test clock is read from the caller.
	Now func() time.Time
}

// Replies keeps the Idempotency-Keys of requests, and the operation that each has begun. *idemstore.Store implements it.
type Replies interface {
	// Claim keeps the request's key from being used by any other request, and says what the request has begun before; Begin notes
	// what it begins. Release takes the claim back.
	Claim(ctx context.Context, tx pg.Tx) (operation string, answered bool, err error)
	Begin(ctx context.Context, tx pg.Tx, operation string) error
	Release(ctx context.Context, tx pg.Tx) error
	// Hold locks the key with which an operation was begun and keeps it from expiring; Free releases it.
	Hold(ctx context.Context, tx pg.Tx, operation string) error
	Free(ctx context.Context, tx pg.Tx, operation string) error
}

const (
	// pollEvery is how often a request looks whether another one's call has ended.
	pollEvery = 50 * time.Millisecond
	// releaseAfter is how long a call whose outcome is unknown is left alone.
	releaseAfter = time.Second
	// unknownRetry is what a client is told to wait after an unknown outcome.
	unknownRetry = 2 * time.Second
)

var (
	// errUnderWay says that another request, or the completer, has the call.
	errUnderWay = errors.New("the call to the payment gateway is under way")
	// errNoCall undoes the claim of a key that has no call to resume: the transaction that begins one claims it.
	errNoCall = errors.New("the key has no call to the payment gateway")
	// errAnswered says that the same request was answered in the meantime.
	errAnswered = errors.New("the request was answered in the meantime")
)

// Create makes an intent at the gateway, once for each Idempotency-Key, whatever dies on the way: the row is committed, the
// gateway is asked under a key made of the row, and the rest is one transaction. What a dead process leaves is resumed by the
// same request, or by Completer. The caller has looked for the stored answer of its key. patience bounds how long it waits for
// another request.
func (a *Intents) Create(ctx context.Context, transact pg.Transact[domain.Intent], in domain.IntentInput, patience time.Duration) error {
	return whileUnderWay(ctx, patience, func() error { return replayed(ctx, transact, a.create(ctx, transact, in)) })
}

// replayed sends the stored answer where the same request was answered in the meantime, and returns any other error.
func replayed[T any](ctx context.Context, transact pg.Transact[T], err error) error {
	if !errors.Is(err, errAnswered) {
		return err
	}
	return transact(ctx, func(context.Context, pg.Tx) (none T, err error) { return none, errUnderWay }) // the answer has expired
}

// whileUnderWay repeats what another request, or a completer, is doing at the moment. patience bounds how long.
func whileUnderWay(ctx context.Context, patience time.Duration, do func() error) error {
	for until := time.Now().Add(patience); ; {
		err := do()
		if !errors.Is(err, errUnderWay) {
			return err
		}
		if time.Now().After(until) {
			return apperr.ErrInProgress.WithCause(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

func (a *Intents) create(ctx context.Context, transact pg.Transact[domain.Intent], in domain.IntentInput) error {
	p, err := a.resume(ctx)
	if err != nil {
		return err
	}
	fresh := p == nil
	var account domain.Account
	if fresh {
		p, account, err = a.begin(ctx, in)
	} else {
		account, err = a.Accounts.Account(ctx, a.DB.Read(ctx), p.AccountID)
	}
	if err != nil {
		return err
	}
	failpoint.Here("intent.begun")
	told, err := a.ask(ctx, account, *p)
	if err != nil {
		return a.unasked(ctx, *p, err, fresh)
	}
	failpoint.Here("intent.asked")
	err = transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Intent, error) {
		made, err := a.made(ctx, tx, p.ID, told)
		failpoint.Here("intent.written")
		return made, err
	})
	failpoint.Here("intent.committed")
	return err
}

// ask asks the gateway to make the intent, or to show one that the completer has made.
func (a *Intents) ask(ctx context.Context, account domain.Account, p domain.Intent) (domain.Snapshot, error) {
	if p.Status.Known() {
		return a.Gateway.Read(ctx, account, p)
	}
	return a.Gateway.Create(ctx, account, p)
}

// claiming runs a transaction that begins or resumes a call to the gateway; operation is what the same request has begun before, ""
// for nothing. It claims the request's key before it locks or writes any row, so that another request with the key is a mismatch
// before it has an effect.
func (a *Intents) claiming(ctx context.Context, begin func(ctx context.Context, tx pg.Tx, operation string) error) error {
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		operation, answered, err := a.Replies.Claim(ctx, tx)
		if err != nil {
			return err
		}
		if answered {
			return errAnswered
		}
		return begin(ctx, tx, operation)
	})
}

// holding runs a transaction that resumes or ends an operation, and frees its key when nothing came of it. The key is locked before
// any row, as in claiming.
func (a *Intents) holding(ctx context.Context, operation string, end func(ctx context.Context, tx pg.Tx) (nothing bool, err error)) error {
	return a.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		if err := a.Replies.Hold(ctx, tx, operation); err != nil {
			return err
		}
		nothing, err := end(ctx, tx)
		if err != nil || !nothing {
			return err
		}
		return a.Replies.Free(ctx, tx, operation)
	})
}

// operationOf names the row of an intent or a refund in the record of a key: its uuid in hexadecimal digits, as the triggers of
// migration 12 read it.
func operationOf(row interface{ UUID() [16]byte }) string { return fmt.Sprintf("%x", row.UUID()) }

// resume finds the intent that the same request has begun before, and takes its call where nobody has it; nil when there is none.
func (a *Intents) resume(ctx context.Context) (p *domain.Intent, err error) {
	err = a.claiming(ctx, func(ctx context.Context, tx pg.Tx, operation string) error {
		real := a.Now()
		if p, err = a.begun(ctx, tx, operation); err != nil {
			return err
		}
		if p == nil {
			return errNoCall
		}
		if p.Status.Known() {
			return nil
		}
		if p.Call.Leased(real) || p.Call.Forgotten(real) { // the completer looks for what the gateway has forgotten
			return errUnderWay
		}
		p.Call = p.Call.Resume(real)
		return store.SaveCall(ctx, tx, *p)
	})
	if errors.Is(err, errNoCall) {
		err = nil
	}
	return p, err
}

// begun locks and reads the intent of an operation; nil when there is none, or when the gateway has refused it.
func (a *Intents) begun(ctx context.Context, tx pg.Tx, operation string) (*domain.Intent, error) {
	if operation == "" {
		return nil, nil
	}
	var id domain.IntentID
	if err := id.Scan(operation); err != nil {
		return nil, fmt.Errorf("operation %q: %w", operation, err)
	}
	p, err := store.IntentForUpdate(ctx, tx, id)
	if errors.Is(err, domain.ErrIntentNotFound) || err == nil && p.Status == domain.Refused {
		return nil, nil
	}
	return &p, err
}

// begin writes the row of a new intent, for the account that is connected.
func (a *Intents) begin(ctx context.Context, in domain.IntentInput) (*domain.Intent, domain.Account, error) {
	p, booking, err := a.wanted(ctx, ids.New[domain.IntentPrefix](), in)
	if err != nil {
		return nil, domain.Account{}, err
	}
	account, err := a.Accounts.Connected(ctx, a.DB.Read(ctx))
	if errors.Is(err, domain.ErrNotConfigured) {
		err = domain.ErrGateway.WithMessage("The payment gateway is not configured for this tenant in this mode.").WithCause(err)
	}
	if err != nil {
		return nil, domain.Account{}, err
	}
	p.AccountID, p.Call = account.ID, p.Call.Begin(a.Now())
	err = a.claiming(ctx, func(ctx context.Context, tx pg.Tx, operation string) error {
		if other, err := a.begun(ctx, tx, operation); err != nil || other != nil { // by the same request, since resume has looked
			return errors.Join(err, errUnderWay)
		}
		if booking.Status, err = store.HoldBooking(ctx, tx, booking); err != nil {
			return err
		}
		if booking.Lost() { // in the meantime: whoever cancels open intents does not see this one
			return domain.ErrNotPayable
		}
		if p, err = store.InsertIntent(ctx, tx, p); err != nil {
			return err
		}
		return a.Replies.Begin(ctx, tx, operationOf(p.ID))
	})
	return &p, account, err
}

// wanted is the intent that a request asks for, by what its booking and its invoice say now, and by what was received meanwhile, of
// which the services that say it may not have read yet.
func (a *Intents) wanted(ctx context.Context, id domain.IntentID, in domain.IntentInput) (domain.Intent, domain.Booking, error) {
	named, err := in.NamedBooking()
	if err != nil {
		return domain.Intent{}, domain.Booking{}, err
	}
	booking, err := a.Bookings.Booking(ctx, named)
	if err != nil {
		return domain.Intent{}, domain.Booking{}, err
	}
	var invoice *domain.Invoice
	if v := in.NamedInvoice(); !v.IsZero() {
		found, err := a.Invoices.Invoice(ctx, v)
		if err != nil && !errors.Is(err, domain.ErrInvoiceNotFound) {
			return domain.Intent{}, domain.Booking{}, err
		}
		if err == nil {
			invoice = &found
		}
	}
	taken, err := store.TakenOf(ctx, a.DB.Read(ctx), named, in.NamedInvoice(), booking.Total.Currency)
	if err != nil {
		return domain.Intent{}, domain.Booking{}, err
	}
	booking = booking.After(taken)
	if invoice != nil {
		*invoice = invoice.After(taken)
	}
	p, err := domain.NewIntent(id, in, booking, invoice)
	return p, booking, err
}

// unasked ends the call of an intent that the gateway did not make, or leaves it to the next attempt where that is unknown, and
// returns what the client is told. fresh says that the attempt was called for the first time.
func (a *Intents) unasked(ctx context.Context, p domain.Intent, cause error, fresh bool) error {
	definite, answer := gatewayError(cause, fresh)
	if p.Status.Known() {
		return answer
	}
	// The client may have gone, and its context with it.
	err := a.holding(context.WithoutCancel(ctx), operationOf(p.ID), func(ctx context.Context, tx pg.Tx) (nothing bool, err error) {
		current, err := store.IntentForUpdate(ctx, tx, p.ID)
		if err != nil || current.Status != domain.Creating || current.Call.Attempt != p.Call.Attempt {
			return false, err
		}
		if definite {
			current.Status, current.Call.LeasedUntil = domain.Refused, nil
		} else {
			next := a.Now().Add(releaseAfter)
			current.Call.LeasedUntil = &next
		}
		return definite, store.SaveCall(ctx, tx, current)
	})
	return errors.Join(answer, err)
}

// fieldOf names the field of the body by the gateway's parameter.
var fieldOf = map[string]string{"amount": "amount_minor", "currency": "currency", "receipt_email": "receipt_email", "description": "description"}

// gatewayError is what a client is told of an error of the gateway. definite says that the attempt has had no effect there: a gateway
// that takes no request, or refuses the keys, has not looked whether an earlier call of the attempt had one, so that only a fresh
// attempt is then over.
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
		return fresh, domain.ErrGateway.WithMessage("The payment gateway takes no requests at the moment.").
			WithRetryAfter(busy.RetryAfter).WithCause(cause)
	default:
		return false, domain.ErrGateway.WithMessage("The payment gateway has not answered. Retry with the same Idempotency-Key.").
			WithRetryAfter(unknownRetry).WithCause(cause)
	}
}

// made writes the intent that the gateway has made.
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
		body, err := render(ctx, p)
		if err != nil {
			return domain.Intent{}, err
		}
		if err := emit(ctx, tx, a.Wake, changed(current, p, body, nil)); err != nil {
			return domain.Intent{}, err
		}
	}
	p.ClientSecret = told.ClientSecret
	return p, nil
}

// settle leaves an intent of a lost booking to Settler when it succeeds now, and to Canceler when it is open again, which Canceler did
// not see. It notes the booking's state for the event.
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

// apply writes what the gateway tells of an intent, which the transaction has locked: its movements in the ledger, its disputes, and
// the intent, as merge makes it, with the event of each change. What changes nothing visible makes no event.
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
	before, err := render(ctx, current)
	if err != nil {
		return domain.Intent{}, err
	}
	after, err := render(ctx, wanted)
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
	body, err := render(ctx, saved)
	if err != nil {
		return domain.Intent{}, err
	}
	return saved, emit(ctx, tx, a.Wake, changed(current, saved, body, previous))
}

// Cancel cancels an intent that has not succeeded.
func (a *Intents) Cancel(ctx context.Context, transact pg.Transact[domain.Intent], id domain.GatewayID, match patch.Precondition) error {
	done := func(p domain.Intent) bool { return p.Status == domain.Canceled }
	return a.act(ctx, transact, id, match, domain.Cancel, done, func(account domain.Account, p domain.Intent) (domain.Snapshot, error) {
		return a.Gateway.Cancel(ctx, account, p)
	})
}

// Capture takes the authorised amount, or a part of it; nil is all of it.
func (a *Intents) Capture(
	ctx context.Context, transact pg.Transact[domain.Intent], id domain.GatewayID, amount *int64, match patch.Precondition,
) error {
	done := func(p domain.Intent) bool {
		return p.Status == domain.Succeeded && p.CaptureMethod == domain.CaptureManual && (amount == nil || *amount == p.Received)
	}
	return a.act(ctx, transact, id, match, domain.Capture, done, func(account domain.Account, p domain.Intent) (domain.Snapshot, error) {
		minor := p.Capturable
		if amount != nil {
			minor = *amount
		}
		if err := p.CheckCapture(minor); err != nil {
			return domain.Snapshot{}, err
		}
		return a.Gateway.Capture(ctx, account, p, minor)
	})
}

// act does something with an intent at the gateway, unless it is done already. It is repeated without harm: the gateway does it
// once, and refuses it afterwards; then the gateway's state decides.
func (a *Intents) act(
	ctx context.Context, transact pg.Transact[domain.Intent], id domain.GatewayID, match patch.Precondition,
	action domain.Action, done func(domain.Intent) bool, call func(domain.Account, domain.Intent) (domain.Snapshot, error),
) error {
	p, err := store.Intent(ctx, a.DB.Read(ctx), id)
	if err != nil {
		return err
	}
	if err := match.Check(p.Version); err != nil {
		return err
	}
	unchanged := func(ctx context.Context, tx pg.Tx) (domain.Intent, error) {
		return store.IntentForUpdate(ctx, tx, p.ID)
	}
	if done(p) {
		return transact(ctx, unchanged)
	}
	if err := p.Status.Check(action); err != nil {
		return err
	}
	account, err := a.Accounts.Account(ctx, a.DB.Read(ctx), p.AccountID)
	if err != nil {
		return err
	}
	err = a.claiming(ctx, func(context.Context, pg.Tx, string) error { return nil })
	if errors.Is(err, errAnswered) {
		return transact(ctx, unchanged)
	}
	if err != nil {
		return err
	}
	failpoint.Here("action.begun")
	told, err := call(account, p)
	if err == nil {
		failpoint.Here("action.asked")
		err = transact(ctx, func(ctx context.Context, tx pg.Tx) (domain.Intent, error) { return a.applyAnswer(ctx, tx, p.ID, told) })
		failpoint.Here("action.committed")
		return err
	}
	now, err := a.unacted(ctx, account, p, err)
	switch {
	case now == nil:
		return err
	case done(*now):
		return transact(ctx, unchanged)
	}
	if verdict := now.Status.Check(action); verdict != nil {
		return verdict
	}
	return err
}

// unacted frees the request's key after a definite refusal of the gateway, and reads the state that decides then; nil where the
// client is told of the failure.
func (a *Intents) unacted(ctx context.Context, account domain.Account, p domain.Intent, cause error) (*domain.Intent, error) {
	var refused *domain.RefusedError
	var own *apperr.Error
	if !errors.As(cause, &refused) && !errors.As(cause, &own) {
		return nil, actError(cause)
	}
	if err := a.DB.Tx(ctx, a.Replies.Release); err != nil {
		return nil, err
	}
	if own != nil {
		return nil, cause
	}
	now, err := a.Refresh(ctx, account, p)
	if err != nil {
		return nil, actError(err)
	}
	return &now, actError(cause)
}

// actError is what a client is told of an action that failed; an error of its own stays as it is.
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

func render(ctx context.Context, p domain.Intent) (json.RawMessage, error) {
	return contract.Encode(view.Intent(p, api.Mode(caller.FromContext(ctx).Mode)))
}
