package app

import (
	"context"
	"errors"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/failpoint"
	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/patch"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// action performs an action on an intent at the gateway, unless it was performed before. It can safely be repeated: the gateway
// performs it once and refuses it afterwards. After a refusal, the gateway's state decides.
type action struct {
	*Intents

	id    domain.GatewayID
	match patch.Precondition
	kind  domain.Action
	is    func(domain.Intent) bool // whether the action was performed
	call  func(ctx context.Context, account domain.Account, p domain.Intent) (domain.Snapshot, error)

	p        domain.Intent
	snapshot *domain.Snapshot // nil: nothing to write
}

// Cancel returns the operation that cancels an intent that has not succeeded.
func (a *Intents) Cancel(id domain.GatewayID, match patch.Precondition) operation.Operation[domain.Intent] {
	return &action{
		Intents: a, id: id, match: match, kind: domain.Cancel, call: a.Gateway.Cancel,
		is: func(p domain.Intent) bool { return p.Status == domain.Canceled },
	}
}

// Capture returns the operation that takes the authorized amount, or a part of it. nil means the full amount.
func (a *Intents) Capture(id domain.GatewayID, amount *int64, match patch.Precondition) operation.Operation[domain.Intent] {
	return &action{
		Intents: a, id: id, match: match, kind: domain.Capture,
		is: func(p domain.Intent) bool {
			return p.Status == domain.Succeeded && p.CaptureMethod == domain.CaptureManual && (amount == nil || *amount == p.Received)
		},
		call: func(ctx context.Context, account domain.Account, p domain.Intent) (domain.Snapshot, error) {
			minor := p.Capturable
			if amount != nil {
				minor = *amount
			}
			if err := p.CheckCapture(minor); err != nil {
				return domain.Snapshot{}, err
			}
			return a.Gateway.Capture(ctx, account, p, minor)
		},
	}
}

// Name implements operation.Operation: there is nothing to resume.
func (*action) Name() string { return "" }

// Begin checks whether the intent allows the action, or whether the action is already done.
func (o *action) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	if o.p, err = store.Intent(ctx, tx, o.id); err != nil {
		return false, err
	}
	if err := o.match.Check(o.p.Version); err != nil || o.is(o.p) {
		return true, err
	}
	return false, o.p.Status.Check(o.kind)
}

// Call sends the action to the gateway. If the gateway refuses it or does not respond clearly, the gateway's state of the intent
// decides.
func (o *action) Call(ctx context.Context) error {
	account, err := o.Accounts.Account(ctx, o.DB.Read(ctx), o.p.AccountID)
	if err != nil {
		return err
	}
	failpoint.Here("action.begun")
	snapshot, cause := o.call(ctx, account, o.p)
	if cause == nil {
		failpoint.Here("action.requested")
		o.snapshot = &snapshot
		return nil
	}
	var refused *domain.RefusedError
	var own *apperr.Error
	switch {
	case errors.As(cause, &own):
		return &operation.RefusedError{Err: cause}
	case !errors.As(cause, &refused):
		return actError(cause)
	}
	now, err := o.Refresh(ctx, account, o.p)
	if err != nil {
		return &operation.RefusedError{Err: actError(err)}
	}
	if o.is(now) {
		return nil
	}
	if verdict := now.Status.Check(o.kind); verdict != nil {
		return &operation.RefusedError{Err: verdict}
	}
	return &operation.RefusedError{Err: actError(cause)}
}

// Finish writes the gateway's response.
func (o *action) Finish(ctx context.Context, tx pg.Tx) (domain.Intent, error) {
	current, err := store.IntentForUpdate(ctx, tx, o.p.ID)
	if err != nil || o.snapshot == nil {
		return current, err
	}
	tx.AfterCommit(func() { failpoint.Here("action.committed") })
	return o.apply(ctx, tx, current, *o.snapshot, domain.Intent.Apply)
}

// Release implements operation.Operation. It does nothing, because Begin has stored nothing.
func (*action) Release(context.Context, pg.Tx) error { return nil }
