package domain_test

import (
	"testing"

	"holdfast.dev/libs/ids"

	"holdfast.dev/services/payments/internal/domain"
)

// The state of a refund is the first of requires_action, pending, failed, canceled, succeeded that one of its parts has, as the
// contract says.
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
				r = r.Told(id, domain.GatewayRefund{ID: "re_1", Status: status})
			}
		}
		if r.Status != c.want || r.Shown != (c.want != "creating" && c.want != "refused") {
			t.Errorf("%v: %s, want %s", c.parts, r.Status, c.want)
		}
	}
}
