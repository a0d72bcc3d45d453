package domain

import (
	"errors"

	"github.com/bojanz/currency"

	"holdfast.dev/libs/money"
)

// Stripe counts most currencies in the smallest unit of ISO 4217, as this platform does. These differ:
// https://docs.stripe.com/currencies#special-cases and #zero-decimal.
var stripeDecimals = map[string]uint8{"ISK": 2, "UGX": 2, "MGA": 0}

var (
	errUnit   = errors.New("the payment gateway takes whole units of this currency only")
	errTenths = errors.New("the payment gateway takes amounts of this currency whose last digit is 0 only")
)

// ToStripe converts an amount to Stripe's unit of the currency. The error states which amounts Stripe accepts.
func ToStripe(minor int64, code string) (int64, error) {
	up, down := factors(code)
	switch unit := money.CardUnit(code); {
	case minor%unit == 0:
	case down == 1:
		return 0, errTenths
	default:
		return 0, errUnit
	}
	return minor / down * up, nil
}

// byCard returns the largest amount up to minor that the gateway accepts, or 0 if there is none.
func byCard(minor int64, code string) int64 { return max(0, minor-minor%money.CardUnit(code)) }

// FromStripe converts an amount in Stripe's unit to the smallest unit of ISO 4217.
func FromStripe(amount int64, code string) int64 {
	up, down := factors(code)
	return amount / up * down
}

// factors returns by how much Stripe's unit is smaller, and by how much it is larger, than the smallest unit of ISO 4217.
func factors(code string) (up, down int64) {
	up, down = 1, 1
	want, special := stripeDecimals[code]
	iso, ok := currency.GetDigits(code)
	if !special || !ok {
		return up, down
	}
	for ; iso < want; iso++ {
		up *= 10
	}
	for ; iso > want; iso-- {
		down *= 10
	}
	return up, down
}
