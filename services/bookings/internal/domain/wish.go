package domain

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"holdfast.dev/libs/apperr"
)

// Change is one field of a request: absent (zero), cleared (Given, no Value), or a value.
type Change[T any] struct {
	Given bool
	Value *T
}

// Wish is what a client asks of a new or an existing booking. Ids and times are as sent.
type Wish struct {
	EventDate   *string
	Start, End  Change[string]
	StartsAt    Change[string]
	EndsAt      Change[string]
	EventType   Change[string]
	Status      *Status
	HoldMinutes *int
	CustomerID  Change[string]
	ServiceID   Change[string]
	UnitID      Change[string]
	PackageID   Change[string]
	GuestCount  Change[int]
	Notes       Change[string]
	Metadata    Change[json.RawMessage]
}

// MovesTime reports whether the wish names a day or a time.
func (w Wish) MovesTime() bool {
	return w.EventDate != nil || w.Start.Given || w.End.Given || w.StartsAt.Given || w.EndsAt.Given
}

// Rewires reports whether the wish touches time, links, guests or price: what is frozen in a final state and
// needs the catalogue to be judged.
func (w Wish) Rewires() bool {
	return w.MovesTime() || w.CustomerID.Given || w.ServiceID.Given || w.UnitID.Given || w.PackageID.Given || w.GuestCount.Given
}

// When is the parsed time of a wish.
type When struct {
	Day        *Date
	At         *time.Time // of the day; nil: given as a bare date
	Start, End Change[Clock]
	From, To   *time.Time
}

// When parses the times of a wish about a booking in loc. Every failed field is reported, in the contract's order.
func (w Wish) When(loc *time.Location) (When, error) {
	var when When
	var failed []apperr.FieldError
	fail := func(name string, err error) {
		failed = append(failed, apperr.FieldError{Field: name, Message: err.Error()})
	}
	if w.EventDate != nil {
		d, at, err := ParseDay(*w.EventDate, loc)
		when.Day, when.At = &d, at
		if err != nil {
			fail("event_date", err)
		}
	}
	when.Start = clock(w.Start, "event_start_time", fail)
	when.End = clock(w.End, "event_end_time", fail)
	when.From = instant(w.StartsAt, loc, "starts_at", fail)
	when.To = instant(w.EndsAt, loc, "ends_at", fail)
	if len(failed) > 0 {
		return When{}, apperr.Fields(failed)
	}
	return when, nil
}

var errClock = errors.New("Must be a time of day, HH:MM.") //nolint:staticcheck,revive // shown as it stands

func clock(c Change[string], name string, fail func(string, error)) Change[Clock] {
	if c.Value == nil {
		return Change[Clock]{Given: c.Given}
	}
	v, ok := ParseClock(*c.Value)
	if !ok {
		fail(name, errClock)
	}
	return Change[Clock]{Given: true, Value: &v}
}

func instant(c Change[string], loc *time.Location, name string, fail func(string, error)) *time.Time {
	if c.Value == nil {
		return nil
	}
	t, err := ParseInstant(*c.Value, loc)
	if err != nil {
		fail(name, err)
	}
	return &t
}

// frozen returns the error on the first field that a final booking no longer takes.
func (w Wish) frozen(status Status) error {
	given := []struct {
		name string
		is   bool
	}{
		{"event_date", w.EventDate != nil},
		{"event_start_time", w.Start.Given},
		{"event_end_time", w.End.Given},
		{"event_type", w.EventType.Given},
		{"customer_id", w.CustomerID.Given},
		{"service_id", w.ServiceID.Given},
		{"unit_id", w.UnitID.Given},
		{"package_id", w.PackageID.Given},
		{"guest_count", w.GuestCount.Given},
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
