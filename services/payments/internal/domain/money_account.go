package domain

import (
	"errors"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
)

// MoneyKey identifies an account of money: a booking, or an invoice without one, and a currency.
type MoneyKey struct {
	Booking  BookingID
	Invoice  InvoiceID // zero if Booking is set
	Currency string
}

// BookingMoney returns the key of the account of a booking.
func BookingMoney(booking BookingID, currency string) MoneyKey {
	return MoneyKey{Booking: booking, Currency: currency}
}

// ParseMoneyKey reads a public id. A malformed id counts as unknown.
func ParseMoneyKey(id, currency string) (k MoneyKey, err error) {
	k.Currency = currency
	if k.Booking, err = ids.Parse[ids.BookingPrefix](id); err == nil {
		return k, nil
	}
	if k.Invoice, err = ids.Parse[ids.InvoicePrefix](id); err == nil {
		return k, nil
	}
	return k, ErrBookingNotFound.WithCause(err)
}

// The kinds of accounts.
const (
	BookingAccount = "booking"
	InvoiceAccount = "invoice"
)

// Kind returns BookingAccount or InvoiceAccount.
func (k MoneyKey) Kind() string {
	if k.Booking.IsZero() {
		return InvoiceAccount
	}
	return BookingAccount
}

// String returns the public id of the booking or the invoice.
func (k MoneyKey) String() string { return k.Booking.String() + k.Invoice.String() }

// UUID returns the stored id of the booking or the invoice.
func (k MoneyKey) UUID() [16]byte {
	if k.Booking.IsZero() {
		return k.Invoice.UUID()
	}
	return k.Booking.UUID()
}

// MoneyAccount is what was received and returned, by card and otherwise. All amounts are in the smallest unit of the currency.
type MoneyAccount struct {
	MoneyKey

	Received int64 // payments that are not reversed, whether or not they were returned
	Returned int64
	Held     int64 // refunds that have begun and are not in Returned yet
	Disputed bool
	Version  int64        // 0: no money yet
	Entries  []MoneyEntry // those that changed since a version, in the order of their change
	More     bool         // further entries follow the last one
}

// MaxMoneyEntries is the largest number of entries in one response or event.
const MaxMoneyEntries = 500

// Left returns the amount that can still be returned.
func (a MoneyAccount) Left() int64 { return max(0, a.Received-a.Returned-a.Held) }

// Due returns what is still to be paid for the booking of the account, whose price includes taxes. Payments that customers has counted
// and the account does not contain yet count as received.
func (a MoneyAccount) Due(price int64, d Dues) money.Amount {
	due := money.Outstanding{
		Gross: price, Invoiced: d.Invoiced, Dues: d.Due, Placed: d.Placed, Received: max(a.Received, d.Placed), Returned: a.Returned + a.Held,
	}.Due()
	return money.Amount{Minor: due, Currency: a.Currency}
}

// AnyVersion is the expected version of a caller that accepts any.
const AnyVersion int64 = -1

// Expect returns ErrAccountMoved if the account does not have the version on which a decision rests.
func (a MoneyAccount) Expect(version int64) error {
	if version >= 0 && version != a.Version {
		return ErrAccountMoved
	}
	return nil
}

// Backed limits a new return to the amount that is left. field is the field of the amount.
func (a MoneyAccount) Backed(minor int64, field string) error {
	if left := a.Left(); minor > left {
		return apperr.Field(field, "Must be at most the amount left to refund, %d.", left)
	}
	return nil
}

// EntryMethod is how money was paid or returned.
type EntryMethod string

// The methods. Only a payment gateway moves MethodCard.
const (
	MethodCard         EntryMethod = "card"
	MethodCash         EntryMethod = "cash"
	MethodBankTransfer EntryMethod = "bank_transfer"
	MethodOther        EntryMethod = "other"
)

// EntryKind is a change of an account.
type EntryKind string

// The changes of an account. A reversal has the amount of what it reverses.
const (
	EntryReceived         EntryKind = "received"
	EntryReceivedReversed EntryKind = "received_reversed"
	EntryReturned         EntryKind = "returned"
)

// MoneyMove is a change outside the payment gateway.
type MoneyMove struct {
	Kind       EntryKind
	Method     EntryMethod
	Minor      int64
	Object     string // pay_…, cn_… or rf_…
	Invoice    InvoiceID
	CreditNote CreditNoteID
	At         time.Time
}

// MoneyEntry is the newest state of a payment, or of a return that is not part of a card payment.
type MoneyEntry struct {
	Object   string // pi_…, pay_…, cn_… or rf_…
	Method   EntryMethod
	Received int64 // less reversals of a card payment
	Returned int64 // of a card payment, including refunds that have begun
	// NoteReturned is the part of it that credit notes have returned.
	NoteReturned int64
	Disputed     bool
	InvoiceID    InvoiceID
	CreditNote   CreditNoteID
	At           time.Time
	ReversedAt   *time.Time // of a payment outside the gateway
	Version      int64      // of the account with this state
}

// The kinds of the contract.
const (
	KindCard    = "card"
	KindReceipt = "receipt"
	KindReturn  = "return"
)

// Kind returns the kind of the contract.
func (e MoneyEntry) Kind() string {
	switch {
	case e.Method == MethodCard:
		return KindCard
	case e.Received > 0:
		return KindReceipt
	default:
		return KindReturn
	}
}

// Receipt is a payment outside the payment gateway.
type Receipt struct {
	MoneyKey

	Payment   PaymentID
	Invoice   InvoiceID // that it pays
	Minor     int64
	Method    EntryMethod
	At        time.Time
	IfVersion int64
}

// Move returns the change that the receipt makes.
func (r Receipt) Move() MoneyMove {
	return MoneyMove{Kind: EntryReceived, Method: r.Method, Minor: r.Minor, Object: r.Payment.String(), Invoice: r.Invoice, At: r.At}
}

// NoteReturn is money that a credit note returned outside the payment gateway.
type NoteReturn struct {
	MoneyKey

	Note      CreditNoteID
	Invoice   InvoiceID
	Minor     int64
	IfVersion int64
}

// Move returns the change that the return makes.
func (r NoteReturn) Move(now time.Time) MoneyMove {
	return MoneyMove{
		Kind: EntryReturned, Method: MethodOther, Minor: r.Minor, Object: r.Note.String(), Invoice: r.Invoice, CreditNote: r.Note, At: now,
	}
}

// ParsePayment reads the id of a payment in a path. A malformed id counts as unknown.
func ParsePayment(text string) (PaymentID, error) {
	id, err := ids.Parse[ids.PaymentPrefix](text)
	if err != nil {
		return id, ErrPaymentNotFound.WithCause(err)
	}
	return id, nil
}

// Reverse returns the change that reverses a payment. last is the id of the newest return, which a lower amount received would not
// cover.
func (a MoneyAccount) Reverse(e MoneyEntry, last string, now time.Time) (MoneyMove, error) {
	if e.Received > a.Left() {
		return MoneyMove{}, apperr.Field("payment_id", "The amount received would no longer cover what was returned, such as %s.", last)
	}
	return MoneyMove{Kind: EntryReceivedReversed, Method: e.Method, Minor: e.Received, Object: e.Object, Invoice: e.InvoiceID, At: now}, nil
}

// The errors of accounts of money. Only services see them.
var (
	ErrAccountMoved    = apperr.New(apperr.Conflict, "account_moved", "Money was received or returned since the account was read.")
	ErrPaymentNotFound = apperr.New(apperr.NotFound, "invoice_payment_not_found", "Payment not found.")
)

// errUnbacked reports that a decision would return more than was received: the constraint of the accounts has prevented it.
var errUnbacked = errors.New("more would be returned than was received")

// ErrUnbacked is the client's error of a refund that the constraint of the accounts has prevented.
var ErrUnbacked = ErrNothingToRefund.WithCause(errUnbacked)
