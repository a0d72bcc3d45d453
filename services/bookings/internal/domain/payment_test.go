package domain_test

import (
	"testing"
	"time"

	"holdfast.dev/services/bookings/internal/domain"
)

func TestReceive(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	pending := func(change ...func(*domain.Booking)) domain.Booking {
		b := domain.Booking{Status: domain.Pending, Amounts: domain.NoMoney("USD"), Policy: &domain.Policy{ConfirmOnDeposit: true}}
		b.Total.Minor, b.Gross.Minor, b.Deposit.Minor = 1000, 1000, 300
		for _, f := range change {
			f(&b)
		}
		return b
	}
	hold := func(until time.Time) func(*domain.Booking) {
		return func(b *domain.Booking) { b.HoldExpiresAt = &until }
	}
	for name, c := range map[string]struct {
		b    domain.Booking
		paid int64
		want domain.Status
	}{
		"nothing new":       {pending(func(b *domain.Booking) { b.Paid.Minor = 300 }), 300, domain.Pending},
		"too little":        {pending(), 299, domain.Pending},
		"the deposit":       {pending(), 300, domain.Confirmed},
		"held":              {pending(hold(now.Add(1))), 300, domain.Confirmed},
		"no longer held":    {pending(hold(now)), 300, domain.Pending},
		"policy off":        {pending(func(b *domain.Booking) { b.Policy = &domain.Policy{} }), 1000, domain.Pending},
		"policy unknown":    {pending(func(b *domain.Booking) { b.Policy = nil }), 1000, domain.Pending},
		"refunded meantime": {pending(func(b *domain.Booking) { b.Refunded.Minor = 1 }), 1000, domain.Pending},
		"cancelled":         {pending(func(b *domain.Booking) { b.Status = domain.Cancelled }), 1000, domain.Cancelled},
		"expired":           {pending(func(b *domain.Booking) { b.Status = domain.Expired }), 1000, domain.Expired},
	} {
		balance := c.b.Balance()
		balance.Paid = c.paid
		got, err := c.b.Receive(balance, now)
		if err != nil || got.Status != c.want || got.Paid.Minor != c.paid {
			t.Errorf("%s: %s, paid %d, %v", name, got.Status, got.Paid.Minor, err)
		}
		if confirmed := c.want == domain.Confirmed; confirmed != (got.ConfirmedAt != nil) || confirmed && got.HoldExpiresAt != nil {
			t.Errorf("%s: confirmed at %v, hold until %v", name, got.ConfirmedAt, got.HoldExpiresAt)
		}
	}
}
