package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast.dev/libs/pg"

	"holdfast.dev/services/payments/internal/domain"
	"holdfast.dev/services/payments/internal/store"
)

// RefundCompleter resumes the calls of refunds as Completer resumes those of intents. Any number of processes may run it at once.
type RefundCompleter struct {
	Refunds *Refunds
	Worker  *pg.DB // worker role: finds what is left
	Log     *slog.Logger
	failing failing
}

// Run resumes what is left of all tenants. One that fails is tried again later.
func (a *RefundCompleter) Run(ctx context.Context) error {
	left := workers[store.RefundDue]{
		db: a.Worker, now: a.Refunds.Intents.Now, find: store.RefundsLeft, home: func(row store.RefundDue) store.Home { return row.Home },
		do: func(ctx context.Context, row store.RefundDue) error {
			if err := a.complete(ctx, row.ID); err != nil {
				return fmt.Errorf("refund %s: %w", row.ID, err)
			}
			return nil
		},
		report: a.failing.report(a.Log, "refunds that cannot be completed"),
	}
	if err := left.run(ctx); err != nil {
		return fmt.Errorf("refunds that are left: %w", err)
	}
	return nil
}

// complete repeats the attempts of a refund whose outcome is not known, one after the other.
func (a *RefundCompleter) complete(ctx context.Context, id domain.RefundID) error {
	r, ok, err := a.take(ctx, id)
	if err != nil || !ok {
		return err
	}
	for _, part := range r.UnderWay() {
		if err := a.completePart(ctx, r, part); err != nil {
			return a.leave(ctx, r, err)
		}
	}
	return nil
}

// take takes the calls of a process that has had its time; false when they have ended, or when another process has them.
func (a *RefundCompleter) take(ctx context.Context, id domain.RefundID) (r domain.Refund, ok bool, err error) {
	err = a.Refunds.Intents.holding(ctx, operationOf(id), func(ctx context.Context, tx pg.Tx) (nothing bool, err error) {
		if r, err = store.RefundForUpdate(ctx, tx, id); err != nil {
			return false, err
		}
		real := a.Refunds.Intents.Now()
		if ok = len(r.UnderWay()) > 0 && !r.Leased(real); !ok {
			return false, nil
		}
		r = r.Lease(real)
		return false, store.LeaseRefund(ctx, tx, r)
	})
	return r, ok, err
}

// completePart repeats an attempt, of which the gateway says what it did. Where the gateway may have forgotten the attempt, or
// keeps an answer that says nothing, the refund is looked for, and only when there is none a new attempt begins.
func (a *RefundCompleter) completePart(ctx context.Context, r domain.Refund, part domain.Allocation) error {
	account, err := a.Refunds.account(ctx, part)
	if err != nil {
		return err
	}
	if part.Forgotten(a.Refunds.Intents.Now()) {
		return a.find(ctx, account, r, part)
	}
	told, err := a.Refunds.Intents.Gateway.CreateRefund(ctx, account, r, part)
	var broken *domain.BrokenError
	if errors.As(err, &broken) {
		return a.find(ctx, account, r, part)
	}
	return a.end(ctx, r, part, told, err)
}

// find looks for the refund of a part at the gateway; when there is none, the attempt had no effect and another one begins.
func (a *RefundCompleter) find(ctx context.Context, account domain.Account, r domain.Refund, part domain.Allocation) error {
	found, err := a.Refunds.Intents.Gateway.FindRefund(ctx, account, part, r.CreatedAt)
	if err != nil {
		return err
	}
	if found != nil {
		return a.end(ctx, r, part, *found, nil)
	}
	next := part
	next.Attempt, next.AttemptedAt = part.Attempt+1, a.Refunds.Intents.Now()
	err = a.Refunds.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		current, err := store.RefundForUpdate(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		if now, ok := current.Allocation(part.ID); !ok || now.Status != domain.RefundCreating || now.Attempt != part.Attempt {
			return errUnderWay
		}
		if err := store.BeginAttempt(ctx, tx, next); err != nil {
			return err
		}
		return store.LeaseRefund(ctx, tx, current.Lease(next.AttemptedAt))
	})
	if err != nil {
		return err
	}
	told, err := a.Refunds.Intents.Gateway.CreateRefund(ctx, account, r, next)
	return a.end(ctx, r, next, told, err)
}

// end writes what the gateway has said. After any other error the lease ends, and the same attempt is made again.
func (a *RefundCompleter) end(ctx context.Context, r domain.Refund, part domain.Allocation, told domain.GatewayRefund, cause error) error {
	out, known := outcomeOf(told, cause, false)
	if !known {
		return cause
	}
	_, err := a.Refunds.inTx(ctx, r.ID, func(ctx context.Context, tx pg.Tx) (domain.Refund, error) {
		return a.Refunds.settle(ctx, tx, r.ID, part, out, true)
	})
	return err
}

// leave leaves the calls of a refund for a time that grows with its age.
func (a *RefundCompleter) leave(ctx context.Context, r domain.Refund, cause error) error {
	real := a.Refunds.Intents.Now()
	return errors.Join(cause, a.Refunds.Intents.DB.Tx(ctx, func(ctx context.Context, tx pg.Tx) error {
		return store.LeaveRefund(ctx, tx, r, real.Add(jitter(domain.Pause(r.CreatedAt, real))))
	}))
}
