package domain

import (
	"encoding/json"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// InvoiceInput holds the fields of a create or an update, ids and times as sent. An absent field stays unchanged.
type InvoiceInput struct {
	PriceInput

	CustomerID     patch.Field[string] // never null
	BookingID      patch.Field[string]
	Kind           patch.Field[InvoiceKind] // never null
	DueAt          patch.Field[string]
	BillingAddress patch.Field[string]
	Notes          patch.Field[string]
	Metadata       patch.Field[json.RawMessage]
}

// InvoiceRefs contains the rows that an input names. It is nil where the caller has no such row, or the input names none.
type InvoiceRefs struct {
	Customer *Customer // of a create without customer_id: that of the booking
	Booking  *Booking
	Balance  Balance // for a balance without lines
	Defaults TaxDefaults
	Wording  Wording // of a balance without lines
}

// Named returns the ids of an input, zero for an absent or a malformed one.
func (in InvoiceInput) Named() (CustomerID, BookingID) {
	return named[ids.CustomerPrefix](in.CustomerID), named[ids.BookingPrefix](in.BookingID)
}

func named[P ids.Prefix](f patch.Field[string]) ids.ID[P] {
	text := f.Pointer()
	if text == nil {
		return ids.ID[P]{}
	}
	id, err := ids.Parse[P](*text)
	if err != nil {
		return ids.ID[P]{}
	}
	return id
}

// MakesBalance reports whether an input requests the line for the part of the booking that its other invoices do not cover.
func (in InvoiceInput) MakesBalance() bool {
	kind := in.Kind.Pointer()
	return kind != nil && *kind == BalanceInvoice && in.BookingID.Pointer() != nil && !in.Lines.Given()
}

// NeedsDefaults reports whether a new invoice depends on the defaults for its taxes.
func (in InvoiceInput) NeedsDefaults() bool { return !in.Behavior.Given() || in.Untaxed() }

// NewInvoice drafts an invoice in the currency of its booking or, without one, of the operator. Every failed field is reported, in the
// contract's order.
func NewInvoice(id InvoiceID, in InvoiceInput, refs InvoiceRefs, at DocumentContext) (Invoice, error) {
	if refs.Booking != nil {
		at.Currency = refs.Booking.Total.Currency
	}
	v := Invoice{ID: id, Status: InvoiceDraft, Kind: FullInvoice, Paid: money.Amount{Currency: at.Currency}, Version: 1}
	v.PriceTerms = PriceTerms{Behavior: refs.Defaults.Behavior, DiscountTotal: v.Paid}
	in.Kind.Set(&v.Kind)
	customer := v.setCustomer(refs.Customer)
	if customer != nil && !in.CustomerID.Given() {
		customer = ErrNoCustomer(in.BookingID.Pointer() != nil, refs.Booking)
	}
	booking := v.setBooking(in, refs)
	if err := apperr.Join(customer, booking, v.setFirstLines(in, refs, booking == nil, at), v.setDue(in, at.Zone)); err != nil {
		return Invoice{}, err
	}
	v.write(in)
	return v.At(at), nil
}

// ErrNoCustomer returns the error of a create without customer_id whose booking has no customer either.
func ErrNoCustomer(named bool, b *Booking) error {
	switch {
	case named && b == nil:
		return nil // the booking is the failed field
	case named:
		return apperr.Field("customer_id", "Is required because the booking has no customer or its customer was erased.")
	default:
		return apperr.Field("customer_id", "Is required without booking_id.")
	}
}

func (v *Invoice) setCustomer(c *Customer) error {
	if c == nil {
		return apperr.Field("customer_id", "Customer not found.")
	}
	v.CustomerID = c.ID
	return nil
}

// setBooking links the booking that the input names, or none.
func (v *Invoice) setBooking(in InvoiceInput, refs InvoiceRefs) error {
	switch {
	case !in.BookingID.Given():
		return nil
	case in.BookingID.Pointer() == nil:
		v.BookingID, v.BookingStatus = BookingID{}, nil
		return nil
	case refs.Booking == nil:
		return apperr.Field("booking_id", "Booking not found.")
	case refs.Booking.Total.Currency != v.Total.Currency && !in.Lines.Given() && v.Lines != nil:
		return apperr.Field("booking_id", "The booking is in %s and the invoice in %s. Send line_items in %s.", refs.Booking.Total.Currency, v.Total.Currency, refs.Booking.Total.Currency)
	}
	v.BookingID, v.BookingStatus = refs.Booking.ID, &refs.Booking.Status
	return nil
}

// setFirstLines sets the lines of a new invoice: those of the input, or the line of a balance.
func (v *Invoice) setFirstLines(in InvoiceInput, refs InvoiceRefs, booked bool, at DocumentContext) error {
	switch {
	case in.Lines.Given():
		return v.setPrice(in, refs, at.Currency)
	case !in.MakesBalance():
		return apperr.Field("line_items", "Is required, except with the kind balance and a booking_id.")
	case !booked:
		return nil // the booking is the failed field
	}
	return v.setBalance(in, refs, at.Zone)
}

// setPrice sets the lines and the totals.
func (v *Invoice) setPrice(in InvoiceInput, refs InvoiceRefs, currency string) error {
	lines, totals, err := in.price(v.Lines, v.PriceTerms, currency, refs.Defaults.Taxes)
	if err != nil {
		return err
	}
	v.Lines, v.Totals, v.Paid, v.Parts = lines, totals, money.Amount{Currency: currency}, nil
	return nil
}

func (v *Invoice) setDue(in InvoiceInput, zone *time.Location) error {
	if !in.DueAt.Given() {
		return nil
	}
	v.DueAt = nil
	text := in.DueAt.Pointer()
	if text == nil {
		return nil
	}
	at, err := civil.ParseInstant(*text, zone)
	if err != nil {
		return apperr.Field("due_at", "%s", err)
	}
	v.DueAt = &at
	return nil
}

// write sets the fields that need no check.
func (v *Invoice) write(in InvoiceInput) {
	in.BillingAddress.SetNullable(&v.BillingAddress)
	in.Notes.SetNullable(&v.Notes)
	patch.SetMetadata(in.Metadata, &v.Metadata)
}

// Change returns the invoice with the given fields. After the invoice is opened, only due_at, notes and metadata can be changed.
// The error on another field comes after match, which reports whether the version is the expected one.
func (v Invoice) Change(in InvoiceInput, refs InvoiceRefs, at DocumentContext, match patch.Precondition) (Invoice, error) {
	var failed error
	if v.Status == InvoiceDraft {
		failed = v.redraft(in, refs, at)
	}
	if err := apperr.Join(failed, v.setDue(in, at.Zone)); err != nil {
		return Invoice{}, err
	}
	if err := match.Check(v.Version); err != nil {
		return Invoice{}, err
	}
	if v.Status != InvoiceDraft {
		if err := in.frozen(v.Status); err != nil {
			return Invoice{}, err
		}
	}
	v.write(in)
	return v.At(at), nil
}

// redraft changes what only a draft can change.
func (v *Invoice) redraft(in InvoiceInput, refs InvoiceRefs, at DocumentContext) error {
	if err := v.staysBalance(in); err != nil {
		return err
	}
	var customer, lines error
	if in.CustomerID.Given() {
		customer = v.setCustomer(refs.Customer)
	}
	in.Kind.Set(&v.Kind)
	was := v.Total.Currency
	switch {
	case refs.Booking != nil:
		at.Currency = refs.Booking.Total.Currency
	case !in.BookingID.Given() && !v.BookingID.IsZero():
		at.Currency = was
	}
	switch {
	case in.Lines.Given():
		lines = v.setPrice(in, refs, at.Currency)
	case in.Reprices() && v.Parts != nil:
		lines = apperr.Field("line_items", "Is required to change the price of a balance whose lines the platform wrote.")
	case in.Reprices():
		lines = v.setPrice(in, refs, was)
	}
	return apperr.Join(customer, v.setBooking(in, refs), lines)
}

// staysBalance returns the error of an input that changes the kind or the booking of a balance.
func (v Invoice) staysBalance(in InvoiceInput) error {
	if v.Kind != BalanceInvoice {
		return nil
	}
	var kind, booking error
	if to := in.Kind.Pointer(); to != nil && *to != v.Kind {
		kind = apperr.Field("kind", "Cannot be changed on a balance. Create another invoice.")
	}
	if linked(v.BookingID, in.BookingID) != v.BookingID {
		booking = apperr.Field("booking_id", "Cannot be changed on a balance. Create another invoice.")
	}
	return apperr.Join(kind, booking)
}

// frozen returns the error on the fields that an opened invoice no longer accepts.
func (in InvoiceInput) frozen(status InvoiceStatus) error {
	var failed []apperr.FieldError
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"customer_id", in.CustomerID.Given()},
		{"booking_id", in.BookingID.Given()},
		{"kind", in.Kind.Given()},
		{"line_items", in.Lines.Given()},
		{"tax_behavior", in.Behavior.Given()},
		{"discount_amount_total", in.DiscountTotal.Given()},
		{"billing_address", in.BillingAddress.Given()},
	} {
		if f.given {
			failed = append(failed, apperr.FieldError{
				Field: f.name, Message: "Cannot be changed on an invoice that is " + string(status) + "; only due_at, notes and metadata can.",
			})
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return apperr.Fields(failed)
}
