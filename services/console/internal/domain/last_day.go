package domain

import (
	"net/url"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/forms"
)

// LastDay is the form field for the last day of a booking of several days. A request has no such field: the form sends the start and the
// end as instants.
const LastDay = "event_local_end_date"

// FormFields are the fields of forms that the contract does not have, by name.
var FormFields = map[string]forms.Field{LastDay: {Name: LastDay, Kind: "string", Format: "date", Nullable: true}}

// InstantInputs are the inputs of a booking that show the errors of its instants.
var InstantInputs = map[string]string{"starts_at": "event_start_time", "ends_at": LastDay}

// lastDay returns the last day of a booking of several days. It returns "" if the end follows from the date and the times: an end at
// or before the start is on the next day.
func lastDay(o Object) string {
	first, last := o.Text("event_local_date"), o.Text(LastDay)
	start, end := o.Text("event_start_time"), o.Text("event_end_time")
	if start == "" || last == usualEnd(first, start, end) {
		return ""
	}
	return last
}

// usualEnd returns the day of the end of a booking without a last day; "" if the date is not valid.
func usualEnd(date, start, end string) string {
	day, err := civil.ParseDate(date)
	if err != nil {
		return ""
	}
	if end <= start {
		day = day.AddDays(1)
	}
	return day.String()
}

// SetLastDay replaces the last day in the body of a booking with its start and end as instants. o is the booking before the change,
// or nil. Without a change of the last day, the body stays as it is, and a booking that moves keeps its length.
func (r Reader) SetLastDay(body map[string]any, form url.Values, o Object) error {
	given, changed := body[LastDay]
	delete(body, LastDay)
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	last, _ := given.(string)
	date, start, end := text("event_date"), text("event_start_time"), text("event_end_time")
	switch {
	case !changed, last == "" && (o == nil || start == "" || end == ""), last == date && start == "" && end == "":
		return nil
	case start == "":
		return apperr.Field("event_start_time", "Is required, because the booking has a last day.")
	case end == "":
		return apperr.Field("event_end_time", "Is required, because the booking has a last day.")
	case last == "":
		last = usualEnd(date, start, end)
	}
	zone := r.zone(o)
	to, err := instant(LastDay, last, "event_end_time", end, zone)
	from, wrong := instant("event_date", date, "event_start_time", start, zone)
	if err = apperr.Join(wrong, err); err != nil {
		return err
	}
	was := o.Time("starts_at")
	stays := was != nil && date == o.Text("event_local_date") && start == o.Text("event_start_time")
	if stays {
		from = *was
	}
	if !to.After(from) {
		return apperr.Field(LastDay, "Must be after the start.")
	}
	for _, name := range []string{"event_date", "event_start_time", "event_end_time"} {
		delete(body, name)
	}
	if !stays {
		body["starts_at"] = from.Format(time.RFC3339)
	}
	body["ends_at"] = to.Format(time.RFC3339)
	return nil
}

// zone returns the time zone of a booking's local times.
func (r Reader) zone(o Object) *time.Location {
	if zone, err := civil.Location(o.Text("timezone")); err == nil && o.Text("timezone") != "" {
		return zone
	}
	return r.Zone
}

// instant returns the first instant at which the clock of a zone shows a time on a day. The error is on the field that is wrong.
func instant(dayName, day, clockName, clock string, zone *time.Location) (time.Time, error) {
	date, err := civil.ParseDate(day)
	if err != nil {
		return time.Time{}, apperr.Field(dayName, "%s", err)
	}
	at, ok := civil.ParseClock(clock)
	if !ok {
		return time.Time{}, apperr.Field(clockName, "Must be a time of day in the format HH:MM.")
	}
	t, ok := date.At(at, zone)
	if !ok {
		return time.Time{}, apperr.Field(clockName, "%s", civil.ErrNoSuchTime)
	}
	return t, nil
}
