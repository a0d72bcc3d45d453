package domain

import "holdfast.dev/libs/money"

// PaymentStatus is derived from the amounts of a booking.
type PaymentStatus string

// The payment states.
const (
	Unpaid            PaymentStatus = "unpaid"
	DepositPaid       PaymentStatus = "deposit_paid"
	PartiallyPaid     PaymentStatus = "partially_paid"
	Paid              PaymentStatus = "paid"
	Overpaid          PaymentStatus = "overpaid"
	PartiallyRefunded PaymentStatus = "partially_refunded"
	Refunded          PaymentStatus = "refunded"
)

// Amounts are the money of a booking, all in one currency.
type Amounts struct {
	Total, Deposit, Paid, Refunded money.Amount
}

// NoMoney is the amounts of an unpriced, unpaid booking.
func NoMoney(currency string) Amounts {
	none := money.Amount{Currency: currency}
	return Amounts{Total: none, Deposit: none, Paid: none, Refunded: none}
}

// Due is what is still to be paid, never below nothing. A refund does not fall due again.
func (a Amounts) Due() money.Amount {
	return money.Amount{Minor: max(0, a.Total.Minor-a.Paid.Minor), Currency: a.Total.Currency}
}

// Status derives the payment state. Any payment of an unpriced booking pays it.
func (a Amounts) Status() PaymentStatus {
	paid, total := a.Paid.Minor, a.Total.Minor
	switch {
	case a.Refunded.Minor > 0 && a.Refunded.Minor >= paid:
		return Refunded
	case a.Refunded.Minor > 0:
		return PartiallyRefunded
	case paid <= 0:
		return Unpaid
	case total > 0 && paid > total:
		return Overpaid
	case paid >= total:
		return Paid
	case a.Deposit.Minor > 0 && paid >= a.Deposit.Minor:
		return DepositPaid
	default:
		return PartiallyPaid
	}
}
