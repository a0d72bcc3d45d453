package app

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"holdfast.dev/libs/caller"

	"holdfast.dev/services/console/internal/domain"
)

// shownRows is how many rows each part of the first page has.
const shownRows = 10

// Today holds the data that an operator needs first. A part is nil if the role cannot see it or its service is unavailable.
type Today struct {
	Arrivals, Departures []domain.CalendarBooking
	Holds                []domain.Object // bookings, in the order in which their holds lapse
	Unpaid               []domain.Object // bookings without their deposit, the nearest day first
	Overdue              []domain.Object // invoices
	Owed                 []domain.Object // refunds that could not be created
	Leads                []domain.Object
	Failing              []domain.Object // endpoints whose deliveries fail
	Failed               []domain.Object // deliveries, the newest first
	Away                 []string        // parts whose service is unavailable
}

// Busy reports whether there are bookings that need attention.
func (t Today) Busy() bool { return len(t.Arrivals)+len(t.Departures)+len(t.Holds)+len(t.Unpaid) > 0 }

// part is one part of the first page: its name, the scope that it requires, and the function that reads it.
type part struct {
	name, scope string
	read        func() error
}

// Today calls all services in parallel. now is the tenant's time, in its zone.
func (a *App) Today(ctx context.Context, now time.Time) (out Today, err error) {
	parts := a.parts(ctx, now, &out)
	away, calls := make([]bool, len(parts)), make([]func() error, len(parts))
	for i, p := range parts {
		calls[i] = func() error {
			if !caller.FromContext(ctx).Has(p.scope) {
				return nil
			}
			err := p.read()
			if away[i] = Unanswered(err); away[i] {
				return nil
			}
			return err
		}
	}
	err = RunConcurrently(calls...)
	for i, p := range parts {
		if away[i] {
			out.Away = append(out.Away, p.name)
		}
	}
	return out, err
}

// parts read the parts of the first page into out.
func (a *App) parts(ctx context.Context, now time.Time, out *Today) []part {
	day := now.Format(time.DateOnly)
	return []part{
		{"arrivals", "read:bookings", func() error {
			got, err := a.Services.Calendar(ctx, url.Values{"from": {day}, "to": {day}})
			out.Arrivals, out.Departures = split(got.Data, now)
			return err
		}},
		{"holds", "read:bookings", func() error {
			due, err := a.Do(ctx, domain.Request{Operation: "listDueBookings"})
			out.Holds, out.Unpaid = named(due.Objects("holds")), named(due.Objects("unpaid"))
			return err
		}},
		{"overdue", "read:invoices", func() (err error) {
			out.Overdue, err = a.All(ctx, "listInvoices", url.Values{"overdue": {"true"}}, shownRows)
			return err
		}},
		{"owed", "payments:read", func() error {
			list, err := a.List(ctx, "listOwedRefunds", url.Values{"limit": {strconv.Itoa(shownRows)}})
			out.Owed = list.Data
			return err
		}},
		{"leads", "read:leads", func() (err error) {
			out.Leads, err = a.All(ctx, "listLeads", url.Values{"status": {"new"}}, shownRows)
			return err
		}},
		{"failing", "read:webhooks", func() error {
			list, err := a.All(ctx, "listWebhookEndpoints", nil, pageSize)
			out.Failing = failing(list)
			return err
		}},
		{"failed", "read:webhooks", func() error {
			list, err := a.List(ctx, "listFailingDeliveries", nil)
			out.Failed = list.Data
			return err
		}},
	}
}

// split returns the bookings that begin on the day of now and those that end on it.
func split(list []domain.CalendarBooking, now time.Time) (arrivals, departures []domain.CalendarBooking) {
	day := now.Format(time.DateOnly)
	for _, b := range list {
		if b.StartsAt == nil || b.EndsAt == nil {
			arrivals = append(arrivals, b)
			continue
		}
		if b.StartsAt.In(now.Location()).Format(time.DateOnly) == day {
			arrivals = append(arrivals, b)
		}
		if b.EndsAt.In(now.Location()).Add(-time.Nanosecond).Format(time.DateOnly) == day {
			departures = append(departures, b)
		}
	}
	return arrivals, departures
}

// named sets the customer of bookings from an internal response in the format of an expanded list.
func named(list []domain.Object) []domain.Object {
	for _, o := range list {
		if name := o.Text("customer_name"); name != "" {
			o["customer"] = map[string]any{"name": name}
		}
	}
	return list
}

// failing returns the endpoints whose last deliveries failed, and those that the platform disabled.
func failing(endpoints []domain.Object) []domain.Object {
	var out []domain.Object
	for _, e := range endpoints {
		n, _ := e.Int("consecutive_failures")
		if reason := e.Text("disabled_reason"); reason != "requested" && (n > 0 || reason != "") {
			out = append(out, e)
		}
	}
	return out[:min(len(out), shownRows)]
}

// Search returns the resources that match a text: by number, by name, or by id.
func (a *App) Search(ctx context.Context, q string) (found map[string][]domain.Object, err error) {
	found = map[string][]domain.Object{}
	who := caller.FromContext(ctx)
	parts := []struct {
		resource string
		scope    string
		query    url.Values
	}{
		{"bookings", "read:bookings", url.Values{"number": {q}}},
		{"customers", "read:customers", url.Values{"q": {q}}},
		{"leads", "read:leads", url.Values{"q": {q}}},
		{"quotes", "read:quotes", url.Values{"number": {q}}},
		{"invoices", "read:invoices", url.Values{"number": {q}}},
		{"events", "read:webhooks", url.Values{"object_id": {q}}},
	}
	rows := make([][]domain.Object, len(parts))
	calls := make([]func() error, len(parts))
	for i, p := range parts {
		calls[i] = func() error {
			r := domain.ResourceNamed(p.resource)
			if !who.Has(p.scope) || p.resource == "events" && domain.ResourceOf(q) == nil {
				return nil
			}
			p.query.Set("limit", strconv.Itoa(shownRows))
			list, err := a.List(ctx, r.List, p.query)
			if Refused(err) || Unanswered(err) { // a text that cannot be such a number
				return nil
			}
			rows[i] = list.Data
			return err
		}
	}
	err = RunConcurrently(calls...)
	for i, p := range parts {
		if len(rows[i]) > 0 {
			found[p.resource] = rows[i]
		}
	}
	return found, err
}

// Find returns the kind of resource that an existing id belongs to; nil if the id does not exist.
func (a *App) Find(ctx context.Context, id string) *domain.Resource {
	r := domain.ResourceOf(id)
	if r == nil || !r.HasPage() {
		return nil
	}
	if _, err := a.Get(ctx, r, id); err != nil {
		return nil
	}
	return r
}
