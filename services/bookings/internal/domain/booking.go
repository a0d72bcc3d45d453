package domain

import (
	"cmp"
	"encoding/json"
	"time"

	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// Booking is a held or confirmed reservation of a unit, a time and a customer. Absent ids are zero.
type Booking struct {
	Schedule
	Amounts
	ID            BookingID
	Number        string
	Status        Status
	Version       int64
	CustomerID    CustomerID
	LeadID        LeadID
	QuoteID       QuoteID
	ServiceID     ServiceID
	UnitID        UnitID
	PackageID     PackageID
	Snapshot      *Snapshot // nil: not priced
	Taxes         *Taxes    // nil: not priced
	EventType     *string
	Begins        time.Time      // its start, or the first instant of a day without times; set when it is read
	Loc           *time.Location // the operator's when the booking was created; all local times of the booking are in it
	GuestCount    *int
	Exclusive     bool      // whether it takes all seats of a slot of a shared unit
	Session       SessionID // in which it takes seats of a shared unit; zero: none
	Seats         int       // that it takes in the session
	Notes         *string
	Disputed      bool  // whether the payer of a payment at the gateway disputes it
	Account       int64 // the version of its account at payments that its amounts show; 0: none yet
	HoldExpiresAt *time.Time
	CancelReason  *string
	RefundDue     *int64          // by the policy, set on cancellation; nil: not specified
	Ended         *AccountState   // of its account when it was canceled; nil: it was not
	Policy        *Policy         // the operator's when the booking was created; nil: created before policies were stored
	InvoiceIDs    []string        // of its invoices, oldest first, at most 100; stored separately, so that they do not change the version
	Metadata      json.RawMessage // as sent; nil: empty
	CreatedAt     time.Time
	UpdatedAt     time.Time
	ConfirmedAt   *time.Time
	CancelledAt   *time.Time
	ExpiredAt     *time.Time // when a test clock ended the hold, in real time; nil: HoldExpiresAt applies
	CompletedAt   *time.Time
}

// Refs contains the rows that a booking refers to after an input; nil means that this caller has no such row.
type Refs struct {
	Customer *Customer
	Service  *Service
	Unit     *Unit
	Package  *Package
	Rules    []HolidayRule
	Taxes    TaxDefaults // of the operator
}

// duration returns the duration of a booking without a given end: that of the package, or else that of the service.
func (r Refs) duration() (d duration) {
	if r.Service != nil {
		d.minutes = r.Service.DurationMinutes
	}
	if r.Package != nil && r.Package.DurationMinutes != nil {
		d.minutes = r.Package.DurationMinutes
	}
	if r.Unit != nil && r.Service == nil {
		d.services = r.Unit.ServiceIDs
	}
	return d
}

// New creates a booking from an input. The price is a snapshot of the package on the event's day.
func New(in BookingInput, when When, refs Refs, policy Policy, blank Booking, now time.Time) (Booking, error) {
	b := blank
	b.Version, b.Policy = 1, &policy
	if err := b.link(in, refs); err != nil {
		return Booking{}, err
	}
	if err := b.first(when, refs.duration(), b.Loc); err != nil {
		return Booking{}, err
	}
	b.wholeDay(!b.UnitID.IsZero(), b.Loc)
	if err := policy.Refuses(b.Schedule, now, b.Loc); err != nil {
		return Booking{}, err
	}
	if err := b.closed(refs, when); err != nil {
		return Booking{}, err
	}
	if err := b.reprice(refs); err != nil {
		return Booking{}, err
	}
	b.write(in)
	b.Exclusive = in.Exclusive
	return b, b.open(in, policy, now)
}

// NewLinked is New for the booking of a quote or a lead. The booking of a quote has the quote's amounts in the quote's currency,
// the current package, and no hold that can lapse. Its total includes the taxes. The booking of a lead is an ordinary one.
func NewLinked(in LinkedInput, when When, refs Refs, policy Policy, blank Booking, now time.Time) (Booking, error) {
	currency := cmp.Or(in.Currency, blank.Total.Currency)
	blank.QuoteID, blank.LeadID = in.Quote, in.Lead
	b, err := New(in.input(in.BookingInput), when, refs, policy, blank, now)
	if err != nil || in.Quote.IsZero() {
		return b, err
	}
	b.Amounts = NoMoney(currency)
	b.Total, b.Deposit = money.Amount{Minor: *in.Total, Currency: currency}, money.Amount{Minor: *in.Deposit, Currency: currency}
	b.Gross, b.Taxes = b.Total, &Taxes{Behavior: money.TaxInclusive, Rows: in.Taxes}
	b.HoldExpiresAt = nil
	return b, nil
}

// open sets the first state of a new booking and, if the booking is pending, its hold.
func (b *Booking) open(in BookingInput, policy Policy, now time.Time) error {
	b.Status = Pending
	if status := in.Status.Pointer(); status != nil {
		b.Status = *status
	} else if policy.AutoConfirm {
		b.Status = Confirmed
	}
	if b.Status == Confirmed {
		if in.HoldMinutes.Pointer() != nil {
			return field("hold_minutes", "Only a pending booking has a hold.")
		}
		b.ConfirmedAt = &now
		return nil
	}
	minutes := in.HoldMinutes.Pointer()
	if minutes == nil {
		minutes = policy.HoldTTLMinutes
	}
	if minutes != nil {
		until := now.Add(time.Duration(*minutes) * time.Minute)
		b.HoldExpiresAt = &until
	}
	return nil
}

// ApplySchedule applies the time, links, and guests of an input to an existing booking. If the package changes, the booking is
// repriced for the event's day. If only the day changes, it is not.
func (b Booking) ApplySchedule(in BookingInput, when When, refs Refs, policy Policy, now time.Time) (Booking, error) {
	was := b
	if err := b.link(in, refs); err != nil {
		return Booking{}, err
	}
	if in.HasTime() {
		if err := b.move(when, refs.duration(), b.Loc); err != nil {
			return Booking{}, err
		}
	}
	b.wholeDay(!b.UnitID.IsZero(), b.Loc)
	started := b.Day != was.Day || b.Timed() != was.Timed() || !sameTime(b.StartsAt, was.StartsAt)
	if in.HasTime() && started {
		if err := policy.Refuses(b.Schedule, now, b.Loc); err != nil {
			return Booking{}, err
		}
	}
	if in.HasTime() && (started || !sameTime(b.EndsAt, was.EndsAt)) || b.UnitID != was.UnitID {
		if err := b.closed(refs, when); err != nil {
			return Booking{}, err
		}
	}
	if b.PackageID != was.PackageID {
		if err := b.retainsPrice(); err != nil {
			return Booking{}, err
		}
		return b, b.reprice(refs)
	}
	if s := b.Snapshot; s != nil && s.Pricing == PerGuest && b.guests() != was.guests() {
		return b, b.countsGuests()
	}
	return b, nil
}

// closed returns the error of a booking at a time when its unit is closed. A booking from before a change of the opening hours
// stays valid. On a shared unit, the slots that it offers decide.
func (b Booking) closed(refs Refs, when When) error {
	if refs.Unit == nil || b.UnitID.IsZero() || refs.Unit.Shared() {
		return nil
	}
	return refs.Unit.OpeningHours.refuses(b.Schedule, when.From.Given() || when.To.Given(), b.Loc)
}

// ApplyStatus applies the rest of an input: texts, metadata, and status. It refuses changes that the current state does not allow.
// account is the state of the booking's account if NeedsAccount requires it, or else nil.
func (b Booking) ApplyStatus(in BookingInput, reason *string, account *AccountState, now time.Time) (Booking, error) {
	if b.Status.Final() {
		if err := in.frozen(b.Status); err != nil {
			return Booking{}, err
		}
	}
	b.write(in)
	status := in.Status.Pointer()
	if status == nil {
		return b, nil
	}
	was := b.Status
	if err := b.transitionTo(*status, now); err != nil {
		return Booking{}, err
	}
	if b.Status == Cancelled && was != Cancelled {
		b.CancelReason = reason
		b.settle(account, now)
	}
	return b, nil
}

func (b *Booking) write(in BookingInput) {
	in.EventType.SetNullable(&b.EventType)
	in.Notes.SetNullable(&b.Notes)
	patch.SetMetadata(in.Metadata, &b.Metadata)
}

// transitionTo moves the booking to the requested state. Requesting the current state changes nothing.
func (b *Booking) transitionTo(to Status, now time.Time) error {
	if to == b.Status {
		return nil
	}
	next, ok := b.Status.Next(actionFor[to])
	if !ok {
		return noTransition(b.Status, to)
	}
	if (next == Completed || next == NoShow) && now.Before(b.begins()) {
		return ErrTransition.WithMessage("A booking can be %s only from its start on.", next).WithField("status")
	}
	if b.Status == Completed || b.Status == NoShow {
		if now.After(b.over(b.Loc).Add(correctionPeriod)) {
			return ErrTransition.WithMessage("More than 7 days have passed since the end of the booking.").WithField("status")
		}
	}
	b.Status = next
	b.HoldExpiresAt = nil
	switch next {
	case Confirmed:
		b.ConfirmedAt = &now
	case Cancelled:
		b.CancelledAt = &now
	case Completed:
		b.CompletedAt = &now
	case NoShow:
		b.CompletedAt = nil
	case Pending, Expired: // no client can request them
	}
	return nil
}

// NeedsAccount reports whether an input cancels the booking, and the money of its account decides what is refunded.
func (b Booking) NeedsAccount(in BookingInput, now time.Time) bool {
	to := in.Status.Pointer()
	if to == nil || *to != Cancelled || b.Policy == nil {
		return false
	}
	_, cancels := b.Status.Next(Cancel)
	percent, _ := b.Policy.RefundPercent(b.begins().Sub(now))
	return cancels && (percent > 0 || b.Policy.RefundLatePayments)
}

// settle records the amount that the policy refunds if the booking is canceled now: a share of what the account has received and not
// returned. It also records the state of the account: later payments are late, and later returns count toward the amount. If account is
// nil, the policy refunds nothing.
func (b *Booking) settle(account *AccountState, now time.Time) {
	b.Ended = account
	if account == nil { // the last state that payments has reported
		b.Ended = &AccountState{Version: b.Account, Received: b.Paid.Minor, Returned: b.Refunded.Minor}
	}
	if b.Policy == nil {
		return
	}
	retained := money.Amount{Minor: b.Ended.Received - b.Ended.Returned, Currency: b.Total.Currency}
	if due, ok := b.Policy.Refund(retained, b.begins().Sub(now)); ok {
		b.RefundDue = &due
	}
}

// begins returns the start of the event. A whole day starts at its first instant in the operator's time zone.
func (b Booking) begins() time.Time {
	if b.StartsAt != nil {
		return *b.StartsAt
	}
	day, _ := b.Day.Start(b.Loc) // a stored day exists in its time zone
	return day
}

// Lapsed reports whether the hold of a pending booking has lapsed.
func (b Booking) Lapsed(now time.Time) bool {
	return b.Status == Pending && b.HoldExpiresAt != nil && !now.Before(*b.HoldExpiresAt)
}

// At returns the booking as every reader and writer sees it. A lapsed hold is expired and has the next version, whether or not its
// expiry is already written.
func (b Booking) At(now time.Time) Booking {
	if !b.Lapsed(now) {
		return b
	}
	b.Status, _ = b.Status.Next(Expire)
	b.Version++
	return b
}

// EndedAt returns when the hold of the booking expired, or nil if it did not.
func (b Booking) EndedAt() *time.Time {
	switch {
	case b.Status != Expired:
		return nil
	case b.ExpiredAt != nil:
		return b.ExpiredAt
	default:
		return b.HoldExpiresAt
	}
}

// Claim returns the time for which the booking occupies its unit, including buffers. It returns false if the booking occupies no
// unit. A whole day has no buffers.
func (b Booking) Claim(s *Service) (from, to time.Time, ok bool) {
	if b.UnitID.IsZero() || !b.Status.Holds() || b.StartsAt == nil {
		return time.Time{}, time.Time{}, false
	}
	from, to = *b.StartsAt, *b.EndsAt
	if b.Timed() && s != nil {
		from = from.Add(-time.Duration(s.BufferBeforeMinutes) * time.Minute)
		to = to.Add(time.Duration(s.BufferAfterMinutes) * time.Minute)
	}
	return from, to, true
}

// TakesSeats returns the number of seats that the booking takes on a shared unit. 0 means all.
func (b Booking) TakesSeats() int {
	if b.Exclusive {
		return 0
	}
	return b.guests()
}

// SameSlot reports whether unit, service, and times are unchanged, so that the claim stays unchanged.
func (b Booking) SameSlot(was Booking) bool {
	return b.UnitID == was.UnitID && b.ServiceID == was.ServiceID && b.Timed() == was.Timed() &&
		sameTime(b.StartsAt, was.StartsAt) && sameTime(b.EndsAt, was.EndsAt)
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
