package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// todayColumns are the columns of the parts of the first page.
var todayColumns = map[string][]string{
	"holds": {"number", "customer_id", "event_local_date", "hold_expires_at"}, "unpaid": {"number", "customer_id", "event_local_date", "deposit_amount"},
	"owed":    {"booking_id", "remaining_amount", "failure", "failed_at"},
	"overdue": {"number", "customer_id", "amount_due", "due_at"}, "leads": {"first_name", "last_name", "source", "created_at"},
}

// today shows the first page: arrivals, departures, and tasks.
func today(p *page) error {
	ctx, now := p.r.Context(), p.workspace.Now(p.server.Now())
	var t app.Today
	var out pages.TodayView
	var charts figures
	err := app.RunConcurrently(
		func() (err error) { t, err = p.app.Today(ctx, now); return err },
		func() (err error) { charts, err = p.charts(now); return err },
	)
	if err != nil {
		return err
	}
	if !t.Busy() && charts.bookings == 0 {
		if out.First, err = p.firstSteps(); err != nil {
			return err
		}
	}
	out.Date, out.Away, out.Charts, out.Days = p.Date(now), t.Away, charts.list, charts.days
	if charts.away {
		out.Away = append(out.Away, "figures")
	}
	out.Arrivals, out.Departures = p.coming(t.Arrivals, now, true), p.coming(t.Departures, now, false)
	add := func(name, resource, query string, rows []domain.Object) {
		r := *domain.ResourceNamed(resource)
		if !p.can(r.List) {
			return
		}
		r.Columns = todayColumns[name]
		all := p.workspace.Path(resource)
		if query != "" {
			all += "?" + query
		}
		out.Parts = append(out.Parts, pages.PartView{Name: name, Resource: &r, Columns: r.Columns, Rows: p.rows(&r, rows), All: all})
	}
	day := now.Format(time.DateOnly)
	add("holds", "bookings", "status=pending", t.Holds)
	add("unpaid", "bookings", url.Values{"payment_status": {"unpaid"}, "event_date_from": {day}}.Encode(), t.Unpaid)
	add("overdue", "invoices", "overdue=true", t.Overdue)
	if len(t.Owed) > 0 {
		add("owed", "owed-refunds", "", t.Owed)
	}
	add("leads", "leads", "status=new", t.Leads)
	if p.can("listWebhookEndpoints") {
		out.Parts = append(out.Parts, p.failingEndpoints(t.Failing), p.failedDeliveries(t.Failed))
	}
	p.live = true
	f := p.frame("")
	f.Charts = len(out.Charts) > 0
	return p.show(http.StatusOK, pages.Today(f, out))
}

// shownComing is how many of today's arrivals, and how many of its departures, the first page shows.
const shownComing = 50

// coming converts bookings that begin or end today to rows, sorted by time.
func (s *session) coming(list []domain.CalendarBooking, now time.Time, begin bool) pages.ComingList {
	var ids []string
	for _, b := range list {
		if b.UnitID != nil {
			ids = append(ids, *b.UnitID)
		}
	}
	nameOf := s.app.Names.Of(s.r.Context(), ids)
	rows := make([]pages.ComingView, 0, len(list))
	for _, b := range list {
		one := pages.ComingView{Number: b.Number, Href: s.workspace.Path("bookings/" + b.ID), Status: s.Word(b.Status), Tone: map[string]string{"confirmed": "good", "pending": "busy"}[b.Status]}
		at := b.StartsAt
		if !begin {
			at = b.EndsAt
		}
		if at != nil && b.EventStartTime != nil {
			one.Time = at.In(s.Zone).Format("15:04")
		}
		if b.CustomerName != nil {
			one.Name = *b.CustomerName
		}
		if b.UnitID != nil {
			one.Unit = nameOf[*b.UnitID]
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b pages.ComingView) int { return strings.Compare(a.Time, b.Time) })
	shown := min(len(rows), shownComing)
	day := url.Values{"view": {string(domain.DaySpan)}, "date": {now.Format(time.DateOnly)}}
	return pages.ComingList{Rows: rows[:shown], More: len(rows) - shown, All: s.workspace.Path("calendar") + "?" + day.Encode()}
}

// failingEndpoints returns the endpoints whose deliveries fail.
func (s *session) failingEndpoints(list []domain.Object) pages.PartView {
	r := *domain.ResourceNamed("endpoints")
	r.Columns = []string{"url", "status", "consecutive_failures", "disabled_reason"}
	return pages.PartView{Name: "failing", Resource: &r, Columns: r.Columns, Rows: s.rows(&r, list), All: s.workspace.Path("endpoints")}
}

// failedDeliveries returns the deliveries that failed or are failing.
func (s *session) failedDeliveries(list []domain.Object) pages.PartView {
	r := domain.ResourceNamed("endpoints")
	out := pages.PartView{Name: "failed", Resource: r, Columns: []string{"type", "endpoint_id", "status", "last_answer", "created_at"}, All: s.workspace.Path(r.Name)}
	values := s.values(out.Columns, list...)
	for _, d := range list {
		d["type"] = d.Text("event_type")
		row := pages.RowView{Href: s.deliveryAddress(d)}
		for _, name := range out.Columns {
			row.Values = append(row.Values, values.Of(d, name))
		}
		if attempts := d.Objects("attempts"); len(attempts) > 0 {
			row.Values[3] = view.Value{Kind: view.Plain, Text: s.attemptResponse(attempts[len(attempts)-1])}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// firstSteps returns the first steps of a workspace without bookings; nil once they are done, and for a role that cannot do them.
func (s *session) firstSteps() ([]pages.StepView, error) {
	steps := []struct{ name, resource string }{{"service", "services"}, {"unit", "units"}, {"package", "packages"}, {"booking", "bookings"}}
	out, calls := make([]pages.StepView, len(steps)), make([]func() error, len(steps))
	for i, step := range steps {
		r := domain.ResourceNamed(step.resource)
		if !s.can(r.Create) {
			return nil, nil
		}
		calls[i] = func() error {
			list, err := s.app.List(s.r.Context(), r.List, url.Values{"limit": {"1"}})
			out[i] = pages.StepView{Name: step.name, Href: s.workspace.Path(r.Name + "/new"), Done: len(list.Data) > 0}
			return err
		}
	}
	if err := app.RunConcurrently(calls...); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(out, func(step pages.StepView) bool { return !step.Done }) {
		return nil, nil
	}
	return out, nil
}

// search finds resources by number, name, or id. An id redirects to its page.
func search(p *page) error {
	q := strings.TrimSpace(p.r.URL.Query().Get("q"))
	out := pages.SearchView{Query: q}
	if q != "" && len(q) <= 200 {
		if r := p.app.Find(p.r.Context(), q); r != nil {
			return p.redirect(p.workspace.Path(r.Name + "/" + url.PathEscape(q)))
		}
		found, err := p.app.Search(p.r.Context(), q)
		if err != nil {
			return err
		}
		for i := range domain.Resources {
			if r := &domain.Resources[i]; len(found[r.Name]) > 0 {
				out.Found = append(out.Found, pages.RelatedView{Resource: r, Rows: p.rows(r, found[r.Name])})
			}
		}
	}
	f := p.frame("")
	f.Query = q
	return p.show(http.StatusOK, pages.Search(f, out))
}

// boardCards is how many leads a column of the board has.
const boardCards = 25

// board shows leads by status.
func board(p *page) error {
	r := domain.ResourceNamed("leads")
	out := pages.BoardView{CanMake: p.can(r.Create)}
	statuses := p.server.Operations[r.Update].Field("status").Enum
	lists, calls := make([]domain.List, len(statuses)), make([]func() error, len(statuses))
	for i, status := range statuses {
		calls[i] = func() (err error) {
			lists[i], err = p.app.List(p.r.Context(), r.List, url.Values{"status": {status}, "limit": {strconv.Itoa(boardCards)}})
			return err
		}
	}
	if err := app.RunConcurrently(calls...); err != nil {
		return err
	}
	for i, status := range statuses {
		list := lists[i]
		c := pages.BoardColumn{Status: status, More: list.HasMore, All: p.workspace.Path("leads") + "?status=" + status}
		for _, o := range list.Data[:min(len(list.Data), boardCards)] {
			card := pages.BoardCard{Title: r.TitleOf(o), Href: p.workspace.Path("leads/" + o.Text("id")), Text: o.First("message", "company", "email", "phone"), Version: o.Version()}
			if len(card.Text) > 120 {
				card.Text = strings.ToValidUTF8(card.Text[:120], "") + "…"
			}
			for _, a := range p.actions(r, o) {
				if a.Href != "" {
					card.Moves = append(card.Moves, pages.BoardMove{Name: a.Name, Href: a.Href})
				}
			}
			c.Cards = append(c.Cards, card)
		}
		out.Columns = append(out.Columns, c)
	}
	p.nav, p.live = "leads", true
	return p.show(http.StatusOK, pages.Board(p.frame(""), out))
}
