package domain

import "time"

// MovementKind is why money has moved at the gateway.
type MovementKind string

// The kinds of movements. The reversal of each gives the money back.
const (
	MovedCharge          MovementKind = "charge"
	MovedChargeFailed    MovementKind = "charge_failed" // a bank has taken a payment back that the gateway had credited
	MovedRefund          MovementKind = "refund"
	MovedRefundFailed    MovementKind = "refund_failed"
	MovedDispute         MovementKind = "dispute"          // the funds are withdrawn
	MovedDisputeReversed MovementKind = "dispute_reversed" // the funds are reinstated
)

// Movement is a change of the balance at the gateway, which never changes itself.
type Movement struct {
	ID       string // txn_…, the gateway's balance transaction
	Kind     MovementKind
	Object   string // ch_…, re_… or dp_…, what has moved the money
	Amount   int64  // before the fee, in the smallest unit of Currency
	Fee      int64
	Currency string // of the gateway's balance
	// Paid is the amount in the currency of the payment, PaidCurrency: another one where the gateway converts.
	Paid         int64
	PaidCurrency string
	At           time.Time
}

// LedgerAccount is a side of the ledger.
type LedgerAccount string

// The accounts of the ledger.
const (
	GatewayBalance LedgerAccount = "gateway_balance" // what the gateway owes to the operator
	GatewayFees    LedgerAccount = "gateway_fees"    // what the gateway has charged
	Payments       LedgerAccount = "payments"        // what payers have paid, which is negative
	Conversion     LedgerAccount = "conversion"      // what was exchanged for another currency
)

// Entry is what an account of the ledger gains by a movement.
type Entry struct {
	Account  LedgerAccount
	Currency string
	Amount   int64
}

// Entries are the movement in double entry: they add up to 0 in each currency.
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
