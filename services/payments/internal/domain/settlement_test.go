package domain_test

import (
	"errors"
	"testing"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"

	"holdfast.dev/services/payments/internal/domain"
)

// TestLookAtAnOwedRefund checks that Look returns the amount that no refund covers, and that it ends an owed refund whose refunds
// have succeeded.
func TestLookAtAnOwedRefund(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		code            string
		money           domain.OwedMoney
		left, remaining int64
		state           domain.OwedState
	}{
		"nothing returned":                  {"USD", domain.OwedMoney{Left: 1005}, 1005, 1005, domain.OwedOpen},
		"a part is returned":                {"USD", domain.OwedMoney{Left: 1005, Returned: 5}, 1000, 1000, domain.OwedOpen},
		"all is under way":                  {"USD", domain.OwedMoney{Left: 1005, Returned: 1005, UnderWay: 1005}, 0, 1005, domain.OwedOpen},
		"all is returned":                   {"USD", domain.OwedMoney{Left: 1005, Returned: 1005}, 0, 0, domain.OwedDone},
		"more than all":                     {"USD", domain.OwedMoney{Left: 1005, Returned: 1006}, 0, 0, domain.OwedDone},
		"an earlier refund has failed":      {"USD", domain.OwedMoney{Left: 1005, Returned: -50}, 1005, 1005, domain.OwedOpen},
		"an earlier refund is under way":    {"USD", domain.OwedMoney{Left: 1005, UnderWay: 50}, 1005, 1005, domain.OwedOpen},
		"the gateway takes no thousandth":   {"KWD", domain.OwedMoney{Left: 1005}, 1000, 1005, domain.OwedOpen},
		"less than the gateway's unit left": {"KWD", domain.OwedMoney{Left: 1005, Returned: 1000}, 0, 5, domain.OwedDone},
		"the gateway takes whole units":     {"ISK", domain.OwedMoney{Left: 1005, Returned: 5}, 1000, 1000, domain.OwedOpen},
		"the gateway takes no half ariary":  {"MGA", domain.OwedMoney{Left: 1005, Returned: 2}, 1000, 1003, domain.OwedOpen},
		"less is left":                      {"USD", domain.OwedMoney{Left: 300, Returned: 5}, 300, 300, domain.OwedOpen},
		"nothing is left":                   {"USD", domain.OwedMoney{Returned: 5}, 0, 0, domain.OwedDone},
		"nothing is left but under way":     {"USD", domain.OwedMoney{Returned: 5, UnderWay: 5}, 0, 5, domain.OwedOpen},
	} {
		o, left := domain.OwedRefund{Amount: 1005, Code: c.code, State: domain.OwedOpen}.Look(c.money, now)
		if left != c.left || o.Remaining != c.remaining || o.State != c.state {
			t.Errorf("%s: left %d, remaining %d, %s", name, left, o.Remaining, o.State)
		}
		if due := o.DueAt; due == nil != (c.state == domain.OwedDone) || due != nil && !due.Equal(now.Add(domain.OwedPause)) {
			t.Errorf("%s: due at %v", name, due)
		}
	}
}

// TestOwedRefundIsOpenAgain checks that an owed refund that is open again drops its failure, unless its payments still wait.
func TestOwedRefundIsOpenAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	for name, c := range map[string]struct {
		state    domain.OwedState
		retry    time.Time
		retained bool
	}{
		"done": {domain.OwedDone, now, false}, "done, and waits": {domain.OwedDone, later, true}, "open": {domain.OwedOpen, now, true},
	} {
		o := domain.OwedRefund{Amount: 5, Code: "USD", State: c.state, RetryAt: &c.retry, FailedAt: &now, Failure: &domain.Failure{}}
		if o, _ = o.Look(domain.OwedMoney{Left: 5}, now); o.Failure != nil != c.retained || o.FailedAt != nil != c.retained || o.RetryAt != nil != c.retained {
			t.Errorf("%s: %v %v %v", name, o.Failure, o.FailedAt, o.RetryAt)
		}
	}
}

func TestNextTryOfAnOwedRefund(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	for name, c := range map[string]struct{ due, retry, want *time.Time }{
		"never": {nil, &later, nil}, "due": {&now, nil, &now}, "waits": {&now, &later, &later}, "waits no more": {&later, &now, &later},
	} {
		if got := (domain.OwedRefund{DueAt: c.due, RetryAt: c.retry}).NextTry(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if o := (domain.OwedRefund{RetryAt: &now}); o.Waits(now) || !o.Waits(now.Add(-1)) {
		t.Error("it waits until the time of the next try, and not at it")
	}
}

// TestStuckOwedRefund checks that an owed refund waits if a payment is retried later. Otherwise it has failed, as of the first
// time.
func TestStuckOwedRefund(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	later, before := now.Add(time.Second), now.Add(-time.Second)
	if o := (domain.OwedRefund{RetryAt: &later}).Stuck(true, now); o.DueAt != &later || o.Failure != nil || o.FailedAt != nil {
		t.Errorf("it waits: %+v", o)
	}
	for _, failed := range []bool{true, false} {
		o := domain.OwedRefund{}
		if !failed {
			o.RetryAt = &later
		}
		if o = o.Stuck(failed, now); o.DueAt != nil || o.Failure == nil || o.FailedAt == nil || !o.FailedAt.Equal(now) {
			t.Errorf("failed %v: %+v", failed, o)
		}
	}
	if o := (domain.OwedRefund{FailedAt: &before}).Stuck(false, now); !o.FailedAt.Equal(before) {
		t.Errorf("failed since %v", o.FailedAt)
	}
}

func TestSelectPaymentsAndRefund(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	paid := func(minor int64, code string) domain.Intent {
		return domain.Intent{ID: ids.New[domain.IntentPrefix](), Received: minor, Amount: money.Amount{Minor: minor, Currency: code}}
	}
	bad, good, other := paid(10, "USD"), paid(20, "USD"), paid(30, "EUR")
	all, failed := []domain.Intent{bad, good, other}, map[domain.IntentID]bool{bad.ID: true}
	if got := (domain.OwedRefund{Code: "USD"}).SelectPayments(all, failed, now); len(got) != 2 || got[0].ID != good.ID || got[1].ID != bad.ID {
		t.Errorf("chosen %v", got)
	}
	if got := (domain.OwedRefund{Code: "USD", RetryAt: &later}).SelectPayments(all, failed, now); len(got) != 1 || got[0].ID != good.ID {
		t.Errorf("chosen while it waits %v", got)
	}
	var many []domain.Intent
	for range domain.MaxAllocations + 1 {
		many = append(many, paid(0, "USD"), paid(10, "USD"))
	}
	o := domain.OwedRefund{Code: "USD", Cause: domain.PaidLate, Subject: "pi_1"}
	if r, err := o.Refund(many, 1000, now); err != nil || r.Amount.Minor != 10*domain.MaxAllocations || len(r.Allocations) != domain.MaxAllocations {
		t.Errorf("over many: %d in %d, %v", r.Amount.Minor, len(r.Allocations), err)
	}
	if r, err := o.Refund(many, 15, now); err != nil || r.Amount.Minor != 15 || len(r.Allocations) != 2 {
		t.Errorf("over two: %d in %d, %v", r.Amount.Minor, len(r.Allocations), err)
	}
	disputed := paid(10, "USD")
	disputed.Disputed = true
	if r, err := o.Refund([]domain.Intent{disputed}, 10, now); err != nil || r.Amount.Minor != 10 {
		t.Errorf("of a disputed payment: %d, %v", r.Amount.Minor, err)
	}
	if _, err := o.Refund(many[:1], 15, now); !errors.Is(err, domain.ErrNothingToRefund) {
		t.Errorf("over none: %v", err)
	}
}

func TestEndOfAnOwedRefund(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for state, c := range map[domain.OwedState]struct{ close, retry bool }{
		domain.OwedOpen: {true, true}, domain.OwedDone: {false, false}, domain.OwedClosed: {true, false},
	} {
		o := domain.OwedRefund{State: state}
		closed, err := o.Close("x", "y", now)
		if (err == nil) != c.close || c.close && closed.State != domain.OwedClosed || (closed.ClosedAt != nil) != (state == domain.OwedOpen) {
			t.Errorf("close %s: %+v, %v", state, closed, err)
		}
		if again, err := o.Retry(now); (err == nil) != c.retry || (again.DueAt != nil) != c.retry {
			t.Errorf("retry %s: %+v, %v", state, again, err)
		}
	}
}
