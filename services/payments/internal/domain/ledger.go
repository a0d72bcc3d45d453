package domain

import "time"

// MovementKind is the reason why money moved at the gateway.
type MovementKind string

// The kinds of movements. The reversal of each kind returns the money.
const (
	MovedCharge          MovementKind = "charge"
	MovedChargeFailed    MovementKind = "charge_failed" // a bank withdrew a payment that the gateway had credited
	MovedRefund          MovementKind = "refund"
	MovedRefundFailed    MovementKind = "refund_failed"
	MovedDispute         MovementKind = "dispute"          // the funds are withdrawn
	MovedDisputeReversed MovementKind = "dispute_reversed" // the funds are reinstated
)

// Movement is a change of the balance at the gateway. A movement itself never changes.
type Movement struct {
	ID       string // txn_…, the gateway's balance transaction
	Kind     MovementKind
	Object   string // ch_…, re_… or dp_…, the object that moved the money
	Amount   int64  // before the fee, in the smallest unit of Currency
	Fee      int64
	Currency string // of the gateway's balance
	// Paid is the amount in PaidCurrency, the currency of the payment. It differs from Currency if the gateway converts.
	Paid         int64
	PaidCurrency string
	At           time.Time
}

// LedgerAccount is a side of the ledger.
type LedgerAccount string

// The accounts of the ledger.
const (
	GatewayBalance LedgerAccount = "gateway_balance" // what the gateway owes to the operator
	GatewayFees    LedgerAccount = "gateway_fees"    // what the gateway charged
	Payments       LedgerAccount = "payments"        // what payers paid, as a negative amount
	Conversion     LedgerAccount = "conversion"      // what was exchanged for another currency
)

// Entry is the change of an account of the ledger by a movement.
type Entry struct {
	Account  LedgerAccount
	Currency string
	Amount   int64
}

// Entries returns the movement in double entry. The entries add up to 0 in each currency.
func (m Movement) Entries() []Entry {
	list := []Entry{{GatewayBalance, m.Currency, m.Amount - m.Fee}}
	if m.Fee != 0 {
		list = append(list, Entry{GatewayFees, m.Currency, m.Fee})
	}
	if m.Currency == m.PaidCurrency {
		return append(list, Entry{Payments, m.Currency, -m.Amount})
	}
	return append(list, Entry{Conversion, m.Currency, -m.Amount}, Entry{Conversion, m.PaidCurrency, m.Paid}, Entry{Payments, m.PaidCurrency, -m.Paid})
}

// Volume is the sum of movements in one currency, in its smallest unit, as positive amounts.
type Volume struct {
	Currency string
	Charged  int64 // charges, less charges that a bank withdrew
	Refunded int64 // refunds, less failed refunds
	Disputed int64 // funds that disputes withdrew, less reinstated ones
}
