package tools

import (
	"context"
	"errors"

	holdfast "holdfast.dev/sdks/go"
)

// bookingView is a booking.
type bookingView struct {
	ID            string        `json:"id"`
	Number        string        `json:"number"`
	Status        string        `json:"status"`
	PaymentStatus string        `json:"payment_status"`
	Date          string        `json:"date"`
	StartsAt      *moment       `json:"starts_at,omitempty"` // nil for a whole day
	EndsAt        *moment       `json:"ends_at,omitempty"`
	WholeDay      bool          `json:"whole_day,omitempty"`
	CustomerID    string        `json:"customer_id,omitempty"`
	Customer      *customerView `json:"customer,omitempty"`
	UnitID        string        `json:"unit_id,omitempty"`
	ServiceID     string        `json:"service_id,omitempty"`
	PackageID     string        `json:"package_id,omitempty"`
	Package       string        `json:"package,omitempty"`
	EventType     string        `json:"event_type,omitempty"`
	GuestCount    int           `json:"guest_count,omitempty"`
	Notes         string        `json:"notes,omitempty"`
	Total         money         `json:"total"`
	Gross         money         `json:"gross"` // with taxes
	Deposit       money         `json:"deposit"`
	Paid          money         `json:"paid"`
	Refunded      *money        `json:"refunded,omitempty"`
	Credited      *money        `json:"credited,omitempty"` // by credit notes of its invoices
	Due           money         `json:"due"`
	Disputed      bool          `json:"disputed,omitempty"`
	HoldExpiresAt *moment       `json:"hold_expires_at,omitempty"`
	CancelReason  string        `json:"cancel_reason,omitempty"`
	RefundDue     *money        `json:"refund_due,omitempty"` // by the policy, after a cancellation
	QuoteID       string        `json:"quote_id,omitempty"`
	InvoiceIDs    []string      `json:"invoice_ids,omitempty"`
	Version       int64         `json:"version"`
	CreatedAt     *moment       `json:"created_at"`
}

// booking returns a booking with texts of at most length characters.
func (v view) booking(b holdfast.Booking, length int) bookingView {
	r := bookingView{
		ID: b.ID, Number: b.Number, Status: string(b.Status), PaymentStatus: string(b.PaymentStatus), Date: b.EventLocalDate,
		StartsAt: v.at(b.StartsAt), EndsAt: v.at(b.EndsAt), WholeDay: b.EventStartTime == nil,
		CustomerID: value(b.CustomerID), UnitID: value(b.UnitID), ServiceID: value(b.ServiceID), PackageID: value(b.PackageID),
		EventType: cut(value(b.EventType), lineText), GuestCount: value(b.GuestCount), Notes: cut(value(b.Notes), length),
		Total: amount(b.TotalAmount), Gross: amount(b.GrossAmount), Deposit: amount(b.DepositAmount), Paid: amount(b.AmountPaid), Due: amount(b.AmountDue),
		Refunded: nonZero(b.AmountRefunded), Credited: nonZero(b.AmountCredited), Disputed: b.Disputed, HoldExpiresAt: v.at(b.HoldExpiresAt), QuoteID: value(b.QuoteID), InvoiceIDs: first(b.InvoiceIDs),
		Version: b.Version, CreatedAt: v.at(&b.CreatedAt),
	}
	if r.WholeDay {
		r.StartsAt, r.EndsAt = nil, nil
	}
	if b.Customer != nil {
		c := v.customer(*b.Customer)
		r.Customer, r.CustomerID = &c, ""
	}
	if b.PackageSnapshot != nil {
		r.Package = cut(b.PackageSnapshot.Name, shortText)
	}
	if b.Cancellation != nil {
		r.CancelReason = cut(value(b.Cancellation.Reason), length)
		if due := b.Cancellation.RefundAmountDue; due != nil {
			r.RefundDue = &money{due.Amount, due.Currency}
		}
	}
	return r
}

// nonZero returns an amount, or nil if it is 0.
func nonZero(m holdfast.Money) *money {
	if m.Amount == 0 {
		return nil
	}
	return &money{m.Amount, m.Currency}
}

// maxIDs is the number of related IDs of an object.
const maxIDs = 20

// first returns the first related IDs.
func first(ids []string) []string { return ids[:min(len(ids), maxIDs)] }

// withCustomer returns what to expand: the customer, if the credential can read customers.
func (t *toolbox) withCustomer() []holdfast.ExpandableResource {
	if t.can("read:customers") {
		return []holdfast.ExpandableResource{holdfast.ExpandableResourceCustomer}
	}
	return nil
}

// bookingFilter are the arguments of list_bookings.
type bookingFilter struct {
	Status        string `json:"status,omitempty" enum:"pending,confirmed,expired,cancelled,canceled,completed,no_show"`
	PaymentStatus string `json:"payment_status,omitempty" enum:"unpaid,deposit_paid,partially_paid,paid,overpaid,partially_refunded,refunded,credited"`
	From          string `json:"date_from,omitempty" jsonschema:"first day, YYYY-MM-DD"`
	To            string `json:"date_to,omitempty" jsonschema:"last day"`
	Customer      string `json:"customer_id,omitempty"`
	Unit          string `json:"unit_id,omitempty"`
	Service       string `json:"service_id,omitempty"`
	paging
}

func (t *toolbox) listBookings(ctx context.Context, in bookingFilter) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	params := holdfast.BookingsListParams{
		Cursor: in.Cursor, EventDateFrom: in.From, EventDateTo: in.To, CustomerID: in.Customer, UnitID: in.Unit, ServiceID: in.Service,
		Status: one[holdfast.BookingFilterStatus](in.Status), PaymentStatus: one[holdfast.PaymentStatus](in.PaymentStatus), Expand: t.withCustomer(),
	}
	return rows(v, in.paging, func(limit int) (*holdfast.Page[holdfast.Booking], error) {
		params.Limit = limit
		return t.client.Bookings.ListPage(ctx, params)
	}, func(b holdfast.Booking) bookingView { return v.booking(b, shortText) })
}

// one returns a filter with one value, or none.
func one[T ~string](value string) []T {
	if value == "" {
		return nil
	}
	return []T{T(value)}
}

// hold are the arguments of hold_slot.
type hold struct {
	Date     string `json:"date" jsonschema:"YYYY-MM-DD"`
	Start    string `json:"start_time,omitempty" jsonschema:"HH:MM; leave out for a whole day"`
	End      string `json:"end_time,omitempty" jsonschema:"default: by the duration of the package or service"`
	Unit     string `json:"unit_id"`
	Package  string `json:"package_id,omitempty" jsonschema:"sets the price"`
	Service  string `json:"service_id,omitempty"`
	Customer string `json:"customer_id,omitempty"`
	Guests   int    `json:"guest_count,omitempty" min:"1" max:"2147483647"`
	Event    string `json:"event_type,omitempty" max:"100"`
	Notes    string `json:"notes,omitempty" max:"5000"`
	Minutes  int    `json:"hold_minutes,omitempty" jsonschema:"default 30" min:"1" max:"43200"`
	repeatable
}

// defaultHold is how many minutes a slot is held unless the client asks for another time.
const defaultHold = 30

func (t *toolbox) holdSlot(ctx context.Context, in hold, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	minutes := in.Minutes
	if minutes == 0 {
		minutes = defaultHold
	}
	body := holdfast.BookingCreate{
		EventDate: &in.Date, EventStartTime: optional(in.Start), EventEndTime: optional(in.End), UnitID: optional(in.Unit), PackageID: optional(in.Package),
		ServiceID: optional(in.Service), CustomerID: optional(in.Customer), GuestCount: optional(in.Guests), EventType: optional(in.Event), Notes: optional(in.Notes),
		Status: holdfast.Ptr(holdfast.BookingCreateStatusPending), HoldMinutes: holdfast.Set(minutes),
	}
	b, err := t.client.Bookings.Create(ctx, body, options...)
	if err != nil {
		return nil, t.taken(ctx, err, slotRequest{date: in.Date, start: in.Start, unit: in.Unit, service: in.Service, packageID: in.Package})
	}
	return v.one(v.booking(*b, longText)), nil
}

// step are the arguments of a tool that changes a booking.
type step struct {
	Booking string `json:"booking_id"`
	versioned
	repeatable
}

// versioned is the version that an object must have.
type versioned struct {
	Version int `json:"version,omitempty" jsonschema:"fail if the object has another version" min:"1" max:"9007199254740991"`
}

// options adds the condition to the options of a write.
func (c versioned) options(all []holdfast.Option) []holdfast.Option {
	if c.Version == 0 {
		return all
	}
	return append(all, holdfast.WithIfMatch(int64(c.Version)))
}

func (t *toolbox) confirmBooking(ctx context.Context, in step, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	body := holdfast.BookingUpdate{Status: holdfast.Ptr(holdfast.BookingUpdateStatusConfirmed)}
	b, err := t.client.Bookings.Update(ctx, in.Booking, body, in.options(options)...)
	if err != nil {
		return nil, err
	}
	return v.one(v.booking(*b, longText)), nil
}

// cancel are the arguments of cancel_booking.
type cancel struct {
	step
	Reason string `json:"reason,omitempty" max:"5000"`
}

func (t *toolbox) cancelBooking(ctx context.Context, in cancel, options ...holdfast.Option) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	b, err := t.client.Bookings.Cancel(ctx, in.Booking, holdfast.BookingCancel{Reason: optional(in.Reason)}, in.options(options)...)
	if err != nil {
		return nil, err
	}
	return v.one(v.booking(*b, longText)), nil
}

// move are the arguments of move_booking.
type move struct {
	step
	Date  string `json:"date,omitempty" jsonschema:"YYYY-MM-DD"`
	Start string `json:"start_time,omitempty" jsonschema:"HH:MM"`
	End   string `json:"end_time,omitempty" jsonschema:"default: the booking keeps its length"`
	Unit  string `json:"unit_id,omitempty"`
}

func (t *toolbox) moveBooking(ctx context.Context, in move, options ...holdfast.Option) (any, error) {
	if in.Date == "" && in.Start == "" && in.Unit == "" {
		return nil, invalid("date", "is required, unless you give start_time or unit_id")
	}
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	body := holdfast.BookingUpdate{EventStartTime: optional(in.Start), EventEndTime: optional(in.End), UnitID: optional(in.Unit)}
	if in.Date != "" {
		body.EventDate = &in.Date
	}
	b, err := t.client.Bookings.Update(ctx, in.Booking, body, in.options(options)...)
	if errors.Is(err, holdfast.ErrSlotUnavailable) {
		return nil, t.blocked(ctx, err, in)
	}
	if err != nil {
		return nil, err
	}
	return v.one(v.booking(*b, longText)), nil
}

// blocked returns the error of a move, with the free slots of its day if the unit is taken.
func (t *toolbox) blocked(ctx context.Context, err error, in move) error {
	b, failed := t.client.Bookings.Get(ctx, in.Booking, holdfast.BookingsGetParams{})
	if failed != nil {
		return err
	}
	return t.taken(ctx, err, slotRequest{
		date: or(in.Date, b.EventLocalDate), start: or(in.Start, value(b.EventStartTime)), unit: or(in.Unit, value(b.UnitID)),
		service: value(b.ServiceID), packageID: value(b.PackageID),
	})
}
