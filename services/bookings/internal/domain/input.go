package domain

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
	"holdfast.dev/libs/patch"
)

// BookingInput is the client's input for a new or an existing booking. An absent field stays unchanged. Ids and times are unparsed.
type BookingInput struct {
	EventDate   patch.Field[string]
	Start, End  patch.Field[string]
	StartsAt    patch.Field[string]
	EndsAt      patch.Field[string]
	EventType   patch.Field[string]
	Status      patch.Field[Status]
	HoldMinutes patch.Field[int]
	CustomerID  patch.Field[string]
	ServiceID   patch.Field[string]
	UnitID      patch.Field[string]
	PackageID   patch.Field[string]
	GuestCount  patch.Field[int]
	Exclusive   bool // only of a new booking
	Notes       patch.Field[string]
	Metadata    patch.Field[json.RawMessage]
}

// HasTime reports whether a day or a time is given.
func (in BookingInput) HasTime() bool {
	return in.EventDate.Given() || in.Start.Given() || in.End.Given() || in.StartsAt.Given() || in.EndsAt.Given()
}

// HasSchedule reports whether time, links, or guests are given. A final state freezes them, and they are validated against the
// catalogue.
func (in BookingInput) HasSchedule() bool {
	return in.HasTime() || in.CustomerID.Given() || in.ServiceID.Given() || in.UnitID.Given() || in.PackageID.Given() || in.GuestCount.Given()
}

// needsDuration reports whether the end of the booking follows from a duration: a booking without times gets only a start, or the end
// of a timed booking is cleared.
func (in BookingInput) needsDuration(timed bool) bool {
	start := in.Start.Pointer() != nil || in.StartsAt.Pointer() != nil
	end := in.End.Pointer() != nil || in.EndsAt.Pointer() != nil
	if timed {
		return (start || !in.Start.Given()) && !end && (in.End.Given() || in.EndsAt.Given())
	}
	return start && !end
}

// When is the parsed time of an input.
type When struct {
	Day        *civil.Date
	At         *time.Time // instant given for the day; nil: given as a bare date
	Start, End patch.Field[civil.Clock]
	From, To   patch.Field[time.Time]
}

// When parses the times of an input about a booking in loc. It reports every failed field, in the contract's order.
func (in BookingInput) When(loc *time.Location) (When, error) {
	var when When
	var failed []apperr.FieldError
	fail := func(name string, err error) {
		failed = append(failed, apperr.FieldError{Field: name, Message: err.Error()})
	}
	if text := in.EventDate.Pointer(); text != nil {
		d, at, err := civil.ParseDay(*text, loc)
		when.Day, when.At = &d, at
		if err != nil {
			fail("event_date", err)
		}
	}
	when.Start = clock(in.Start, "event_start_time", fail)
	when.End = clock(in.End, "event_end_time", fail)
	when.From = instant(in.StartsAt, loc, "starts_at", fail)
	when.To = instant(in.EndsAt, loc, "ends_at", fail)
	if len(failed) > 0 {
		return When{}, apperr.Fields(failed)
	}
	return when, nil
}

var errClock = errors.New("Must be a time of day in the format HH:MM.") //nolint:staticcheck // shown as it stands

func clock(f patch.Field[string], name string, fail func(string, error)) patch.Field[civil.Clock] {
	text := f.Pointer()
	switch {
	case text != nil:
	case f.Given():
		return patch.Null[civil.Clock]()
	default:
		return patch.Field[civil.Clock]{}
	}
	v, ok := civil.ParseClock(*text)
	if !ok {
		fail(name, errClock)
	}
	return patch.Value(v)
}

func instant(f patch.Field[string], loc *time.Location, name string, fail func(string, error)) patch.Field[time.Time] {
	text := f.Pointer()
	switch {
	case text != nil:
	case f.Given():
		return patch.Null[time.Time]()
	default:
		return patch.Field[time.Time]{}
	}
	t, err := civil.ParseInstant(*text, loc)
	if err != nil {
		fail(name, err)
	}
	return patch.Value(t)
}

// frozen returns the error on the first field that a final booking does not accept.
func (in BookingInput) frozen(status Status) error {
	given := []struct {
		name string
		is   bool
	}{
		{"event_date", in.EventDate.Given()},
		{"event_start_time", in.Start.Given()},
		{"event_end_time", in.End.Given()},
		{"starts_at", in.StartsAt.Given()},
		{"ends_at", in.EndsAt.Given()},
		{"event_type", in.EventType.Given()},
		{"customer_id", in.CustomerID.Given()},
		{"service_id", in.ServiceID.Given()},
		{"unit_id", in.UnitID.Given()},
		{"package_id", in.PackageID.Given()},
		{"guest_count", in.GuestCount.Given()},
	}
	var failed []apperr.FieldError
	for _, f := range given {
		if f.is {
			failed = append(failed, apperr.FieldError{
				Field: f.name, Message: "Cannot be changed on a booking that is " + string(status) + "; only notes and metadata can.",
			})
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return apperr.Fields(failed)
}

// inOrder sorts failures into the contract's property order.
func inOrder(failed []apperr.FieldError) error {
	if len(failed) == 0 {
		return nil
	}
	order := []string{"customer_id", "service_id", "unit_id", "package_id", "guest_count"}
	slices.SortStableFunc(failed, func(a, b apperr.FieldError) int {
		return slices.Index(order, a.Field) - slices.Index(order, b.Field)
	})
	return apperr.Fields(failed)
}

// ErrLinked reports that the quote or the lead got a booking in the meantime.
var ErrLinked = errors.New("the quote or the lead has a booking already")

// Origin is the quote or the lead for which a booking is created. It never changes. The zero Origin is neither.
type Origin struct {
	Quote          QuoteID        // zero: for the lead
	Lead           LeadID         // for a quote: the lead of the quote
	Total, Deposit *int64         // of the quote, in the smallest unit of Currency
	Taxes          []money.TaxRow // in the total
	Currency       string         // of the quote; "": the operator's
}

// LinkedInput is a booking to create for a quote or a lead.
type LinkedInput struct {
	BookingInput
	Origin
	ValidUntil time.Time // real time; nothing is created after it
}

// Check returns the 422 for an origin that names neither quote nor lead, or for amounts that a quote cannot have.
func (o Origin) Check() error {
	var failed []apperr.FieldError
	fail := func(bad bool, name, message string) {
		if bad {
			failed = append(failed, apperr.FieldError{Field: name, Message: message})
		}
	}
	if o.Quote.IsZero() {
		fail(o.Lead.IsZero(), "quote_id", "Is required without lead_id.")
		fail(o.Total != nil, "total_amount", "Is allowed only with quote_id.")
		fail(o.Deposit != nil, "deposit_amount", "Is allowed only with quote_id.")
		fail(o.Taxes != nil, "tax_breakdown", "Is allowed only with quote_id.")
	} else {
		fail(o.Total == nil || *o.Total < 0 || *o.Total > MaxAmount, "total_amount", "Must be 0 to 99999999999.")
		fail(o.Deposit == nil || *o.Deposit < 0 || o.Total != nil && *o.Deposit > *o.Total, "deposit_amount", "Must be 0 to total_amount.")
	}
	if len(failed) > 0 {
		return apperr.Fields(failed)
	}
	return nil
}

// input removes what the booking of a quote cannot request, its first state and its hold, so that the policy determines them.
func (o Origin) input(in BookingInput) BookingInput {
	if !o.Quote.IsZero() {
		in.Status, in.HoldMinutes = BookingInput{}.Status, BookingInput{}.HoldMinutes
	}
	return in
}
