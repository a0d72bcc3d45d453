package api

import (
	"cmp"
	"fmt"
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

// clockPage shows the tenant's time in test mode and moves it.
func clockPage(p *page) error {
	if p.workspace.Live() {
		return domain.ErrNotFound
	}
	o, err := p.app.Do(p.r.Context(), domain.Request{Operation: "getTestClock"})
	if err != nil {
		return err
	}
	return p.show(http.StatusOK, pages.Clock(p.frame(""), p.clockView(o, "")))
}

func (f *form) clockView(o domain.Object, wrong string) pages.ClockView {
	out := pages.ClockView{Frozen: o.Bool("frozen"), Wrong: wrong}
	if at := o.Time("now"); at != nil {
		out.Now, out.Input, out.From = f.DateTime(*at), at.In(f.Zone).Format("2006-01-02T15:04"), at.Format(time.RFC3339)
	}
	if f.draft.Has("now") {
		out.Input = f.draft.Get("now")
	}
	return out
}

// steps are the steps of the test clock's buttons: an elapsed hour, or calendar days.
var steps = map[string]func(time.Time) time.Time{
	"hour": func(t time.Time) time.Time { return t.Add(time.Hour) },
	"day":  func(t time.Time) time.Time { return t.AddDate(0, 0, 1) },
	"week": func(t time.Time) time.Time { return t.AddDate(0, 0, 7) },
}

// setClock moves the test clock forward or resets it to real time.
func setClock(p *page) error {
	if p.workspace.Live() {
		return domain.ErrNotFound
	}
	ctx, to := p.r.Context(), p.posted.Get("to")
	if to == "real" {
		if _, err := p.submit(domain.Request{Operation: "deleteTestClock"}); err != nil {
			return p.showAgain(err, clockPage)
		}
		return p.done("clock", "clock_real")
	}
	o, err := p.app.Do(ctx, domain.Request{Operation: "getTestClock"})
	if err != nil {
		return err
	}
	body := map[string]any{}
	if step, ok := steps[to]; ok {
		at := cmp.Or(domain.Object{"from": p.posted.Get("from")}.Time("from"), o.Time("now")) // a repetition moves it to the same time
		if at == nil {
			return domain.ErrNotFound
		}
		body["now"] = step(at.In(p.Zone)).Truncate(time.Second).Format(time.RFC3339)
	} else if body, err = p.reader().Body(p.fields("setTestClock", []string{"now"}), p.posted); err != nil {
		return p.clockRefused(err, o)
	}
	if _, err := p.submit(domain.Request{Operation: "setTestClock", Body: body, Key: p.onceFor(fmt.Sprint(body["now"]))}); err != nil {
		return p.clockRefused(err, o)
	}
	return p.done("clock", "clock_moved")
}

// clockRefused shows the test clock with the error of the entered time.
func (p *page) clockRefused(err error, o domain.Object) error {
	wrong, others := p.splitFaults(err, "now")
	if wrong == "" && others == "" {
		return p.showAgain(err, clockPage)
	}
	return p.show(http.StatusUnprocessableEntity, pages.Clock(p.frame(others), p.clockView(o, wrong)))
}

// availability shows the slots of a day, and why a time cannot be booked.
func availability(p *page) error {
	q := p.r.URL.Query()
	fields := p.queryFields("listAvailability", "service_id", "unit_id")
	choices, err := p.choices(fields)
	if err != nil {
		return err
	}
	day := q.Get("date")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		day = p.workspace.Now(p.server.Now()).Format(time.DateOnly)
	}
	out := pages.AvailabilityView{
		Date: day, Filters: p.filterInputs(fields, q, choices), Units: p.Inputs(p.queryFields("explainAvailability", "unit_id"), q, choices), At: q.Get("at"), Past: q.Get("past") == "true",
	}
	if err := p.addSlots(&out, q, day); err != nil {
		return err
	}
	if err := p.addExplanation(&out, q); err != nil {
		return err
	}
	return p.show(http.StatusOK, pages.Availability(p.frame(""), out))
}

// addSlots adds the units of the day with their slots.
func (f *form) addSlots(out *pages.AvailabilityView, q url.Values, day string) error {
	query := url.Values{"from": {day}, "to": {day}}
	for _, name := range []string{"service_id", "unit_id"} {
		if s := q.Get(name); s != "" {
			query.Set(name, s)
		}
	}
	list, err := f.app.List(f.r.Context(), "listAvailability", query)
	if wrong, others := f.splitFaults(err, "unit_id"); wrong+others != "" {
		out.Problem = strings.TrimSpace(wrong + " " + others)
		return nil
	}
	if err != nil || len(list.Data) == 0 {
		return err
	}
	one, now, hidden := list.Data[0], f.workspace.Now(f.server.Now()), 0
	out.Holiday = one.Object("holiday").Text("name")
	for _, u := range one.Objects("units") {
		row := pages.UnitSlots{Name: u.Text("name"), Status: f.Word(u.Text("status"))}
		for _, s := range u.Objects("slots") {
			if at := s.Time("starts_at"); at != nil && at.Before(now) && !out.Past {
				hidden++
				continue
			}
			if one := f.slot(s, u.Text("unit_id"), q.Get("service_id"), day); one.Text != "" {
				row.Slots = append(row.Slots, one)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	if hidden > 0 {
		q.Set("past", "true")
		out.Hidden, out.ShowPast = f.T("past_slots", "Count", hidden), f.workspace.Path("availability")+"?"+q.Encode()
	}
	return nil
}

// slot returns a time of a unit. A free slot links to the form that books it, any other to the reason why it is not free.
func (s *session) slot(slot domain.Object, unit, service, day string) pages.SlotView {
	at := slot.Time("starts_at")
	if at == nil {
		return pages.SlotView{}
	}
	local := at.In(s.Zone)
	out := pages.SlotView{Text: local.Format("15:04"), Free: slot.Text("status") == "available", Word: s.Word(slot.Text("status"))}
	if seats := slot.Object("seats"); seats != nil && out.Free {
		out.Seats = s.T("seats_left", "Count", seats.Count("available"))
	}
	link := url.Values{"unit_id": {unit}, "date": {day}, "at": {local.Format("2006-01-02T15:04")}}
	out.Href = s.workspace.Path("availability") + "?" + link.Encode()
	if out.Free && s.can("createBooking") {
		link = url.Values{"unit_id": {unit}, "event_date": {day}, "event_start_time": {local.Format("15:04")}}
		if service != "" {
			link.Set("service_id", service)
		}
		out.Href = s.workspace.Path("bookings/new") + "?" + link.Encode()
	}
	return out
}

// addExplanation adds whether the unit can be booked at the requested time, and the reason if it cannot.
func (f *form) addExplanation(out *pages.AvailabilityView, q url.Values) error {
	if q.Get("at") == "" || q.Get("unit_id") == "" {
		return nil
	}
	at, err := time.ParseInLocation("2006-01-02T15:04", q.Get("at"), f.Zone)
	if err != nil {
		out.Why = f.T("must_be_datetime")
		return nil
	}
	o, err := f.app.Do(f.r.Context(), domain.Request{Operation: "explainAvailability", Query: url.Values{"unit_id": {q.Get("unit_id")}, "starts_at": {at.Format(time.RFC3339)}}})
	if wrong, others := f.splitFaults(err, "unit_id"); wrong+others != "" {
		out.Why = strings.TrimSpace(wrong + " " + others)
		return nil
	}
	if err != nil {
		return err
	}
	out.Free, out.Why = o.Bool("available"), f.T("why_available")
	if !out.Free {
		out.Why = f.T("why_" + o.Text("reason"))
	}
	return nil
}

// prices shows the price of a package on each day of a year, and the deciding holiday rule.
func prices(p *page) error {
	if !p.can("listPackagePrices") {
		return domain.ErrForbidden
	}
	q := p.r.URL.Query()
	choices, err := p.choices(p.queryFields("listPackagePrices", "package_id"))
	if err != nil {
		return err
	}
	now := p.workspace.Now(p.server.Now())
	year, err := strconv.Atoi(q.Get("year"))
	if err != nil || year < 2000 || year > 2200 {
		year = now.Year()
	}
	out := pages.PricesView{Year: year, Packages: choices["package"], Package: q.Get("package_id")}
	if out.Package == "" && len(out.Packages) > 0 {
		out.Package = out.Packages[0].Value
	}
	if out.Package == "" {
		return p.show(http.StatusOK, pages.Prices(p.frame(""), out))
	}
	first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	o, err := p.app.Do(p.r.Context(), domain.Request{Operation: "listPackagePrices", Query: url.Values{
		"package_id": {out.Package}, "from": {first.Format(time.DateOnly)}, "to": {first.AddDate(1, 0, -1).Format(time.DateOnly)},
	}})
	if app.Refused(err) {
		return domain.ErrNotFound
	}
	if err != nil {
		return err
	}
	out.Currency = o.Text("currency")
	p.addYear(&out, o, first)
	return p.show(http.StatusOK, pages.Prices(p.frame(""), out))
}

// addYear arranges the prices as months and weeks, and adds the active rules.
func (s *session) addYear(out *pages.PricesView, o domain.Object, first time.Time) {
	seen := map[string]bool{}
	for i, d := range o.Objects("data") {
		day := first.AddDate(0, 0, i)
		if day.Day() == 1 {
			out.Months = append(out.Months, pages.MonthView{Name: s.Month(day), Before: (int(day.Weekday()) + 6) % 7})
		}
		total, _ := d.Int("total_amount")
		cell := pages.PriceView{Day: strconv.Itoa(day.Day()), Price: s.Plain(domain.Money{Minor: total, Currency: o.Text("currency")})}
		if rule := d.Object("holiday"); rule != nil {
			bps, _ := rule.Int("multiplier_bps")
			cell.Rule = rule.Text("name")
			if id := rule.Text("id"); !seen[id] {
				seen[id] = true
				out.Rules = append(out.Rules, view.Value{Kind: view.Link, Text: rule.Text("name") + ", " + s.Percent(bps), Href: s.workspace.Path("holiday-rules/" + id)})
			}
		}
		m := &out.Months[len(out.Months)-1]
		m.Days = append(m.Days, cell)
	}
}
