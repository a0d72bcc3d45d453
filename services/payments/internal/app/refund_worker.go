package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/operation"
	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// RefundCompleter resumes the calls of refunds as Completer resumes those of intents. Any number of processes may run it at the
// same time.
type RefundCompleter struct {
	Refunds *Refunds
	Worker  *pg.DB // worker role: finds abandoned calls
	Log     *slog.Logger
	failing operation.Failing
}

// Run resumes abandoned calls of all tenants. It retries failed ones later.
func (a *RefundCompleter) Run(ctx context.Context) error {
	left := operation.Workers[store.RefundDue]{
		Service: "payments",
		DB:      a.Worker, Now: a.Refunds.Intents.Now, Find: store.RefundsLeft, Owner: func(row store.RefundDue) operation.Owner { return row.Owner },
		Do: func(ctx context.Context, row store.RefundDue) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("refund %s: %w", row.ID, err)
			}
			return nil
		},
		Report: a.failing.Report(a.Log, "refunds not completed yet"),
	}
	if err := left.Run(ctx); err != nil {
		return fmt.Errorf("refunds that are left: %w", err)
	}
	return nil
}

// complete resumes the calls of one refund.
func (a *RefundCompleter) complete(ctx context.Context, id domain.RefundID) error {
	left := createRefund{Refunds: a.Refunds, r: domain.Refund{ID: id}}
	return operation.Resume(ctx, a.Refunds.Intents.operations(), &leftRefund{left})
}

// leftRefund is a refund whose calls a process has abandoned or whose outcome is unknown. RefundCompleter resumes them.
type leftRefund struct{ createRefund }

// Begin takes over the calls, unless they have ended or another process holds them.
func (o *leftRefund) Begin(ctx context.Context, tx pg.Tx, _ string) (done bool, err error) {
	r, err := store.RefundForUpdate(ctx, tx, o.r.ID)
	if err != nil {
		return false, err
	}
	real := o.Intents.Now()
	if len(r.UnderWay()) == 0 || r.Lease.Held(real) {
		return false, operation.ErrUnderWay
	}
	o.r = r.Resume(real)
	return false, store.LeaseRefund(ctx, tx, o.r)
}

// Call repeats the attempts whose outcome is unknown, one after the other. It postpones those that are still unknown. The delay
// grows with their age.
func (o *leftRefund) Call(ctx context.Context) error {
	parts := o.r.UnderWay()
	for i := range parts {
		out, err := o.resumeAttempt(ctx, &parts[i])
		if err != nil {
			real := o.Intents.Now()
			return errors.Join(err, o.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
				return store.LeaveRefund(ctx, tx, o.r, real.Add(jitter(domain.Pause(o.r.CreatedAt, real))))
			}))
		}
		o.pending = []partOutcome{{parts[i], out}}
		if last := i == len(parts)-1; !last {
			if err := o.Intents.DB.Tx(ctx, o.write); err != nil {
				return err
			}
		}
	}
	if o.makesSomething() {
		return nil
	}
	return &operation.RefusedError{Err: domain.ErrGateway}
}

// resumeAttempt repeats an attempt, and the gateway responds with the result. If the gateway may have forgotten the attempt, or has
// stored a response without information, resumeAttempt searches for the refund. It begins a new attempt only if there is none.
func (o *leftRefund) resumeAttempt(ctx context.Context, part *domain.Allocation) (outcome, error) {
	account, err := o.account(ctx, *part)
	if err != nil {
		return outcome{}, err
	}
	var broken *domain.BrokenError
	if !part.Forgotten(o.Intents.Now()) {
		snapshot, err := o.Intents.Gateway.CreateRefund(ctx, account, o.r, *part)
		if !errors.As(err, &broken) {
			return known(snapshot, err)
		}
	}
	found, err := o.Intents.Gateway.FindRefund(ctx, account, *part, o.r.CreatedAt)
	if err != nil {
		return outcome{}, err
	}
	if found != nil {
		return outcome{refund: *found}, nil
	}
	if err := o.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error { return o.again(ctx, tx, part) }); err != nil {
		return outcome{}, err
	}
	return known(o.Intents.Gateway.CreateRefund(ctx, account, o.r, *part))
}

func known(snapshot domain.GatewayRefund, cause error) (outcome, error) {
	out, ok := outcomeOf(snapshot, cause, false)
	if !ok {
		return outcome{}, cause
	}
	return out, nil
}

// again begins a new attempt of a part after one without effect.
func (o *leftRefund) again(ctx context.Context, tx pg.Tx, part *domain.Allocation) error {
	next := *part
	next.Attempt, next.AttemptedAt = part.Attempt+1, o.Intents.Now()
	current, err := store.RefundForUpdate(ctx, tx, o.r.ID)
	if err != nil {
		return err
	}
	if now, ok := current.Allocation(part.ID); !ok || now.Status != domain.RefundCreating || now.Attempt != part.Attempt {
		return operation.ErrUnderWay
	}
	if err := store.BeginAttempt(ctx, tx, next); err != nil {
		return err
	}
	*part, o.r.Lease = next, current.Resume(next.AttemptedAt).Lease
	return store.LeaseRefund(ctx, tx, o.r)
}
