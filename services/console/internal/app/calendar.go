package app

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/view"
)

const (
	mostUnits    = 2_000 // units on all pages of a calendar: the maximum number for a tenant
	unitsPerPage = 50    // units on one page of a calendar
	mostRules    = 200
	nameBytes    = 40 // maximum length of the names of units and holidays in a calendar
)

// CalendarQuery selects the content of a calendar.
type CalendarQuery struct {
	Span     domain.Span
	From, To time.Time // days
	Service  string    // "": all
	Page     int       // of units, from 0
}

// Calendar holds the bookings of the units in a range of days.
type Calendar struct {
	Days      []time.Time
	Holidays  []string                   // by day, "" for none
	Closures  [][]domain.CalendarClosure // by day, those of all units
	Rows      []domain.CalendarRow
	Units     int // on all pages
	Pages     int
	Truncated bool // there are more bookings than a calendar can hold
}

// Calendar reads the units, and then the bookings of those on this page, in two steps.
func (a *App) Calendar(ctx context.Context, q CalendarQuery, zone *time.Location) (Calendar, error) {
	out := Calendar{Days: domain.Days(q.From, q.To)}
	units, rules, err := a.unitsAndRules(ctx, q.Service)
	if err != nil {
		return out, err
	}
	for _, d := range out.Days {
		out.Holidays = append(out.Holidays, domain.Short(domain.HolidayOn(rules, d), nameBytes))
	}
	out.Units, out.Pages = len(units), max(1, (len(units)+unitsPerPage-1)/unitsPerPage)
	first := min(max(q.Page, 0)*unitsPerPage, len(units))
	units = units[first:min(first+unitsPerPage, len(units))]
	query := url.Values{"from": {q.From.Format(time.DateOnly)}, "to": {q.To.Format(time.DateOnly)}}
	if q.Service != "" {
		query.Set("service_id", q.Service)
	}
	bookings, err := a.Services.Calendar(ctx, query)
	if err != nil {
		return out, err
	}
	out.Truncated = bookings.Truncated
	for i := range bookings.Closures {
		bookings.Closures[i].Name = domain.Short(bookings.Closures[i].Name, nameBytes)
	}
	out.Rows = domain.CalendarRows(units, bookings.Data, out.Days, zone)
	out.Closures = domain.Close(out.Rows, bookings.Closures, out.Days, zone)
	view.Compact(out.Rows, q.Span)
	return out, nil
}

func (a *App) unitsAndRules(ctx context.Context, service string) (units []domain.Unit, rules []domain.Object, err error) {
	query := url.Values{}
	if service != "" {
		query.Set("service_id", service)
	}
	var rows []domain.Object
	err = RunConcurrently(
		func() (err error) { rows, err = a.All(ctx, "listUnits", query, mostUnits); return err },
		func() (err error) {
			rules, err = a.All(ctx, "listHolidayRules", url.Values{"active": {"true"}}, mostRules)
			return err
		},
	)
	for _, o := range rows {
		if o.Text("status") != "retired" {
			units = append(units, domain.Unit{ID: o.Text("id"), Name: domain.Short(o.Text("name"), nameBytes), Status: o.Text("status"), Hours: o.Object("opening_hours")})
		}
	}
	slices.SortFunc(units, func(x, y domain.Unit) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID)) })
	return units, rules, err
}

// Clashes returns the bookings and the closures that occupy a unit on a day.
func (a *App) Clashes(ctx context.Context, unit, day string) (domain.Bookings, error) {
	got, err := a.Services.Calendar(ctx, url.Values{"from": {day}, "to": {day}, "unit_ids": {unit}})
	got.Closures = slices.DeleteFunc(got.Closures, func(c domain.CalendarClosure) bool { return !c.Closes(unit) })
	return got, err
}
