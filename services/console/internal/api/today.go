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

// today is the first page: what comes and goes, and what has to be done.
func today(v *visit) error {
	ctx, now := v.r.Context(), v.w.Now(v.s.Now())
	var t app.Today
	var out pages.TodayView
	var charts figures
	err := app.Together(
		func() (err error) { t, err = v.app.Today(ctx, now); return err },
		func() (err error) { charts, err = v.charts(now); return err },
	)
	if err != nil {
		return err
	}
	if !t.Busy() && charts.bookings == 0 {
		if out.First, err = v.firstSteps(); err != nil {
			return err
		}
	}
	out.Date, out.Away, out.Charts, out.Days = v.Date(now), t.Away, charts.list, charts.days
	if charts.away {
		out.Away = append(out.Away, "figures")
	}
	out.Arrivals, out.Departures = v.coming(t.Arrivals, now, true), v.coming(t.Departures, now, false)
	add := func(name, resource, query string, rows []domain.Object) {
		r := *domain.ResourceNamed(resource)
		if !v.may(r.List) {
			return
		}
		r.Columns = todayColumns[name]
		all := v.w.Path(resource)
		if query != "" {
			all += "?" + query
		}
		out.Parts = append(out.Parts, pages.PartView{Name: name, Resource: &r, Columns: r.Columns, Rows: v.rows(&r, rows), All: all})
	}
	day := now.Format(time.DateOnly)
	add("holds", "bookings", "status=pending", t.Holds)
	add("unpaid", "bookings", url.Values{"payment_status": {"unpaid"}, "event_date_from": {day}}.Encode(), t.Unpaid)
	add("overdue", "invoices", "overdue=true", t.Overdue)
	if len(t.Owed) > 0 {
		add("owed", "owed-refunds", "", t.Owed)
	}
	add("leads", "leads", "status=new", t.Leads)
	if v.may("listWebhookEndpoints") {
		out.Parts = append(out.Parts, v.failing(t.Failing), v.failed(t.Failed))
	}
	v.live = true
	f := v.frame("")
	f.Charts = len(out.Charts) > 0
	return v.show(http.StatusOK, pages.Today(f, out))
}

// shownComing is how many bookings that begin, or end, today the first page shows.
const shownComing = 50

// coming turns bookings that begin, or end, today into rows by their time.
func (v *visit) coming(list []domain.CalendarBooking, now time.Time, begin bool) pages.ComingList {
	var ids []string
	for _, b := range list {
		if b.UnitID != nil {
			ids = append(ids, *b.UnitID)
		}
	}
	called := v.app.Names.Of(v.r.Context(), ids)
	rows := make([]pages.ComingView, 0, len(list))
	for _, b := range list {
		one := pages.ComingView{Number: b.Number, Href: v.w.Path("bookings/" + b.ID), Status: v.Word(b.Status), Tone: map[string]string{"confirmed": "good", "pending": "busy"}[b.Status]}
		at := b.StartsAt
		if !begin {
			at = b.EndsAt
		}
		if at != nil && b.EventStartTime != nil {
			one.Time = at.In(v.Zone).Format("15:04")
		}
		if b.CustomerName != nil {
			one.Name = *b.CustomerName
		}
		if b.UnitID != nil {
			one.Unit = called[*b.UnitID]
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b pages.ComingView) int { return strings.Compare(a.Time, b.Time) })
	shown := min(len(rows), shownComing)
	day := url.Values{"view": {string(domain.DaySpan)}, "date": {now.Format(time.DateOnly)}}
	return pages.ComingList{Rows: rows[:shown], More: len(rows) - shown, All: v.w.Path("calendar") + "?" + day.Encode()}
}

// failing are the endpoints whose deliveries fail.
func (v *visit) failing(list []domain.Object) pages.PartView {
	r := *domain.ResourceNamed("endpoints")
	r.Columns = []string{"url", "status", "consecutive_failures", "disabled_reason"}
	return pages.PartView{Name: "failing", Resource: &r, Columns: r.Columns, Rows: v.rows(&r, list), All: v.w.Path("endpoints")}
}

// failed are deliveries that have failed, or failed until now.
func (v *visit) failed(list []domain.Object) pages.PartView {
	r := domain.ResourceNamed("endpoints")
	out := pages.PartView{Name: "failed", Resource: r, Columns: []string{"type", "endpoint_id", "status", "last_answer", "created_at"}, All: v.w.Path(r.Name)}
	values := v.values(out.Columns, list...)
	for _, d := range list {
		d["type"] = d.Text("event_type")
		row := pages.RowView{Href: v.deliveryAddress(d)}
		for _, name := range out.Columns {
			row.Values = append(row.Values, values.Of(d, name))
		}
		if attempts := d.Objects("attempts"); len(attempts) > 0 {
			row.Values[3] = view.Value{Kind: view.Plain, Text: v.answer(attempts[len(attempts)-1])}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// firstSteps are what a workspace without bookings needs first; nil once they are done, and for a role that may not do them.
func (v *visit) firstSteps() ([]pages.StepView, error) {
	steps := []struct{ name, resource string }{{"service", "services"}, {"unit", "units"}, {"package", "packages"}, {"booking", "bookings"}}
	out, asks := make([]pages.StepView, len(steps)), make([]func() error, len(steps))
	for i, s := range steps {
		r := domain.ResourceNamed(s.resource)
		if !v.may(r.Create) {
			return nil, nil
		}
		asks[i] = func() error {
			list, err := v.app.List(v.r.Context(), r.List, url.Values{"limit": {"1"}})
			out[i] = pages.StepView{Name: s.name, Href: v.w.Path(r.Name + "/new"), Done: len(list.Data) > 0}
			return err
		}
	}
	if err := app.Together(asks...); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(out, func(s pages.StepView) bool { return !s.Done }) {
		return nil, nil
	}
	return out, nil
}

// search finds things by number, name or id. An id leads to its page.
func search(v *visit) error {
	q := strings.TrimSpace(v.r.URL.Query().Get("q"))
	out := pages.SearchView{Query: q}
	if q != "" && len(q) <= 200 {
		if r := v.app.Find(v.r.Context(), q); r != nil {
			return v.redirect(v.w.Path(r.Name + "/" + url.PathEscape(q)))
		}
		found, err := v.app.Search(v.r.Context(), q)
		if err != nil {
			return err
		}
		for i := range domain.Resources {
			if r := &domain.Resources[i]; len(found[r.Name]) > 0 {
				out.Found = append(out.Found, pages.RelatedView{Resource: r, Rows: v.rows(r, found[r.Name])})
			}
		}
	}
	f := v.frame("")
	f.Query = q
	return v.show(http.StatusOK, pages.Search(f, out))
}

// boardCards is how many leads a column of the board has.
const boardCards = 25

// board shows leads by status.
func board(v *visit) error {
	r := domain.ResourceNamed("leads")
	out := pages.BoardView{CanMake: v.may(r.Create)}
	statuses := v.s.Operations[r.Update].Field("status").Enum
	lists, asks := make([]domain.List, len(statuses)), make([]func() error, len(statuses))
	for i, status := range statuses {
		asks[i] = func() (err error) {
			lists[i], err = v.app.List(v.r.Context(), r.List, url.Values{"status": {status}, "limit": {strconv.Itoa(boardCards)}})
			return err
		}
	}
	if err := app.Together(asks...); err != nil {
		return err
	}
	for i, status := range statuses {
		list := lists[i]
		c := pages.BoardColumn{Status: status, More: list.HasMore, All: v.w.Path("leads") + "?status=" + status}
		for _, o := range list.Data[:min(len(list.Data), boardCards)] {
			card := pages.BoardCard{Title: r.TitleOf(o), Href: v.w.Path("leads/" + o.Text("id")), Text: o.First("message", "company", "email"), Version: o.Version()}
			if len(card.Text) > 120 {
				card.Text = strings.ToValidUTF8(card.Text[:120], "") + "…"
			}
			for _, a := range v.actions(r, o) {
				if a.Href != "" {
					card.Moves = append(card.Moves, pages.BoardMove{Name: a.Name, Href: a.Href})
				}
			}
			c.Cards = append(c.Cards, card)
		}
		out.Columns = append(out.Columns, c)
	}
	v.nav, v.live = "leads", true
	return v.show(http.StatusOK, pages.Board(v.frame(""), out))
}
