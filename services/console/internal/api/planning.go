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

// clockPage shows the time of the tenant in test mode and moves it.
func clockPage(v *visit) error {
	if v.w.Live() {
		return domain.ErrNotFound
	}
	o, err := v.app.Do(v.r.Context(), domain.Request{Operation: "getTestClock"})
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, pages.Clock(v.frame(""), v.clockView(o, "")))
}

func (v *visit) clockView(o domain.Object, wrong string) pages.ClockView {
	out := pages.ClockView{Frozen: o.Bool("frozen"), Wrong: wrong}
	if at := o.Time("now"); at != nil {
		out.Now, out.Input, out.From = v.DateTime(*at), at.In(v.Zone).Format("2006-01-02T15:04"), at.Format(time.RFC3339)
	}
	if v.draft.Has("now") {
		out.Input = v.draft.Get("now")
	}
	return out
}

// steps are how far the buttons of the test clock move it: an hour that passes, or days of the calendar.
var steps = map[string]func(time.Time) time.Time{
	"hour": func(t time.Time) time.Time { return t.Add(time.Hour) },
	"day":  func(t time.Time) time.Time { return t.AddDate(0, 0, 1) },
	"week": func(t time.Time) time.Time { return t.AddDate(0, 0, 7) },
}

// setClock moves the test clock forward, or lets it go.
func setClock(v *visit) error {
	if v.w.Live() {
		return domain.ErrNotFound
	}
	ctx, to := v.r.Context(), v.form.Get("to")
	if to == "real" {
		if _, err := v.submit(domain.Request{Operation: "deleteTestClock"}); err != nil {
			return v.again(err, clockPage)
		}
		return v.done("clock", "clock_real")
	}
	o, err := v.app.Do(ctx, domain.Request{Operation: "getTestClock"})
	if err != nil {
		return err
	}
	body := map[string]any{}
	if step, ok := steps[to]; ok {
		at := cmp.Or(domain.Object{"from": v.form.Get("from")}.Time("from"), o.Time("now")) // a repetition moves it to the same time
		if at == nil {
			return domain.ErrNotFound
		}
		body["now"] = step(at.In(v.Zone)).Truncate(time.Second).Format(time.RFC3339)
	} else if body, err = v.reader().Body(v.fields("setTestClock", []string{"now"}), v.form); err != nil {
		return v.clockRefused(err, o)
	}
	if _, err := v.submit(domain.Request{Operation: "setTestClock", Body: body, Key: v.onceFor(fmt.Sprint(body["now"]))}); err != nil {
		return v.clockRefused(err, o)
	}
	return v.done("clock", "clock_moved")
}

// clockRefused shows the test clock with what is wrong with the time that was entered.
func (v *visit) clockRefused(err error, o domain.Object) error {
	wrong, others := v.wrongOf(err, "now")
	if wrong == "" && others == "" {
		return v.again(err, clockPage)
	}
	return v.show(http.StatusUnprocessableEntity, pages.Clock(v.frame(others), v.clockView(o, wrong)))
}

// availability shows the slots of a day, and why a time cannot be booked.
func availability(v *visit) error {
	q := v.r.URL.Query()
	fields := v.fieldsOfQuery("listAvailability", "service_id", "unit_id")
	choices, err := v.choices(fields)
	if err != nil {
		return err
	}
	day := q.Get("date")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		day = v.w.Now(v.s.Now()).Format(time.DateOnly)
	}
	out := pages.AvailabilityView{
		Date: day, Filters: v.filterInputs(fields, q, choices), Units: v.Inputs(v.fieldsOfQuery("explainAvailability", "unit_id"), q, choices), At: q.Get("at"),
	}
	if err := v.slots(&out, q, day); err != nil {
		return err
	}
	if err := v.why(&out, q); err != nil {
		return err
	}
	return v.show(http.StatusOK, pages.Availability(v.frame(""), out))
}

// slots adds the units of the day with their slots.
func (v *visit) slots(out *pages.AvailabilityView, q url.Values, day string) error {
	query := url.Values{"from": {day}, "to": {day}}
	for _, name := range []string{"service_id", "unit_id"} {
		if s := q.Get(name); s != "" {
			query.Set(name, s)
		}
	}
	list, err := v.app.List(v.r.Context(), "listAvailability", query)
	if wrong, others := v.wrongOf(err, "unit_id"); wrong+others != "" {
		out.Problem = strings.TrimSpace(wrong + " " + others)
		return nil
	}
	if err != nil || len(list.Data) == 0 {
		return err
	}
	one := list.Data[0]
	out.Holiday = one.Object("holiday").Text("name")
	for _, u := range one.Objects("units") {
		row := pages.UnitSlots{Name: u.Text("name"), Status: v.Word(u.Text("status"))}
		for _, s := range u.Objects("slots") {
			if one := v.slot(s, u.Text("unit_id"), q.Get("service_id"), day); one.Text != "" {
				row.Slots = append(row.Slots, one)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return nil
}

// slot is a time of a unit: a free one leads to the form that books it, any other to why it is not.
func (v *visit) slot(s domain.Object, unit, service, day string) pages.SlotView {
	at := s.Time("starts_at")
	if at == nil {
		return pages.SlotView{}
	}
	local := at.In(v.Zone)
	out := pages.SlotView{Text: local.Format("15:04"), Free: s.Text("status") == "available", Word: v.Word(s.Text("status"))}
	link := url.Values{"unit_id": {unit}, "date": {day}, "at": {local.Format("2006-01-02T15:04")}}
	out.Href = v.w.Path("availability") + "?" + link.Encode()
	if out.Free && v.may("createBooking") {
		link = url.Values{"unit_id": {unit}, "event_date": {day}, "event_start_time": {local.Format("15:04")}}
		if service != "" {
			link.Set("service_id", service)
		}
		out.Href = v.w.Path("bookings/new") + "?" + link.Encode()
	}
	return out
}

// why adds whether the unit can be booked at the time that was asked for, and the reason why not.
func (v *visit) why(out *pages.AvailabilityView, q url.Values) error {
	if q.Get("at") == "" || q.Get("unit_id") == "" {
		return nil
	}
	at, err := time.ParseInLocation("2006-01-02T15:04", q.Get("at"), v.Zone)
	if err != nil {
		out.Why = v.T("must_be_datetime")
		return nil
	}
	o, err := v.app.Do(v.r.Context(), domain.Request{Operation: "explainAvailability", Query: url.Values{"unit_id": {q.Get("unit_id")}, "starts_at": {at.Format(time.RFC3339)}}})
	if wrong, others := v.wrongOf(err, "unit_id"); wrong+others != "" {
		out.Why = strings.TrimSpace(wrong + " " + others)
		return nil
	}
	if err != nil {
		return err
	}
	out.Free, out.Why = o.Bool("available"), v.T("why_available")
	if !out.Free {
		out.Why = v.T("why_" + o.Text("reason"))
	}
	return nil
}

// prices shows what a package costs on each day of a year, and which holiday rule decides.
func prices(v *visit) error {
	if !v.may("listPackagePrices") {
		return domain.ErrForbidden
	}
	q := v.r.URL.Query()
	choices, err := v.choices(v.fieldsOfQuery("listPackagePrices", "package_id"))
	if err != nil {
		return err
	}
	now := v.w.Now(v.s.Now())
	year, err := strconv.Atoi(q.Get("year"))
	if err != nil || year < 2000 || year > 2200 {
		year = now.Year()
	}
	out := pages.PricesView{Year: year, Packages: choices["package"], Package: q.Get("package_id")}
	if out.Package == "" && len(out.Packages) > 0 {
		out.Package = out.Packages[0].Value
	}
	if out.Package == "" {
		return v.show(http.StatusOK, pages.Prices(v.frame(""), out))
	}
	first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	o, err := v.app.Do(v.r.Context(), domain.Request{Operation: "listPackagePrices", Query: url.Values{
		"package_id": {out.Package}, "from": {first.Format(time.DateOnly)}, "to": {first.AddDate(1, 0, -1).Format(time.DateOnly)},
	}})
	if app.Refused(err) {
		return domain.ErrNotFound
	}
	if err != nil {
		return err
	}
	out.Currency = o.Text("currency")
	v.yearOf(&out, o, first)
	return v.show(http.StatusOK, pages.Prices(v.frame(""), out))
}

// yearOf arranges the prices as months and weeks, with the rules that are in force.
func (v *visit) yearOf(out *pages.PricesView, o domain.Object, first time.Time) {
	seen := map[string]bool{}
	for i, d := range o.Objects("data") {
		day := first.AddDate(0, 0, i)
		if day.Day() == 1 {
			out.Months = append(out.Months, pages.MonthView{Name: v.Month(day), Before: (int(day.Weekday()) + 6) % 7})
		}
		total, _ := d.Int("total_amount")
		cell := pages.PriceView{Day: strconv.Itoa(day.Day()), Price: v.Plain(domain.Money{Minor: total, Currency: o.Text("currency")})}
		if rule := d.Object("holiday"); rule != nil {
			bps, _ := rule.Int("multiplier_bps")
			cell.Rule = rule.Text("name")
			if id := rule.Text("id"); !seen[id] {
				seen[id] = true
				out.Rules = append(out.Rules, view.Value{Kind: view.Link, Text: rule.Text("name") + ", " + v.Percent(bps), Href: v.w.Path("holiday-rules/" + id)})
			}
		}
		m := &out.Months[len(out.Months)-1]
		m.Days = append(m.Days, cell)
	}
}
