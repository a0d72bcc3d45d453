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

// QuoteInput contains the fields of a create or an update, ids and times as sent. An absent field stays unchanged.
type QuoteInput struct {
	PriceInput

	CustomerID patch.Field[string]
	LeadID     patch.Field[string]
	ServiceID  patch.Field[string]
	UnitID     patch.Field[string]
	PackageID  patch.Field[string]
	EventDate  patch.Field[string]
	Start, End patch.Field[string]
	Guests     patch.Field[int]
	Deposit    patch.Field[money.Amount]
	ExpiresAt  patch.Field[string]
	Notes      patch.Field[string]
	Terms      patch.Field[string]
	Metadata   patch.Field[json.RawMessage]
}

// QuoteRefs is the result of looking up what an input names.
type QuoteRefs struct {
	Customer, Lead bool          // whether the row exists
	Catalogue      error         // 422s on ids that are not in the catalogue
	Price          *PackagePrice // of the package on the day; nil: not requested
	Defaults       TaxDefaults
}

// Priced reports whether the package's price determines the line of a new quote.
func (in QuoteInput) Priced() bool {
	return in.Lines.Pointer() == nil && in.PackageID.Pointer() != nil && in.EventDate.Pointer() != nil
}

// GuestCount returns the number of guests that the input names, or 1.
func (in QuoteInput) GuestCount() int {
	if n := in.Guests.Pointer(); n != nil {
		return *n
	}
	return 1
}

// NeedsDefaults reports whether a new quote depends on the defaults for its taxes.
func (in QuoteInput) NeedsDefaults() bool {
	return !in.Behavior.Given() || in.Untaxed() || in.Priced()
}

// Sold returns the service and the package of the quote after an input. A malformed id is zero.
func (q Quote) Sold(in QuoteInput) (ServiceID, PackageID) {
	return linked(q.ServiceID, in.ServiceID), linked(q.PackageID, in.PackageID)
}

// NewQuote drafts a quote from an input. It is in the currency of its package if the package determines the line, like a booking of it.
func NewQuote(in QuoteInput, refs QuoteRefs, blank Quote, now time.Time) (Quote, error) {
	q := blank
	if refs.Price != nil {
		q.Deposit = money.Amount{Currency: refs.Price.Total.Currency}
		q.Totals = Sum(nil, NoTerms(q.Deposit.Currency), nil)
	}
	q.Status, q.Version, q.Behavior, q.Guests = QuoteDraft, 1, refs.Defaults.Behavior, in.GuestCount()
	var prices error
	switch {
	case in.Lines.Pointer() != nil:
	case refs.Price != nil:
		q.Lines = []Line{packageLine(refs.Price.Name, refs.Price.Total.Minor, refs.Price.Guests, refs.Defaults.Taxes)}
	case in.PackageID.Pointer() == nil:
		prices = apperr.Field("line_items", "Requires line_items or package_id.")
	case in.EventDate.Pointer() == nil:
		prices = apperr.Field("event_date", "Is required with package_id if there are no line_items.")
	}
	if prices == nil {
		prices = q.setPrice(in, refs)
	}
	if in.Lines.Pointer() == nil && refs.Price != nil && in.Deposit.Pointer() == nil {
		deposit := refs.Price.Deposit
		if prices == nil {
			deposit.Minor = min(deposit.Minor, q.Total.Minor) // a discount can make the quote cheaper than the package
		}
		in.Deposit = patch.Value(deposit)
	}
	return q.apply(in, refs, now, prices)
}

// Change applies an input to the quote, as far as its state allows.
func (q Quote) Change(in QuoteInput, refs QuoteRefs, now time.Time) (Quote, error) {
	if q.Status != QuoteDraft {
		if err := in.frozen(q.Status); err != nil {
			return Quote{}, err
		}
	}
	var prices error
	if in.Reprices() {
		prices = q.setPrice(in, refs)
	}
	return q.apply(in, refs, now, prices)
}

// setPrice sets the lines and the totals.
func (q *Quote) setPrice(in QuoteInput, refs QuoteRefs) error {
	lines, totals, err := in.price(q.Lines, q.PriceTerms, q.Total.Currency, refs.Defaults.Taxes)
	if err != nil {
		return err
	}
	q.Lines, q.Totals = lines, totals
	return nil
}

// apply sets the fields of an input other than the price. It reports every failed field, in the contract's order; prices is the error
// on the price.
func (q Quote) apply(in QuoteInput, refs QuoteRefs, now time.Time, prices error) (Quote, error) {
	links := q.link(in, refs)
	when := q.schedule(in)
	if in.Guests.Given() {
		q.Guests = in.GuestCount()
	}
	deposit := q.putDeposit(in, prices == nil)
	expiry := q.expire(in, now)
	in.Notes.SetNullable(&q.Notes)
	in.Terms.SetNullable(&q.Terms)
	patch.SetMetadata(in.Metadata, &q.Metadata)
	return q, apperr.Join(links, when, prices, deposit, expiry)
}

// link sets the ids. It does not check an unchanged id again, because the resource may have been erased or retired in the meantime.
func (q *Quote) link(in QuoteInput, refs QuoteRefs) error {
	var customer, lead error
	if changes(in.CustomerID, q.CustomerID) && !refs.Customer {
		customer = apperr.Field("customer_id", "Customer not found.")
	}
	if changes(in.LeadID, q.LeadID) && !refs.Lead {
		lead = apperr.Field("lead_id", "Lead not found.")
	}
	q.CustomerID = linked(q.CustomerID, in.CustomerID)
	q.LeadID = linked(q.LeadID, in.LeadID)
	q.ServiceID = linked(q.ServiceID, in.ServiceID)
	q.UnitID = linked(q.UnitID, in.UnitID)
	q.PackageID = linked(q.PackageID, in.PackageID)
	return apperr.Join(customer, lead, refs.Catalogue)
}

// changes reports whether a field contains another id than the current one.
func changes[P ids.Prefix](f patch.Field[string], now ids.ID[P]) bool {
	text := f.Pointer()
	return text != nil && *text != now.String()
}

// linked returns the id after the change. It returns zero for a malformed one, which was refused before.
func linked[P ids.Prefix](now ids.ID[P], f patch.Field[string]) ids.ID[P] {
	if !f.Given() {
		return now
	}
	var id ids.ID[P]
	if text := f.Pointer(); text != nil {
		_ = id.UnmarshalText([]byte(*text))
	}
	return id
}

// schedule sets day and times. They only need to exist; bookings checks whether the unit is open and free.
func (q *Quote) schedule(in QuoteInput) error {
	if !in.EventDate.Given() && !in.Start.Given() && !in.End.Given() {
		return nil
	}
	if text := in.EventDate.Pointer(); text != nil {
		day, at, err := civil.ParseDay(*text, q.Loc)
		if err != nil {
			return apperr.Field("event_date", "%s", err)
		}
		q.Day, q.EventAt = &day, at
	} else if in.EventDate.Given() {
		q.Day, q.EventAt = nil, nil
	}
	clock(in.Start, &q.Start)
	clock(in.End, &q.End)
	return q.times(q.Loc)
}

// clock sets a time of day, whose form the contract has checked.
func clock(f patch.Field[string], to **civil.Clock) {
	if text := f.Pointer(); text != nil {
		*to = new(civil.Clock(*text))
	} else if f.Given() {
		*to = nil
	}
}

// times returns the error of times that contradict each other, or do not exist on their day.
func (e QuoteEvent) times(loc *time.Location) error {
	switch {
	case e.Start == nil && e.End != nil:
		return apperr.Field("event_end_time", "Requires event_start_time.")
	case e.Start == nil:
		return nil
	case e.Day == nil:
		return apperr.Field("event_date", "Is required with event_start_time.")
	}
	from, ok := e.Day.At(*e.Start, loc)
	if !ok {
		return apperr.Field("event_start_time", "%s", civil.ErrNoSuchTime)
	}
	if e.End == nil {
		return nil
	}
	last := *e.Day
	if *e.End <= *e.Start {
		last = last.AddDays(1)
	}
	to, ok := last.At(*e.End, loc)
	if !ok {
		return apperr.Field("event_end_time", "%s", civil.ErrNoSuchTime)
	}
	if !to.After(from) {
		return apperr.Field("event_end_time", "Must be after event_start_time.")
	}
	return nil
}

// putDeposit sets the deposit, and checks it against the total if the total is known.
func (q *Quote) putDeposit(in QuoteInput, summed bool) error {
	if in.Deposit.Given() {
		q.Deposit = money.Amount{Currency: q.Total.Currency}
	}
	if given := in.Deposit.Pointer(); given != nil {
		if err := sameCurrency("deposit_amount.currency", *given, q.Total.Currency); err != nil {
			return err
		}
		var err error
		if q.Deposit, err = given.Rounded(); err != nil {
			return err
		}
	}
	if summed && q.Deposit.Minor > q.Total.Minor {
		return apperr.Field("deposit_amount", "Must be at most the total of %s.", q.Total)
	}
	return nil
}

func sameCurrency(field string, a money.Amount, currency string) error {
	if a.Currency == currency {
		return nil
	}
	return apperr.Field(field, "Must be in %s, the currency of the document.", currency)
}

// expire sets the time at which the quote expires.
func (q *Quote) expire(in QuoteInput, now time.Time) error {
	text := in.ExpiresAt.Pointer()
	if text == nil {
		if in.ExpiresAt.Given() {
			q.ExpiresAt = nil
		}
		return nil
	}
	at, err := civil.ParseInstant(*text, q.Loc)
	if err != nil {
		return apperr.Field("expires_at", "%s", err)
	}
	if !at.After(now) {
		return apperr.Field("expires_at", "Must be in the future.")
	}
	q.ExpiresAt = &at
	return nil
}

// frozen returns the error on the fields that only a draft accepts.
func (in QuoteInput) frozen(status QuoteStatus) error {
	var failed []apperr.FieldError
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"customer_id", in.CustomerID.Given()},
		{"lead_id", in.LeadID.Given()},
		{"service_id", in.ServiceID.Given()},
		{"unit_id", in.UnitID.Given()},
		{"package_id", in.PackageID.Given()},
		{"event_date", in.EventDate.Given()},
		{"event_start_time", in.Start.Given()},
		{"event_end_time", in.End.Given()},
		{"guest_count", in.Guests.Given()},
		{"line_items", in.Lines.Given()},
		{"tax_behavior", in.Behavior.Given()},
		{"discount_amount_total", in.DiscountTotal.Given()},
		{"deposit_amount", in.Deposit.Given()},
		{"expires_at", in.ExpiresAt.Given()},
		{"terms", in.Terms.Given()},
	} {
		if f.is {
			failed = append(failed, apperr.FieldError{
				Field: f.name, Message: "Cannot be changed on a quote that is " + string(status) + "; only notes and metadata can.",
			})
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return apperr.Fields(failed)
}
