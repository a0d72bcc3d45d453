package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

const (
	// releaseAfter is the pause before a call whose outcome is unknown is retried.
	releaseAfter = time.Second
	// unknownRetry is the Retry-After of an unknown outcome.
	unknownRetry = 2 * time.Second
)

// createIntent creates an intent at the gateway. Begin writes the row, Call calls the gateway with a key derived from the row, and
// Finish writes the result.
type createIntent struct {
	*Intents

	in        domain.IntentInput
	requested domain.Intent
	booking   domain.Booking
	money     domain.MoneyAccount // of the booking, on which the amount rests
	connected domain.Account
	unable    error // why a new intent cannot be created

	p        domain.Intent
	account  domain.Account
	fresh    bool // whether this is the attempt's first call
	snapshot domain.Snapshot
}

// Create returns the operation that creates an intent.
func (a *Intents) Create(ctx context.Context, in domain.IntentInput) operation.Operation[domain.Intent] {
	o := &createIntent{Intents: a, in: in}
	o.unable = o.prepare(ctx)
	return o
}

// prepare determines the intent from its booking, the booking's invoices and its account, and reads the connected account.
func (o *createIntent) prepare(ctx context.Context) (err error) {
	if o.requested, err = o.request(ctx); err != nil {
		return err
	}
	o.connected, err = o.Accounts.Connected(ctx, o.DB.Read(ctx))
	if errors.Is(err, domain.ErrNotConfigured) {
		err = domain.ErrUnconnected
	}
	o.requested.AccountID = o.connected.ID
	return err
}

// request returns the intent that is created. bookings knows the price, customers what is due on the invoices, and payments what was
// received. customers counts everything up to the version of the account that was read.
func (o *createIntent) request(ctx context.Context) (p domain.Intent, err error) {
	named, err := o.in.NamedBooking()
	if err != nil {
		return p, err
	}
	if o.booking, err = o.Bookings.Booking(ctx, named); err != nil {
		return p, err
	}
	key := domain.BookingMoney(named, o.booking.Total.Currency)
	if o.money.MoneyKey = key; !o.in.Limited(o.booking) {
		return domain.NewIntent(o.in, o.booking, nil)
	}
	if o.money, err = store.MoneyAccount(ctx, o.DB.Read(ctx), key, nil); err != nil {
		return p, err
	}
	dues, err := o.Invoices.Dues(ctx, key, o.money.Version, o.in.NamedInvoice())
	if err != nil {
		return p, err
	}
	if dues.Version != o.money.Version {
		return p, o.moved()
	}
	o.booking.Due = o.money.Due(o.booking.Total.Minor, dues)
	return domain.NewIntent(o.in, o.booking, dues.Invoice)
}

// moved repeats the decision, because money was received or returned since the account was read.
func (o *createIntent) moved() error {
	return &operation.Again{Why: "account of booking " + o.booking.ID.String() + " has moved", Fetch: func(ctx context.Context) error {
		o.unable = o.prepare(ctx)
		return nil
	}}
}

// Name implements operation.Operation.
func (o *createIntent) Name() string { return operationOf(o.p.ID) }

// operationOf returns the name of an intent or a refund in the record of a key: the row's uuid in hexadecimal digits, as the
// triggers of migration 12 read it.
func operationOf[P ids.Prefix](id ids.ID[P]) string {
	if id.IsZero() {
		return ""
	}
	return fmt.Sprintf("%x", id.UUID())
}

// Begin writes the row of a new intent, or takes over the call of the intent that the same request began before.
func (o *createIntent) Begin(ctx context.Context, tx pg.Tx, begun string) (done bool, err error) {
	found, err := o.begun(ctx, tx, begun)
	if err != nil {
		return false, err
	}
	if found != nil {
		return false, o.resume(ctx, tx, *found)
	}
	if o.unable != nil {
		return false, o.unable
	}
	o.p, o.account, o.fresh = o.requested, o.connected, true
	o.p.ID = ids.New[domain.IntentPrefix]()
	o.p.Call = o.p.Call.Begin(o.Now())
	var version int64
	if o.booking.Status, version, err = store.HoldBooking(ctx, tx, o.booking, o.money.MoneyKey); err != nil {
		return false, err
	}
	if o.booking.Lost() { // in the meantime: Canceler, which cancels open intents, does not see this one
		return false, domain.ErrNotPayable
	}
	if o.in.Limited(o.booking) && version != o.money.Version {
		return false, o.moved()
	}
	o.p, err = store.InsertIntent(ctx, tx, o.p)
	return false, err
}

// begun locks and reads the intent of an operation. It returns nil if there is none, or if the gateway refused it.
func (o *createIntent) begun(ctx context.Context, tx pg.Tx, name string) (*domain.Intent, error) {
	if name == "" {
		return nil, nil
	}
	var id domain.IntentID
	if err := id.Scan(name); err != nil {
		return nil, fmt.Errorf("operation %q: %w", name, err)
	}
	p, err := store.IntentForUpdate(ctx, tx, id)
	if errors.Is(err, domain.ErrIntentNotFound) || err == nil && p.Status == domain.Refused {
		return nil, nil
	}
	return &p, err
}

// resume takes over the call of an intent that was begun, if no other process holds it. If the gateway may have forgotten the call,
// it leaves the call to the completer.
func (o *createIntent) resume(ctx context.Context, tx pg.Tx, p domain.Intent) error {
	o.p, o.fresh = p, false
	if p.Status.Known() {
		return nil
	}
	real := o.Now()
	if p.Call.Held(real) || p.Call.Forgotten(real) {
		return operation.ErrUnderWay
	}
	o.p.Call = p.Call.Resume(real)
	return store.SaveCall(ctx, tx, o.p)
}

// Call requests the intent from the gateway, or reads the intent if the completer created it.
func (o *createIntent) Call(ctx context.Context) (err error) {
	if !o.fresh {
		if o.account, err = o.Accounts.Account(ctx, o.DB.Read(ctx), o.p.AccountID); err != nil {
			return err
		}
	}
	failpoint.Here("intent.begun")
	call := o.Gateway.Create
	if o.p.Status.Known() {
		call = o.Gateway.Read
	}
	if o.snapshot, err = call(ctx, o.account, o.p); err == nil {
		failpoint.Here("intent.requested")
		return nil
	}
	definite, clientErr := gatewayError(err, o.fresh)
	switch {
	case o.p.Status.Known():
		return clientErr
	case definite:
		return &operation.RefusedError{Err: clientErr}
	default:
		return errors.Join(clientErr, o.leave(ctx, o.Now().Add(releaseAfter)))
	}
}

// leave makes the call available to the next attempt from a time on, unless another attempt holds the call by now.
func (o *createIntent) leave(ctx context.Context, next time.Time) error {
	return o.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx pg.Tx) error { // the client may have disconnected
		return store.LeaveCall(ctx, tx, o.p, next)
	})
}

// Finish writes the intent that the gateway created. After a repeated call, it requests a read of the intent: the gateway repeats its
// first response, which can be older than a payment whose event was processed before a restore.
func (o *createIntent) Finish(ctx context.Context, tx pg.Tx) (domain.Intent, error) {
	created, err := o.writeCreated(ctx, tx, o.p.ID, o.snapshot)
	if err == nil && !o.fresh {
		err = store.PutEvent(ctx, tx, domain.IntentReadRequested(created.AccountID, created.GatewayID), o.Now())
	}
	failpoint.Here("intent.written")
	tx.AfterCommit(func() { failpoint.Here("intent.committed") })
	return created, err
}

// Release ends the attempt to create an intent that the gateway refused. A gateway that is busy refuses without a look at earlier calls of
// the attempt. The refusal therefore counts only if no other process has taken over the call.
func (o *createIntent) Release(ctx context.Context, tx pg.Tx) error {
	current, err := store.IntentForUpdate(ctx, tx, o.p.ID)
	if err != nil {
		return err
	}
	if current.Status != domain.Creating || !current.Call.Holds(o.p.Call.Lease) {
		return operation.ErrUnderWay // read it again
	}
	current.Status, current.Call.Lease = domain.Refused, current.Call.End()
	return store.SaveCall(ctx, tx, current)
}

// leftIntent is a call that a process has abandoned or whose outcome is unknown. Completer resumes it.
type leftIntent struct {
	createIntent

	log *slog.Logger
}

// Begin takes over the call, unless it has ended or another process holds it.
func (o *leftIntent) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	current, err := store.IntentForUpdate(ctx, tx, o.p.ID)
	if err != nil {
		return false, err
	}
	real := o.Now()
	if current.Status != domain.Creating || current.Call.Held(real) {
		return false, operation.ErrUnderWay
	}
	o.p = current
	o.p.Call = current.Call.Resume(real)
	return false, store.SaveCall(ctx, tx, o.p)
}

// Call repeats the attempt, and the gateway responds with the result. If the gateway may have forgotten the attempt, or has stored
// a response without information, Call searches for the intent. It begins a new attempt only if there is none.
func (o *leftIntent) Call(ctx context.Context) (err error) {
	if o.account, err = o.Accounts.Account(ctx, o.DB.Read(ctx), o.p.AccountID); err != nil {
		return err
	}
	var broken *domain.BrokenError
	if !o.p.Call.Forgotten(o.Now()) {
		if o.snapshot, err = o.Gateway.Create(ctx, o.account, o.p); !errors.As(err, &broken) {
			return o.outcome(ctx, err)
		}
	}
	found, err := o.Gateway.Find(ctx, o.account, o.p.ID, o.p.CreatedAt)
	if err != nil {
		return o.later(ctx, err)
	}
	if found != nil {
		o.snapshot = *found
		return nil
	}
	if err := o.DB.Tx(ctx, o.again); err != nil {
		return err
	}
	o.fresh = true
	o.snapshot, err = o.Gateway.Create(ctx, o.account, o.p)
	return o.outcome(ctx, err)
}

// again begins a new attempt after one without effect.
func (o *leftIntent) again(ctx context.Context, tx pg.Tx) error {
	current, err := store.IntentForUpdate(ctx, tx, o.p.ID)
	if err != nil {
		return err
	}
	if current.Status != domain.Creating || current.Call.Attempt != o.p.Call.Attempt {
		return operation.ErrUnderWay
	}
	o.p.Call = o.p.Call.Begin(o.Now())
	return store.SaveCall(ctx, tx, o.p)
}

func (o *leftIntent) outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if definite, clientErr := gatewayError(err, o.fresh); definite {
		return &operation.RefusedError{Err: clientErr}
	}
	return o.later(ctx, err)
}

// later postpones a call whose outcome is still unknown. The delay grows with the age of the call. Then the same attempt is
// repeated. later gives up a call whose account has refused its keys for days.
func (o *leftIntent) later(ctx context.Context, cause error) error {
	real := o.Now()
	var refused *domain.RefusedError
	if errors.As(cause, &refused) && refused.Unread && o.p.Call.ShouldGiveUp(real) {
		o.log.ErrorContext(ctx, "payment intent abandoned: the gateway rejects the keys of its account", slog.String("intent", o.p.ID.String()),
			slog.String("account", o.p.AccountID.String()), slog.Any("error", cause))
		return &operation.RefusedError{Err: cause}
	}
	return errors.Join(cause, o.leave(ctx, real.Add(jitter(domain.Pause(*o.p.Call.Since, real)))))
}
