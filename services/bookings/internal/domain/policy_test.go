package domain_test

import (
	"math"
	"testing"
	"time"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/bookings/internal/domain"
)

// TestRefundRules checks that the first rule whose deadline is met decides, including at the deadline itself, and that the share is
// rounded down.
func TestRefundRules(t *testing.T) {
	t.Parallel()
	rules := []domain.RefundRule{{HoursBefore: 168, Percent: 100}, {HoursBefore: 24, Percent: 50}, {HoursBefore: 0, Percent: 33}}
	hours := func(n int) time.Duration { return time.Duration(n) * time.Hour }
	for _, tc := range []struct {
		rules  []domain.RefundRule
		amount int64
		before time.Duration
		due    int64
		ok     bool
	}{
		{nil, 1000, hours(1000), 0, false},
		{[]domain.RefundRule{}, 1000, hours(1000), 0, true},
		{rules, 1000, hours(1000), 1000, true},
		{rules, 1000, hours(168), 1000, true},
		{rules, 1000, hours(168) - 1, 500, true},
		{rules, 999, hours(24), 499, true},
		{rules, 1, hours(24), 0, true},
		{rules, 1000, hours(24) - 1, 330, true},
		{rules, 1000, 0, 330, true},
		{rules, 1000, -1, 0, true}, // already begun
		{rules[:2], 1000, hours(24) - 1, 0, true},
		{rules, 0, hours(168), 0, true},
		{rules, -5, hours(168), 0, true}, // more was refunded than paid
		{rules, math.MaxInt64, hours(24), math.MaxInt64 / 2, true},
		{[]domain.RefundRule{{HoursBefore: math.MaxInt32, Percent: 100}}, 1000, hours(87_600), 0, true},
	} {
		due, ok := domain.Policy{RefundRules: tc.rules}.Refund(usd(tc.amount), tc.before)
		if due != tc.due || ok != tc.ok {
			t.Errorf("%v of %d, %s before: %d, %v; want %d, %v", tc.rules, tc.amount, tc.before, due, ok, tc.due, tc.ok)
		}
	}
}

// TestRefundOfThousandths checks that a share in thousandths can be refunded to a card. A payment in cash is returned in full, to
// the thousandth.
func TestRefundOfThousandths(t *testing.T) {
	t.Parallel()
	for percent, want := range map[int]int64{0: 0, 33: 330, 50: 500, 99: 990, 100: 1005} {
		p := domain.Policy{RefundRules: []domain.RefundRule{{HoursBefore: 0, Percent: percent}}}
		if due, ok := p.Refund(money.Amount{Minor: 1005, Currency: "KWD"}, time.Hour); !ok || due != want {
			t.Errorf("%d %%: %d, %v; want %d", percent, due, ok, want)
		}
	}
}
