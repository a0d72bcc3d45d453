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

// calendar shows what the units have on a day, in a week or in a month.
func calendar(v *visit) error {
	if !v.may("listBookings") || !v.may("listUnits") {
		return domain.ErrForbidden
	}
	ask := v.r.URL.Query()
	span := domain.Span(ask.Get("view"))
	if span != domain.DaySpan && span != domain.MonthSpan {
		span = domain.WeekSpan
	}
	now := v.w.Now(v.s.Now())
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	day, err := time.Parse(time.DateOnly, ask.Get("date"))
	if err != nil || day.Year() < 1900 || day.Year() > 2199 {
		day = today
	}
	page, _ := strconv.Atoi(ask.Get("page"))
	from, to := span.Range(day)
	found, err := v.app.Calendar(v.r.Context(), app.CalendarQuery{Span: span, From: from, To: to, Service: ask.Get("service_id"), Page: page}, v.Zone)
	if err != nil {
		return err
	}
	services, err := v.app.All(v.r.Context(), "listServices", url.Values{"active": {"true"}}, mostChoices)
	if err != nil {
		return err
	}
	at := func(d time.Time) string {
		q := url.Values{"view": {string(span)}, "date": {d.Format(time.DateOnly)}}
		if s := ask.Get("service_id"); s != "" {
			q.Set("service_id", s)
		}
		return v.w.Path("calendar") + "?" + q.Encode()
	}
	out := pages.CalendarView{
		Calendar: found, Span: span, Today: today.Format(time.DateOnly), Now: at(today), Back: at(span.Move(day, -1)), Next: at(span.Move(day, 1)), Page: max(page, 0),
		Service: ask.Get("service_id"), CanMake: v.may("createBooking"), CanMove: v.may("updateBooking"), CanAdd: v.may("createUnit"), Base: v.w.Path("bookings") + "/", Title: v.rangeTitle(span, from, to),
	}
	for _, o := range services {
		out.Services = append(out.Services, view.Option{Value: o.Text("id"), Text: domain.Short(o.Text("name"), optionBytes)})
	}
	v.live = true
	return v.show(http.StatusOK, pages.Calendar(v.frame(""), out))
}

func (v *visit) rangeTitle(span domain.Span, from, to time.Time) string {
	switch span {
	case domain.DaySpan:
		return v.Weekday(from.Weekday()) + " " + v.Date(from)
	case domain.MonthSpan:
		return v.Month(from)
	default:
		return v.ShortDate(from) + " – " + v.ShortDate(to) + " " + strconv.Itoa(to.Year())
	}
}

// move puts a booking where it was dropped: on another unit, day or time, with its length; or it moves its end alone. A clash shows the form with whose slot it is.
func move(v *visit) error {
	r := domain.ResourceNamed("bookings")
	ctx, id := v.r.Context(), v.c.Param("id")
	o, err := v.app.Get(ctx, r, id)
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(v.form.Get("version"), 10, 64)
	if err != nil {
		return domain.ErrStaleForm
	}
	body := map[string]any{}
	if unit := v.form.Get("unit_id"); unit != "" && unit != o.Text("unit_id") {
		body["unit_id"] = unit
	}
	date, start := v.form.Get("event_date"), v.form.Get("start")
	if date != "" && date != o.Text("event_local_date") {
		body["event_date"] = date
	}
	if v.form.Get("grip") == "end" { // its end was dragged, and nothing else
		body = map[string]any{}
		if start != "" && start != o.Text("event_end_time") {
			body["event_end_time"] = start
		}
	} else if was := o.Text("event_start_time"); was != "" && start != "" && start != was {
		body["event_start_time"] = start
		body["event_end_time"] = domain.Shift(start, domain.Between(was, o.Text("event_end_time")))
	}
	if len(body) > 0 {
		_, err = v.submit(domain.Request{Operation: r.Update, Params: []string{id}, Body: body, Version: version})
	}
	if err == nil {
		to := ownAddress(v.form.Get("to"))
		joint := "?"
		if strings.Contains(to, "?") {
			joint = "&"
		}
		return v.redirect(to + joint + "done=moved")
	}
	out, fields := v.editForm(r, o)
	out.Version = version
	form := v.reader().Form(fields, o)
	for name, value := range body {
		if s, ok := value.(string); ok {
			form.Set(name, s)
		}
	}
	v.form = form
	return v.refused(err, out, fields)
}

// clash says whose slot it is, when a booking could not get its unit.
func (v *visit) clash() string {
	unit, day := v.form.Get("unit_id"), v.form.Get("event_date")
	if domain.ResourceOf(unit) == nil || len(day) < len(time.DateOnly) {
		return ""
	}
	list, err := v.app.Clashes(v.r.Context(), unit, day[:len(time.DateOnly)])
	if err != nil {
		return ""
	}
	var taken []string
	for _, b := range list {
		text := b.Number
		if b.EventStartTime != nil && b.EventEndTime != nil {
			text += " " + *b.EventStartTime + "–" + *b.EventEndTime
		}
		if b.CustomerName != nil {
			text += " (" + *b.CustomerName + ")"
		}
		taken = append(taken, text)
	}
	if len(taken) == 0 {
		return ""
	}
	return v.T("taken_by", "Bookings", strings.Join(taken, ", "))
}
