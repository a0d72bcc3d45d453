package domain_test

import (
	"slices"
	"testing"
	"time"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

// TestRefundStatus checks that the state of a refund is the first of requires_action, pending, failed, canceled, succeeded that one
// of its parts has, as the contract specifies.
func TestRefundStatus(t *testing.T) {
	t.Parallel()
	type s = domain.RefundStatus
	for _, c := range []struct {
		parts []s
		want  s
	}{
		{[]s{"creating"}, "creating"},
		{[]s{"refused", "creating"}, "creating"},
		{[]s{"refused", "refused"}, "refused"},
		{[]s{"succeeded", "succeeded"}, "succeeded"},
		{[]s{"succeeded", "creating"}, "pending"},
		{[]s{"succeeded", "refused"}, "failed"},
		{[]s{"succeeded", "canceled"}, "canceled"},
		{[]s{"canceled", "failed"}, "failed"},
		{[]s{"failed", "pending", "succeeded"}, "pending"},
		{[]s{"pending", "requires_action", "failed"}, "requires_action"},
	} {
		r := domain.Refund{Status: domain.RefundCreating}
		for range c.parts {
			r.Allocations = append(r.Allocations, domain.Allocation{ID: ids.New[domain.AllocationPrefix](), Status: domain.RefundCreating})
		}
		for i, status := range c.parts {
			switch id := r.Allocations[i].ID; status {
			case "creating":
			case "refused":
				r = r.Refused(id, domain.Failure{})
			default:
				r = r.Reported(id, domain.GatewayRefund{ID: "re_1", Status: status})
			}
		}
		if r.Status != c.want || r.Shown != (c.want != "creating" && c.want != "refused") {
			t.Errorf("%v: %s, want %s", c.parts, r.Status, c.want)
		}
	}
}

// TestStatesOfAPart checks which states reserve the amount of a part, and which states a gateway can report.
func TestStatesOfAPart(t *testing.T) {
	t.Parallel()
	for status, want := range map[domain.RefundStatus][2]bool{ // holds, known
		domain.RefundCreating: {true, false}, domain.RefundRefused: {false, false}, domain.RefundPending: {true, true},
		domain.RefundRequiresAction: {true, true}, domain.RefundSucceeded: {true, true}, domain.RefundFailed: {false, true},
		domain.RefundCanceled: {false, true}, "unknown": {false, false},
	} {
		if got := [2]bool{status.Holds(), domain.KnownRefundStatus(status)}; got != want {
			t.Errorf("%s: holds and known are %v, want %v", status, got, want)
		}
	}
}

// TestPartsOfARefund checks that a refund finds its parts, that it holds the sum of its parts of each payment, and that its lease
// ends with the last call.
func TestPartsOfARefund(t *testing.T) {
	t.Parallel()
	one, two := ids.New[domain.IntentPrefix](), ids.New[domain.IntentPrefix]()
	part := func(of domain.IntentID, minor int64) domain.Allocation {
		return domain.Allocation{ID: ids.New[domain.AllocationPrefix](), IntentID: of, Minor: minor, Status: domain.RefundCreating}
	}
	first, second, third := part(one, 1), part(two, 20), part(one, 300)
	r := domain.Refund{Status: domain.RefundCreating, Allocations: []domain.Allocation{first, second, third}}.Resume(time.Now())
	underWay := func(want ...domain.Allocation) {
		t.Helper()
		same := func(a, b domain.Allocation) bool { return a.ID == b.ID }
		if got := r.UnderWay(); !slices.EqualFunc(got, want, same) {
			t.Errorf("under way: %v, want %v", got, want)
		}
		if leased := r.Lease.UnderWay(); leased != (len(want) > 0) {
			t.Errorf("leased: %v with %d under way", leased, len(want))
		}
	}
	holds := func(wantOne, wantTwo int64) {
		t.Helper()
		if gotOne, gotTwo := r.Held(one), r.Held(two); gotOne != wantOne || gotTwo != wantTwo {
			t.Errorf("holds %d and %d, want %d and %d", gotOne, gotTwo, wantOne, wantTwo)
		}
	}
	underWay(first, second, third)
	holds(301, 20)
	r = r.Reported(first.ID, domain.GatewayRefund{ID: "re_1", Status: domain.RefundSucceeded})
	underWay(second, third)
	holds(301, 20)
	r = r.Refused(third.ID, domain.Failure{Code: "no"})
	underWay(second)
	holds(1, 20)
	r = r.Reported(second.ID, domain.GatewayRefund{ID: "re_2", Status: domain.RefundFailed})
	underWay()
	holds(1, 0)
	if found, ok := r.Allocation(second.ID); !ok || found.GatewayID != "re_2" {
		t.Errorf("the second part is %v, %v", found, ok)
	}
	if _, ok := r.Allocation(ids.New[domain.AllocationPrefix]()); ok {
		t.Error("an unknown part is found")
	}
}

// TestOwedRefundNamesItsPayment checks that a refund of a late payment names the payment, and that a refund of a canceled booking
// does not.
func TestOwedRefundNamesItsPayment(t *testing.T) {
	t.Parallel()
	p := domain.Intent{ID: ids.New[domain.IntentPrefix](), GatewayID: "pi_1", Received: 10}
	p.Amount.Currency = "USD"
	for cause, want := range map[domain.Cause]domain.GatewayID{domain.PaidLate: "pi_1", domain.BookingCancelled: ""} {
		o := domain.OwedRefund{Cause: cause, Subject: "pi_1", Code: "USD"}
		if r, err := o.Refund([]domain.Intent{p}, 10, time.Now()); err != nil || r.Intent != want {
			t.Errorf("%s: %q, %v", cause, r.Intent, err)
		}
	}
}
