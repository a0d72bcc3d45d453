package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// The actions of tasks.
const (
	taskSettle  = "settle"
	taskRefund  = "refund"
	taskDispute = "dispute"
)

func isRefusal(err error) bool {
	var refusal *domain.Error
	return errors.As(err, &refusal)
}

// do runs a task. It ignores a refusal, because the object has changed in the meantime.
func (u *Unit) do(task *store.Task) error {
	var err error
	switch task.Do {
	case taskSettle:
		err = u.settle(task.Object)
	case taskRefund:
		err = u.refundByCase(task.Object)
	case taskDispute:
		err = u.disputeByCase(task.Object)
	}
	if isRefusal(err) {
		return nil
	}
	return err
}

// settle ends the processing of an intent.
func (u *Unit) settle(intent string) error {
	pi, err := u.Intent(intent)
	if err != nil {
		return err
	}
	c, err := u.Charge(*pi.LatestCharge)
	if err != nil {
		return err
	}
	m, err := store.Get[domain.StoredMethod](u.Tx, u.Scope, store.Methods, c.PaymentMethod)
	if err != nil {
		return err
	}
	test := domain.CaseNamed(m.Case)
	if test.Decline != nil {
		return u.declined(pi, c, m, test.Decline)
	}
	c.Outcome = &domain.Outcome{
		NetworkStatus: "approved_by_network", RiskLevel: "not_assessed", SellerMessage: "Payment complete.", Type: "authorized",
	}
	return u.succeeded(pi, c, test)
}

func (u *Unit) refundByCase(refund string) error {
	r, err := u.Refund(refund)
	if err != nil {
		return err
	}
	c, err := u.Charge(r.Charge)
	if err != nil {
		return err
	}
	test, err := u.testCase(c.PaymentMethod)
	if err != nil {
		return err
	}
	_, err = u.FinishRefund(refund, test.Refund)
	return err
}

func (u *Unit) disputeByCase(charge string) error {
	c, err := u.Charge(charge)
	if err != nil {
		return err
	}
	test, err := u.testCase(c.PaymentMethod)
	if err != nil {
		return err
	}
	_, err = u.OpenDispute(charge, nil, test.Dispute, false)
	return err
}

// Work runs tasks when they are due, until ctx ends. wake signals a new task or a change of the clock.
func (a *App) Work(ctx context.Context, wake <-chan struct{}) {
	for ctx.Err() == nil {
		wait, err := a.next()
		if err != nil {
			slog.Error("a task failed", "error", err)
			wait = time.Second
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-time.After(wait):
		}
	}
}

// next runs the first task if it is due, and returns how long to wait for the next one.
func (a *App) next() (time.Duration, error) {
	var task *store.Task
	var due time.Time
	err := a.DB.View(func(t *store.Tx) error {
		var err error
		task, due, err = t.NextTask()
		return err
	})
	if err != nil || task == nil {
		return time.Minute, err
	}
	if wait := time.Until(due); wait > 0 {
		return min(wait, time.Minute), nil
	}
	return 0, a.DB.Update(func(t *store.Tx) error {
		if there, err := t.Finish(task); err != nil || !there {
			return err
		}
		return (&Unit{App: a, Tx: t, Scope: task.Scope}).do(task)
	})
}
