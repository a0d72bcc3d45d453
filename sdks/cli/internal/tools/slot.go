package tools

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	holdfast "holdfast.dev/sdks/go"
)

// The bounds of availability.
const (
	maxSlots        = 200 // free slots of a result
	maxDays         = 31
	defaultDays     = 7
	maxAlternatives = 8 // free slots that an error offers
)

// freeSlots are the arguments of find_free_slots.
type freeSlots struct {
	From    string `json:"date_from" jsonschema:"first day, YYYY-MM-DD"`
	To      string `json:"date_to,omitempty" jsonschema:"last day; default 7 days in total, at most 31"`
	Service string `json:"service_id,omitempty"`
	Unit    string `json:"unit_id,omitempty"`
	Package string `json:"package_id,omitempty"`
}

// freeDay is a day with free slots.
type freeDay struct {
	Date      string     `json:"date"`
	Weekday   string     `json:"weekday"`
	Status    string     `json:"status"`
	PriceFrom *money     `json:"price_from,omitempty"` // if a slot is free
	Holiday   string     `json:"holiday,omitempty"`
	Units     []freeUnit `json:"units,omitempty"`
}

// freeUnit is a unit with the slots of a day that can be booked.
type freeUnit struct {
	UnitID string `json:"unit_id"`
	Name   string `json:"name"`
	Slots  []slot `json:"slots"`
}

// slot is a time at which a unit can be booked.
type slot struct {
	StartsAt moment `json:"starts_at"`
	EndsAt   moment `json:"ends_at"`
	WholeDay bool   `json:"whole_day,omitempty"`
}

// MarshalYAML writes the local times.
func (s slot) MarshalYAML() (any, error) {
	if s.WholeDay {
		return "whole day", nil
	}
	text := s.StartsAt.Format("15:04") + "-" + s.EndsAt.Format("15:04")
	if s.StartsAt.YearDay() != s.EndsAt.YearDay() {
		text += " (next day)"
	}
	return text, nil
}

// availability is the result of find_free_slots.
type availability struct {
	TimeZone string    `json:"time_zone"`
	Days     []freeDay `json:"days"`
	More     string    `json:"more,omitempty"`
}

func (t *toolbox) findFreeSlots(ctx context.Context, in freeSlots) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	first, err := time.Parse(time.DateOnly, in.From)
	if err != nil {
		return nil, invalid("date_from", "must be a date such as 2027-07-03")
	}
	last := first.AddDate(0, 0, defaultDays-1)
	if in.To != "" {
		if last, err = time.Parse(time.DateOnly, in.To); err != nil {
			return nil, invalid("date_to", "must be a date such as 2027-07-03")
		}
	}
	if last.Before(first) || last.After(first.AddDate(0, 0, maxDays-1)) {
		return nil, invalid("date_to", "must be between date_from and 30 days later")
	}
	days, err := t.client.Availability.List(ctx, holdfast.AvailabilityListParams{
		From: in.From, To: last.Format(time.DateOnly), ServiceID: in.Service, UnitID: in.Unit, PackageID: in.Package,
	})
	if err != nil {
		return nil, err
	}
	return v.freeThatFits(days.Data), nil
}

// freeThatFits returns the free slots of days that fit into a result.
func (v view) freeThatFits(days []holdfast.AvailabilityDay) availability {
	for limit := maxSlots; ; limit /= 2 {
		if result := v.free(days, limit); fits(result) || limit == 1 {
			return result
		}
	}
}

// free returns the free slots of days, at most limit of them. It leaves out whole days, or slots of the first day.
func (v view) free(days []holdfast.AvailabilityDay, limit int) availability {
	result := availability{TimeZone: v.name(), Days: []freeDay{}}
	left := limit
	for i, day := range days {
		d, more := v.freeDay(day, left)
		if more && i > 0 {
			result.More = "There are more days: repeat the call with date_from " + day.Date + "."
			return result
		}
		for _, unit := range d.Units {
			left -= len(unit.Slots)
		}
		result.Days = append(result.Days, d)
		if more {
			result.More = "There are more slots on this day: repeat the call with a unit_id or service_id. For later days, set date_from."
			return result
		}
	}
	return result
}

// freeDay returns at most limit free slots of a day, and whether there are more.
func (v view) freeDay(day holdfast.AvailabilityDay, limit int) (d freeDay, more bool) {
	d = freeDay{Date: day.Date, Weekday: weekday(day.Date), Status: string(day.Status)}
	if day.Holiday != nil {
		d.Holiday = cut(day.Holiday.Name, lineText)
	}
	for _, unit := range day.Units {
		slots := v.slots(unit.Slots)
		if len(slots) == 0 {
			continue
		}
		shown := slots[:min(len(slots), limit)]
		more = more || len(shown) < len(slots)
		limit -= len(shown)
		if len(shown) > 0 {
			d.Units = append(d.Units, freeUnit{UnitID: unit.UnitID, Name: cut(unit.Name, lineText), Slots: shown})
		}
	}
	if len(d.Units) > 0 && day.PriceFrom != nil {
		d.PriceFrom = &money{day.PriceFrom.Amount, day.PriceFrom.Currency}
	}
	return d, more
}

func weekday(date string) string {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return ""
	}
	return day.Format("Monday")
}

// slots returns the slots that can be booked.
func (v view) slots(all []holdfast.AvailabilitySlot) []slot {
	var free []slot
	for _, s := range all {
		if s.Status == holdfast.AvailabilitySlotStatusAvailable {
			free = append(free, v.slot(s))
		}
	}
	return free
}

func (v view) slot(s holdfast.AvailabilitySlot) slot {
	from, to := moment{s.StartsAt.In(v.zone)}, moment{s.EndsAt.In(v.zone)}
	wholeDay := from.Format("15:04") == "00:00" && to.Format("15:04") == "00:00" && to.Sub(from.Time) > 20*time.Hour
	return slot{StartsAt: from, EndsAt: to, WholeDay: wholeDay}
}

// slotRequest is a slot that someone asked for.
type slotRequest struct {
	date, start              string // start is "" for a whole day
	unit, service, packageID string
}

// alternatives are free slots near one that is not free.
type alternatives struct {
	TimeZone string        `json:"time_zone"`
	Slots    []alternative `json:"slots"`
	Note     string        `json:"note,omitempty"`
}

// alternative is a free slot.
type alternative struct {
	Date      string `json:"date"`
	StartTime string `json:"start_time"`
	EndTime   string `json:"end_time"`
	UnitID    string `json:"unit_id"`
	Unit      string `json:"unit"`
}

// slotTaken is the error of a slot that is not free, with free ones.
type slotTaken struct {
	error

	free *alternatives
}

// Unwrap returns the error of the API.
func (e *slotTaken) Unwrap() error { return e.error }

// taken adds free slots to an error that says that a slot is not free.
func (t *toolbox) taken(ctx context.Context, err error, w slotRequest) error {
	if !errors.Is(err, holdfast.ErrSlotUnavailable) {
		return err
	}
	v, failed := t.view(ctx)
	if failed != nil {
		return err
	}
	return &slotTaken{err, t.alternatives(ctx, v, w)}
}

// alternatives returns the free slots that are nearest to a request: on the same day first, then of the same unit, then by time. They are
// from the day and the six days after it.
func (t *toolbox) alternatives(ctx context.Context, v view, w slotRequest) *alternatives {
	result := &alternatives{TimeZone: v.name(), Slots: []alternative{}}
	first, err := time.Parse(time.DateOnly, w.date)
	if err != nil {
		return result
	}
	params := holdfast.AvailabilityListParams{
		From: w.date, To: first.AddDate(0, 0, defaultDays-1).Format(time.DateOnly), ServiceID: w.service, PackageID: w.packageID,
	}
	if w.service == "" && w.packageID == "" {
		params.UnitID = w.unit
	}
	days, err := t.client.Availability.List(ctx, params)
	if err != nil {
		result.Note = "The free slots are not known, because asking for them failed. Search with find_free_slots."
		return result
	}
	for _, day := range days.Data {
		for _, unit := range day.Units {
			for _, s := range v.slots(unit.Slots) {
				result.Slots = append(result.Slots, offer(day.Date, unit, s))
			}
		}
	}
	slices.SortStableFunc(result.Slots, func(a, b alternative) int {
		return cmp.Or(
			strings.Compare(a.Date, b.Date),
			-compareBool(a.UnitID == w.unit, b.UnitID == w.unit),
			cmp.Compare(distance(a.StartTime, w.start), distance(b.StartTime, w.start)),
		)
	})
	if len(result.Slots) == 0 {
		result.Note = "Nothing is free on that day and the six days after it."
	}
	if len(result.Slots) > maxAlternatives {
		result.Slots = result.Slots[:maxAlternatives]
		result.Note = "There are more free slots: search with find_free_slots."
	}
	return result
}

func offer(date string, unit holdfast.AvailabilityUnit, s slot) alternative {
	a := alternative{Date: date, UnitID: unit.UnitID, Unit: cut(unit.Name, shortText)}
	if s.WholeDay {
		a.StartTime, a.EndTime = "whole day", "whole day"
		return a
	}
	a.StartTime, a.EndTime = s.StartsAt.Format("15:04"), s.EndsAt.Format("15:04")
	return a
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// distance returns the minutes between two times of day.
func distance(a, b string) int {
	from, err := time.Parse("15:04", a)
	if err != nil {
		return 0
	}
	to, err := time.Parse("15:04", b)
	if err != nil {
		return 0
	}
	return int(from.Sub(to).Abs().Minutes())
}

// reasons describe why a slot is not free.
var reasons = map[holdfast.AvailabilityExplanationReason]string{
	holdfast.AvailabilityExplanationReasonAdvance:     "The day is further ahead than the booking policy allows.",
	holdfast.AvailabilityExplanationReasonBooked:      "A confirmed booking, with its buffers, takes the unit at that time.",
	holdfast.AvailabilityExplanationReasonClosed:      "The unit is closed at that time.",
	holdfast.AvailabilityExplanationReasonClosure:     "A closure overlaps that time.",
	holdfast.AvailabilityExplanationReasonDstGap:      "The time does not exist on that day, because the clocks change.",
	holdfast.AvailabilityExplanationReasonHeld:        "A pending booking, with its buffers, holds the unit at that time.",
	holdfast.AvailabilityExplanationReasonMaintenance: "The unit is in maintenance.",
	holdfast.AvailabilityExplanationReasonNotASlot:    "No slot starts at that time.",
	holdfast.AvailabilityExplanationReasonNotice:      "The start is nearer than the minimum notice of the booking policy, or in the past.",
	holdfast.AvailabilityExplanationReasonRetired:     "The unit is retired.",
}

// explain are the arguments of explain_slot.
type explain struct {
	Unit    string `json:"unit_id"`
	Date    string `json:"date" jsonschema:"YYYY-MM-DD"`
	Start   string `json:"start_time" jsonschema:"HH:MM"`
	Service string `json:"service_id,omitempty" jsonschema:"to learn of its other units, too"`
}

// explanation is the result of explain_slot.
type explanation struct {
	Available bool          `json:"available"`
	StartsAt  *moment       `json:"starts_at,omitempty"`
	TimeZone  string        `json:"time_zone"`
	Reason    string        `json:"reason,omitempty"`
	Meaning   string        `json:"meaning,omitempty"`
	Free      *alternatives `json:"free_instead,omitempty"`
}

func (t *toolbox) explainSlot(ctx context.Context, in explain) (any, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	at, ok, err := v.local(in.Date, in.Start)
	if err != nil {
		return nil, err
	}
	e := explanation{TimeZone: v.name(), StartsAt: v.at(&at)}
	reason := holdfast.AvailabilityExplanationReasonDstGap
	if ok {
		explained, err := t.client.Availability.Explain(ctx, holdfast.AvailabilityExplainParams{UnitID: in.Unit, StartsAt: at.Format(time.RFC3339)})
		if err != nil {
			return nil, err
		}
		e.Available, reason = explained.Available, value(explained.Reason)
	} else {
		e.StartsAt = nil
	}
	if !e.Available {
		e.Reason, e.Meaning = string(reason), reasons[reason]
		e.Free = t.alternatives(ctx, v, slotRequest{date: in.Date, start: in.Start, unit: in.Unit, service: in.Service})
	}
	return e, nil
}
