package domain

import (
	"fmt"
	"math"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/proto/internalapi"
)

// ErrAccountMoved is the response of payments if money was received or returned since the caller read the account. Nothing was
// recorded. The caller reads the account and decides again.
var ErrAccountMoved = apperr.New(apperr.Conflict, "account_moved", "Money was received or returned since the account was read.")

// AccountRef identifies the account at payments of the money of a booking, or of an invoice without one, in one currency.
type AccountRef struct {
	Booking  BookingID // zero: the account of Invoice
	Invoice  InvoiceID // zero if Booking is set
	Currency string
}

// AccountOf returns the account of the money of an invoice.
func AccountOf(booking BookingID, invoice InvoiceID, currency string) AccountRef {
	if booking.IsZero() {
		return AccountRef{Invoice: invoice, Currency: currency}
	}
	return AccountRef{Booking: booking, Currency: currency}
}

// Account returns the account of the invoice's money.
func (v Invoice) Account() AccountRef { return AccountOf(v.BookingID, v.ID, v.Total.Currency) }

// Account returns the account of the credited invoice's money.
func (n CreditNote) Account() AccountRef {
	return AccountOf(n.BookingID, n.InvoiceID, n.Total.Currency)
}

// ParseAccount reads the id of an account, bk_… or inv_….
func ParseAccount(id, currency string) (AccountRef, error) {
	if booking, err := ids.Parse[ids.BookingPrefix](id); err == nil {
		return AccountRef{Booking: booking, Currency: currency}, nil
	}
	invoice, err := ids.Parse[ids.InvoicePrefix](id)
	return AccountRef{Invoice: invoice, Currency: currency}, err
}

// ID returns bk_… or inv_….
func (r AccountRef) ID() string {
	if r.Booking.IsZero() {
		return r.Invoice.String()
	}
	return r.Booking.String()
}

// UUID returns the id without its prefix.
func (r AccountRef) UUID() [16]byte {
	if r.Booking.IsZero() {
		return r.Invoice.UUID()
	}
	return r.Booking.UUID()
}

// Account is a state of an account.
type Account struct {
	AccountRef

	Received int64 // in the smallest unit, like Returned
	Returned int64
	Version  int64
	Entries  []Entry // the changed ones
	More     bool    // further entries follow the last one
}

// Applied returns the version up to which a copy is complete after it has applied the entries.
func (a Account) Applied() int64 {
	if a.More && len(a.Entries) > 0 {
		return a.Entries[len(a.Entries)-1].Version
	}
	return a.Version
}

// FromAccount converts an account of payments.
func FromAccount(got internalapi.Account) (Account, error) {
	ref, err := ParseAccount(got.ID, got.Currency)
	if err != nil {
		return Account{}, fmt.Errorf("account id %q: %w", got.ID, err)
	}
	out := Account{AccountRef: ref, Received: got.Received, Returned: got.Returned + got.Held, Version: got.Version, More: got.More}
	for _, e := range got.Entries {
		entry := Entry{
			ID: e.ID, Kind: e.Kind, Method: e.Method, Amount: e.Amount, Returned: e.Returned, NoteReturned: e.NoteReturned, Disputed: e.Disputed, At: e.At,
			ReversedAt: e.ReversedAt, Version: e.Version,
		}
		if e.InvoiceID != nil {
			if entry.Invoice, err = ids.Parse[ids.InvoicePrefix](*e.InvoiceID); err != nil {
				return Account{}, fmt.Errorf("invoice id %q: %w", *e.InvoiceID, err)
			}
		}
		if e.CreditNoteID != nil {
			if entry.Note, err = ids.Parse[ids.CreditNotePrefix](*e.CreditNoteID); err != nil {
				return Account{}, fmt.Errorf("credit note id %q: %w", *e.CreditNoteID, err)
			}
		}
		out.Entries = append(out.Entries, entry)
	}
	return out, nil
}

// The kinds of entries.
const (
	CardEntry    = "card"
	ReceiptEntry = "receipt"
	ReturnEntry  = "return"
)

// Entry is the newest state of a payment, or of a return that is not part of a card payment.
type Entry struct {
	ID       string // pi_…, pay_…, cn_… or rf_…
	Kind     string
	Method   string
	Amount   int64
	Returned int64 // of a card payment, including refunds that have begun
	// NoteReturned is the part of it that credit notes refund.
	NoteReturned int64
	Disputed     bool
	Invoice      InvoiceID    // that the payment names; zero: none
	Note         CreditNoteID // of a return; zero: none
	At           time.Time
	ReversedAt   *time.Time
	Version      int64 // of the account with this state
}

// Charge returns the payment of an entry of an account.
func (e Entry) Charge(of AccountRef) Charge {
	c := Charge{
		ID: e.ID, Account: of, Invoice: e.Invoice, Amount: money.Amount{Minor: e.Amount, Currency: of.Currency}, Method: e.Method, PaidAt: e.At,
		ChargeState: ChargeState{Refunded: e.Returned, Directed: e.NoteReturned, Disputed: e.Disputed, Version: e.Version},
	}
	if e.Kind == ReceiptEntry {
		_, c.ID = ids.Stored(e.ID)
	}
	return c
}

// Receipt is a payment that a client records and that payments may not have recorded yet.
type Receipt struct {
	ID        PaymentID
	Account   AccountRef
	Invoice   InvoiceID
	Amount    int64
	Method    string
	PaidAt    time.Time
	Reference *string
	Calling   Accepting // the request to payments whose outcome is unknown; not under way: payments has recorded it
}

// NoVersion is a version that no account has. With it, payments only finds what it has recorded before, and otherwise responds that the
// account has moved.
const NoVersion int64 = math.MaxInt64

// Dues are the sums of the opened, not voided invoices of an account.
type Dues struct {
	Version  int64 // of the account
	Invoiced int64
	Due      int64
	Placed   int64 // what was paid on them
	Named    *NamedInvoice
}

// NamedInvoice is the invoice that a payment names.
type NamedInvoice struct {
	Status   InvoiceStatus
	Due      int64
	Booking  BookingID // zero: none
	Currency string
}

// HandedBack is what was handed back outside the gateway, except by credit notes.
type HandedBack struct {
	Sum    int64
	Free   int64 // the part that was money on no invoice
	Placed int64 // money on invoices of the account that was not refunded by card or by credit notes
}

// OfInvoices returns the part that was money on invoices.
func (h HandedBack) OfInvoices() int64 { return max(0, h.Sum-h.Free) }

// More returns the part of an amount that was money on no invoice. Sum contains the amount already. It is first money on invoices.
func (h HandedBack) More(amount int64) int64 {
	return amount - max(0, min(amount, h.Placed-(h.OfInvoices()-amount)))
}
