package domain

import (
	"encoding/json"
	"slices"
	"time"

	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/lease"
	"holdfast.dev/libs/money"
)

// Intent is a card payment for a booking.
type Intent struct {
	ID         IntentID
	GatewayID  GatewayID // "" while it is Creating or Refused
	AccountID  AccountID
	Status     Status
	Amount     money.Amount
	Received   int64
	Capturable int64
	Refunded   int64
	// RefundReserved is what refunds of this platform reserve. RefundedElsewhere is what others are known to have refunded.
	RefundReserved, RefundedElsewhere int64
	Lost                              int64 // what lost disputes have taken back, beyond Refunded
	BookingID                         BookingID
	InvoiceID                         InvoiceID  // zero: none
	CustomerID                        CustomerID // zero: none
	CaptureMethod                     CaptureMethod
	Description                       *string
	ReceiptEmail                      *string
	Metadata                          json.RawMessage // as sent; nil: empty
	Failure                           *Failure
	FailedCharge                      string // ch_…, of the last reported failure; "": none
	Disputed                          bool
	EverDisputed                      bool // whether the gateway ever reported a dispute
	Charges, Refunds                  Walk // how far the lists at the gateway were read
	Version                           int64
	CreatedAt                         time.Time
	UpdatedAt                         time.Time
	SucceededAt                       *time.Time
	CanceledAt                        *time.Time
	Call                              Call
	// Reads of the gateway's state are numbered when they begin. Reads counts those that began, and Applied is the number of the
	// last applied one.
	Reads, Applied int64
	BookingStatus  string // looked up: it changes independently of the intent
	ClientSecret   Secret // in the response to the creation; never stored with the row
}

// IntentMoney is the part of an intent that its account of money follows.
type IntentMoney struct {
	Received, Refunded, RefundReserved, RefundedElsewhere, Lost int64
	Disputed                                                    bool
}

// Money returns the part of the intent that its account follows.
func (p Intent) Money() IntentMoney {
	return IntentMoney{p.Received, p.Refunded, p.RefundReserved, p.RefundedElsewhere, p.Lost, p.Disputed}
}

// CaptureMethod defines when the money is captured.
type CaptureMethod string

// The capture methods.
const (
	CaptureAutomatic CaptureMethod = "automatic"
	CaptureManual    CaptureMethod = "manual"
)

// Failure is the reason why a payment attempt was refused, in the gateway's words.
type Failure struct {
	Code        string  `json:"code"`
	DeclineCode *string `json:"decline_code"`
	Message     string  `json:"message"`
}

// Call is a call to the gateway that may be in progress. Its idempotency key is derived from the row and the attempt, so that one
// attempt has at most one effect.
type Call struct {
	lease.Lease

	AttemptedAt time.Time // when the attempt's first call began
}

const (
	// callLease is how long a process exclusively holds a call. It is longer than the call's timeout.
	callLease = 30 * time.Second
	// gatewayMemory is shorter than the 24 hours for which Stripe stores an idempotency key.
	gatewayMemory = 23 * time.Hour
)

// Begin returns a new attempt.
func (c Call) Begin(real time.Time) Call {
	return Call{Lease: c.Take(real, callLease), AttemptedAt: real}
}

// Resume returns the same attempt for another call.
func (c Call) Resume(real time.Time) Call {
	c.Lease = c.Renew(real, callLease)
	return c
}

// longestPause is shorter than a client waits for a payment.
const longestPause = time.Minute

// Pause returns the pause before a call with an unknown outcome is retried. The older the call, the longer the pause.
func Pause(begun, real time.Time) time.Duration {
	return min(max(real.Sub(begun)/2, time.Second), longestPause)
}

// Forgotten reports whether the gateway may have forgotten the attempt's idempotency key, so that a repetition could have a second
// effect.
func (c Call) Forgotten(real time.Time) bool { return real.Sub(c.AttemptedAt) >= gatewayMemory }

// giveUpAfter is how long a call is retried while its account keeps refusing its keys. Then the call is given up. No client has the
// intent's secret, so no payer can use the intent. If the intent exists after all, the reconciler finds it.
const giveUpAfter = 3 * 24 * time.Hour

// RefusedLifetime is how long an intent or a refund that the gateway refused is retained. It is longer than the lifetime of its key
// and the time that the reconciler looks back.
const RefusedLifetime = 7 * 24 * time.Hour

// ShouldGiveUp reports whether to give up a call in progress whose account refuses its keys.
func (c Call) ShouldGiveUp(real time.Time) bool { return real.Sub(*c.Since) >= giveUpAfter }

// Booking is the data of a booking before an intent is created.
type Booking struct {
	ID         BookingID
	CustomerID CustomerID // zero: none
	Status     string
	Total, Due money.Amount // Total includes taxes
	Version    int64
}

// Lost reports whether the booking no longer accepts payments, because it is canceled or has expired.
func (b Booking) Lost() bool { return slices.Contains(notPayable, b.Status) }

// Dues is what customers returns about the opened, not voided invoices of a booking, in the smallest unit of its currency.
type Dues struct {
	Version  int64 // of the booking's account; what it contains has been counted
	Invoiced int64
	Due      int64
	Placed   int64    // what was paid on them
	Invoice  *Invoice // the named one; nil: none
}

// Invoice is an invoice to be paid.
type Invoice struct {
	ID        InvoiceID
	BookingID BookingID // zero: none
	Status    string
	Due       money.Amount
}

// Snapshot is an intent as the gateway reports it.
type Snapshot struct {
	ID                           GatewayID
	Status                       Status
	Amount, Received, Capturable int64 // in the smallest unit of ISO 4217
	Refunded                     int64
	Failure                      *Failure
	FailedCharge                 string // ch_…, of the failure; "" if no charge was created
	Movements                    []Movement
	// Charges and Refunds show how far the charges and refunds of the intent were read; nil: no further than before. More reports
	// that further ones follow. The part that was read is then older than the reported state.
	Charges, Refunds *Walk
	More             bool
	// Failed contains the failed charges that were read and may not have been reported yet, oldest first.
	Failed []FailedCharge
	// Disputes are the disputes of the intent if DisputesRead is true.
	Disputes     []Dispute
	DisputesRead bool
	CanceledAt   *time.Time
	ClientSecret Secret
	Row          string // our id, from its metadata
	Origin       Origin
}

// Origin is what an intent was created with, as far as the gateway knows it.
type Origin struct {
	Booking, Invoice string // public ids, from the metadata; "": none
	Currency         string
	CaptureMethod    CaptureMethod
	Description      *string
	ReceiptEmail     *string
	CreatedAt        time.Time
}

// Adopted returns the intent of a row that this service has lost, from the gateway's snapshot. Like an intent that was recorded as
// refused, it has no state of the gateway yet. It returns ErrIntentNotFound if the snapshot does not name a booking: the platform
// has not created the intent.
func Adopted(row IntentID, account AccountID, s Snapshot) (Intent, error) {
	booking, err := ids.Parse[ids.BookingPrefix](s.Origin.Booking)
	if err != nil {
		return Intent{}, ErrIntentNotFound.WithCause(err)
	}
	p := Intent{
		ID: row, AccountID: account, Status: Refused, Amount: money.Amount{Minor: s.Amount, Currency: s.Origin.Currency}, BookingID: booking,
		CaptureMethod: s.Origin.CaptureMethod, Description: s.Origin.Description, ReceiptEmail: s.Origin.ReceiptEmail,
		Call: Call{AttemptedAt: s.Origin.CreatedAt},
	}
	if s.Origin.Invoice != "" {
		if p.InvoiceID, err = ids.Parse[ids.InvoicePrefix](s.Origin.Invoice); err != nil {
			return Intent{}, ErrIntentNotFound.WithCause(err)
		}
	}
	return p, nil
}

// Walk is the progress of reading a list of the gateway, which returns the newest object first. A walk reads it page by page from
// the oldest object to the newest. It needs an object to start after, so the first pages go back to the oldest one. A walk is
// stored with its row. Each page is therefore read once, even if a process ends between two pages.
type Walk struct {
	To   string // all objects up to this one were read; "": none
	Back string // the oldest object seen on the way back, while To is ""
}

// ApplyRead is Apply for a numbered read. Reads are applied in order, because the refunded amount decreases when a refund fails.
func (p Intent) ApplyRead(s Snapshot, number int64, now time.Time) Intent {
	p.Applied = number
	if s.More {
		return p.walked(s)
	}
	p = p.Apply(s, now)
	p.Refunded, p.RefundedElsewhere = s.Refunded, max(0, s.Refunded-p.RefundReserved)
	return p.lose(s)
}

// Apply returns the intent with the state that the gateway reports. A final state stays, and the received amount never decreases.
func (p Intent) Apply(s Snapshot, now time.Time) Intent {
	p.GatewayID, p.Amount.Minor = s.ID, s.Amount
	p.Received, p.Refunded = max(p.Received, s.Received), max(p.Refunded, s.Refunded)
	if s.DisputesRead {
		p.Disputed = slices.ContainsFunc(s.Disputes, func(d Dispute) bool { return d.Status.Holds() })
		p.EverDisputed = p.EverDisputed || len(s.Disputes) > 0
	}
	p = p.lose(s).walked(s)
	if p.Status.Final() {
		return p
	}
	p.Status, p.Capturable, p.Failure = s.Status, s.Capturable, s.Failure
	switch s.Status {
	case Succeeded:
		at := p.takenAt(s, now)
		p.SucceededAt, p.Failure, p.Capturable = &at, nil, 0
	case Canceled:
		p.CanceledAt, p.Capturable = &now, 0
		if s.CanceledAt != nil {
			p.CanceledAt = s.CanceledAt
		}
	default: // not ended
	}
	return p
}

// lose sets what the lost disputes of a snapshot have taken back.
func (p Intent) lose(s Snapshot) Intent {
	if !s.DisputesRead {
		return p
	}
	p.Lost = 0
	for _, d := range s.Disputes {
		if d.Status == DisputeLost && d.Amount.Currency == p.Amount.Currency {
			p.Lost += d.Amount.Minor
		}
	}
	p.Lost = max(0, min(p.Lost, p.Received-p.Refunded))
	return p
}

// walked stores how far the charges and refunds were read.
func (p Intent) walked(s Snapshot) Intent {
	if s.Charges != nil {
		p.Charges = *s.Charges
	}
	if s.Refunds != nil {
		p.Refunds = *s.Refunds
	}
	return p
}

// takenAt returns when the gateway captured the money, to the second, or now if the gateway does not report the time.
func (p Intent) takenAt(s Snapshot, now time.Time) time.Time {
	i := slices.IndexFunc(s.Movements, func(m Movement) bool { return m.Kind == MovedCharge })
	if i < 0 || s.Movements[i].At.After(now) {
		return now
	}
	if s.Movements[i].At.Before(p.CreatedAt) {
		return p.CreatedAt
	}
	return s.Movements[i].At
}

// FailedCharges returns the failed charges of a snapshot, oldest first.
func (s Snapshot) FailedCharges() []FailedCharge {
	if s.Charges != nil || s.FailedCharge == "" || s.Failure == nil {
		return s.Failed
	}
	return []FailedCharge{{s.FailedCharge, *s.Failure}}
}

// Fail returns the intent after the failure of a charge. A final state stays, because the gateway may report an earlier failure
// later.
func (p Intent) Fail(c FailedCharge) Intent {
	p.Failure, p.FailedCharge = &c.Failure, c.ID
	if !p.Status.Final() {
		p.Status, p.Capturable = RequiresPaymentMethod, 0
	}
	return p
}
