package domain

import (
	"time"

	"holdfast.dev/libs/money"
)

// Invoice is this service's copy of an invoice, a projection of the customers service's events.
type Invoice struct {
	ID       string    // inv_…
	Booking  BookingID // zero: not for a booking
	Version  int64
	Currency string
	Opened   bool // it is neither a draft nor void
	Deposit  bool // it is a deposit invoice
	Total    int64
	Due      int64
	Paid     int64 // including refunded payments
	Credited int64
}

// AccountState is the state of the account of a booking at payments, in the booking's currency.
type AccountState struct {
	Version  int64
	Received int64 // including refunded payments
	Returned int64 // including refunds that have begun
}

// Account is an event about the account of a booking, with the payments that have changed.
type Account struct {
	Booking  BookingID
	Currency string
	Received int64
	Returned int64
	Disputed bool
	Version  int64
	Payments []BookingPayment
}

// BookingPayment is a payment of a booking in a list.
type BookingPayment struct {
	Row        [16]byte // its position in the list
	ID         string   // pay_…, pi_…, or cn_… or rf_… of money handed back, whose amount is 0
	Source     string   // manual or gateway
	Amount     money.Amount
	Refunded   int64
	Disputed   bool
	InvoiceID  string     // "": none
	PaidAt     *time.Time // nil: unknown
	ReversedAt *time.Time // nil: it counts
	Version    int64      // of the account with this state
	CreatedAt  time.Time
}

// Balance is what payments and customers have reported about the money of a booking, in its currency.
type Balance struct {
	Paid, Refunded int64
	Disputed       bool
	Account        int64 // the version of the account
	Invoices       InvoiceSums
}

// Balance returns the reports that the booking shows.
func (b Booking) Balance() Balance {
	return Balance{Paid: b.Paid.Minor, Refunded: b.Refunded.Minor, Disputed: b.Disputed, Account: b.Account, Invoices: b.Invoices}
}

// With returns the balance with the sums of an account. An older event changes nothing.
func (r Balance) With(a Account) Balance {
	if a.Version > r.Account {
		r.Paid, r.Refunded, r.Disputed, r.Account = a.Received, a.Returned, a.Disputed, a.Version
	}
	return r
}

// confirming are the payment states in which a pending booking is confirmed, if the policy requires this.
var confirming = map[PaymentStatus]bool{DepositPaid: true, Paid: true, Overpaid: true}

// Receive returns the booking with a new balance. A paid deposit confirms a pending booking whose hold has not lapsed, if the policy at
// the booking's creation requires this. All other bookings keep their state.
func (b Booking) Receive(r Balance, now time.Time) (Booking, error) {
	was := b.Amounts
	b.Paid.Minor, b.Refunded.Minor, b.Disputed, b.Account, b.Invoices = r.Paid, r.Refunded, r.Disputed, r.Account, r.Invoices
	if b.Amounts == was {
		return b, nil
	}
	paid := confirming[b.Amounts.Status()] || b.Amounts.Status() == Credited && b.depositPaid()
	if b.Status != Pending || b.Lapsed(now) || b.Policy == nil || !b.Policy.ConfirmOnDeposit || !paid {
		return b, nil
	}
	return b, b.transitionTo(Confirmed, now)
}
