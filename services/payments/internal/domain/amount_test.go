package domain_test

import (
	"testing"

	"holdfast.dev/services/payments/internal/domain"
)

// TestStripeAmounts checks that amounts in a few currencies are converted to Stripe's unit, and that amounts between its units are
// refused.
func TestStripeAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code         string
		minor, units int64 // units 0: Stripe does not accept it
	}{
		{"USD", 1005, 1005},
		{"JPY", 1005, 1005},
		{"KWD", 1010, 1010},
		{"KWD", 1005, 0},
		{"ISK", 1005, 100_500},
		{"UGX", 1005, 100_500},
		{"MGA", 1000, 10},
		{"MGA", 1010, 0},
	} {
		units, err := domain.ToStripe(c.minor, c.code)
		if units != c.units || (err == nil) != (c.units != 0) {
			t.Errorf("%s %d: %d, %v, want %d", c.code, c.minor, units, err, c.units)
		}
		if err == nil && domain.FromStripe(units, c.code) != c.minor {
			t.Errorf("%s %d: back %d", c.code, c.minor, domain.FromStripe(units, c.code))
		}
	}
}
