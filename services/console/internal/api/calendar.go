package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/services/console/internal/app"
	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// calendar shows the bookings of the units on a day, in a week, or in a month.
func calendar(p *page) error {
	if !p.can("listBookings") || !p.can("listUnits") {
		return domain.ErrForbidden
	}
	query := p.r.URL.Query()
	span := domain.Span(query.Get("view"))
	if span != domain.DaySpan && span != domain.MonthSpan {
		span = domain.WeekSpan
	}
	now := p.workspace.Now(p.server.Now())
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	day, err := time.Parse(time.DateOnly, query.Get("date"))
	if err != nil || day.Year() < 1900 || day.Year() > 2199 {
		day = today
	}
	number, _ := strconv.Atoi(query.Get("page"))
	from, to := span.Range(day)
	found, err := p.app.Calendar(p.r.Context(), app.CalendarQuery{Span: span, From: from, To: to, Service: query.Get("service_id"), Page: number}, p.Zone)
	if err != nil {
		return err
	}
	services, err := p.app.All(p.r.Context(), "listServices", url.Values{"active": {"true"}}, mostChoices)
	if err != nil {
		return err
	}
	at := func(d time.Time) string {
		q := url.Values{"view": {string(span)}, "date": {d.Format(time.DateOnly)}}
		for _, name := range []string{"service_id", "past"} {
			if s := query.Get(name); s != "" {
				q.Set(name, s)
			}
		}
		return p.workspace.Path("calendar") + "?" + q.Encode()
	}
	out := pages.CalendarView{
		Calendar: found, Span: span, Today: today.Format(time.DateOnly), Hour: now.Hour(), Past: query.Get("past") == "true", Now: at(today), Back: at(span.Move(day, -1)), Next: at(span.Move(day, 1)), Page: max(number, 0),
		Service: query.Get("service_id"), CanMake: p.can("createBooking"), CanMove: p.can("updateBooking"), CanAdd: p.can("createUnit"), CanClose: p.can("createClosure"), Base: p.workspace.Path("bookings") + "/", Title: p.rangeTitle(span, from, to),
	}
	for _, o := range services {
		out.Services = append(out.Services, view.Option{Value: o.Text("id"), Text: domain.Short(o.Text("name"), optionBytes)})
	}
	p.live = true
	return p.show(http.StatusOK, pages.Calendar(p.frame(""), out))
}

func (s *session) rangeTitle(span domain.Span, from, to time.Time) string {
	switch span {
	case domain.DaySpan:
		return s.Weekday(from.Weekday()) + " " + s.Date(from)
	case domain.MonthSpan:
		return s.Month(from)
	default:
		return s.ShortDate(from) + " – " + s.ShortDate(to) + " " + strconv.Itoa(to.Year())
	}
}

// move moves a booking to the unit, day, or time where it was dropped, or it moves only the end. The service preserves the length of
// a booking of which only the day and the start change. After a
// clash, the form shows which booking has the slot.
func move(p *page) error {
	r := domain.ResourceNamed("bookings")
	ctx, id := p.r.Context(), p.c.Param("id")
	o, err := p.app.Get(ctx, r, id)
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(p.posted.Get("version"), 10, 64)
	if err != nil {
		return domain.ErrStaleForm
	}
	body := map[string]any{}
	if unit := p.posted.Get("unit_id"); unit != "" && unit != o.Text("unit_id") {
		body["unit_id"] = unit
	}
	date, start := p.posted.Get("event_date"), p.posted.Get("start")
	if date != "" && date != o.Text("event_local_date") {
		body["event_date"] = date
	}
	if p.posted.Get("grip") == "end" { // only its end was dragged
		body = map[string]any{}
		if start != "" && start != o.Text("event_end_time") {
			body["event_end_time"] = start
		}
	} else if was := o.Text("event_start_time"); was != "" && start != "" && start != was {
		body["event_start_time"] = start
	}
	if len(body) > 0 {
		_, err = p.submit(domain.Request{Operation: r.Update, Params: []string{id}, Body: body, Version: version})
	}
	if err == nil {
		to := ownAddress(p.posted.Get("to"))
		joint := "?"
		if strings.Contains(to, "?") {
			joint = "&"
		}
		return p.redirect(to + joint + "done=moved")
	}
	out, fields := p.editForm(r, o)
	out.Version = version
	form := p.reader().Form(fields, o)
	for name, value := range body {
		if s, ok := value.(string); ok {
			form.Set(name, s)
		}
	}
	p.posted = form
	return p.refused(err, out, fields)
}

// clash describes the bookings and closures of the unit on that day when a booking could not get its unit.
func (f *form) clash() string {
	unit, day := f.posted.Get("unit_id"), f.posted.Get("event_date")
	if domain.ResourceOf(unit) == nil || len(day) < len(time.DateOnly) {
		return ""
	}
	found, err := f.app.Clashes(f.r.Context(), unit, day[:len(time.DateOnly)])
	if err != nil {
		return ""
	}
	var taken []string
	for _, b := range found.Data {
		text := b.Number
		if b.EventStartTime != nil && b.EventEndTime != nil {
			text += " " + *b.EventStartTime + "–" + *b.EventEndTime
		}
		if b.CustomerName != nil {
			text += " (" + *b.CustomerName + ")"
		}
		taken = append(taken, text)
	}
	var messages, closed []string
	if len(taken) > 0 {
		messages = append(messages, f.T("taken_by", "Bookings", strings.Join(taken, ", ")))
	}
	for _, c := range found.Closures {
		closed = append(closed, c.Name)
	}
	if len(closed) > 0 {
		messages = append(messages, f.T("closed_by", "Closures", strings.Join(closed, ", ")))
	}
	return strings.Join(messages, " ")
}
