package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// nights is a booking of several days, in New York.
func nights(t *testing.T) map[string]any {
	t.Helper()
	return exampleObject(t, "getBooking", map[string]any{
		"event_local_date": "2027-07-01", "event_local_end_date": "2027-07-08", "event_start_time": "15:00", "event_end_time": "10:00",
		"starts_at": "2027-07-01T19:00:00Z", "ends_at": "2027-07-08T14:00:00Z", "timezone": "America/New_York",
	})
}

// TestTheFormMakesABookingOfSeveralDays checks what the form of a new booking sends with a last day, and the errors of one that does
// not go with the other values.
func TestTheFormMakesABookingOfSeveralDays(t *testing.T) {
	t.Parallel()
	path := where + "bookings/new"
	for name, tc := range map[string]struct {
		date, start, last, end string
		sent                   string // in the body; "": refused
		wrong                  string // the input with an error
	}{
		"several days":  {"2027-07-01", "15:00", "2027-07-08", "10:00", `"ends_at":"2027-07-08T14:00:00Z","exclusive":false,"starts_at":"2027-07-01T19:00:00Z"`, ""},
		"autumn change": {"2027-11-06", "15:00", "2027-11-08", "10:00", `"ends_at":"2027-11-08T15:00:00Z","exclusive":false,"starts_at":"2027-11-06T19:00:00Z"`, ""},
		"one day":       {"2027-07-01", "15:00", "", "10:00", `"event_date":"2027-07-01","event_end_time":"10:00","event_start_time":"15:00","exclusive":false`, ""},
		"whole day":     {"2027-07-01", "", "2027-07-01", "", `"event_date":"2027-07-01"`, ""},
		"no start":      {"2027-07-01", "", "2027-07-08", "10:00", "", "event_start_time"},
		"no end":        {"2027-07-01", "15:00", "2027-07-08", "", "", "event_end_time"},
		"before":        {"2027-07-01", "15:00", "2027-06-30", "16:00", "", "event_local_end_date"},
		"skipped time":  {"2027-03-12", "15:00", "2027-03-14", "02:30", "", "event_end_time"},
		"no date":       {"", "15:00", "2027-03-14", "02:30", "", "event_date"},
		"not a date":    {"2027-07-01", "15:00", "8 July", "10:00", "", "event_local_end_date"},
	} {
		p := newPlatform(t, options{})
		form := p.fill("staff", path, url.Values{"event_date": {tc.date}, "event_start_time": {tc.start}, "event_local_end_date": {tc.last}, "event_end_time": {tc.end}})
		w := p.post("staff", path, form)
		if tc.wrong != "" {
			if doc := parse(t, w.Body.String()); w.Code != http.StatusUnprocessableEntity || len(p.written()) != 0 || messageAt(doc, tc.wrong) == "" {
				t.Errorf("%s: %d, %d writes: %s", name, w.Code, len(p.written()), alerts(doc))
			}
			continue
		}
		if got := string(p.only(t).Body); !strings.Contains(got, tc.sent) || strings.Contains(got, "last") || strings.Count(got, "_date") != strings.Count(tc.sent, "_date") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestTheFormRetainsABookingOfSeveralDays checks that the edit form shows the last day of a booking of several days, sends nothing
// without a change, and sends instants only if the last day changes.
func TestTheFormRetainsABookingOfSeveralDays(t *testing.T) {
	t.Parallel()
	path := where + "bookings/bk" + oneID + "/edit"
	for name, tc := range map[string]struct {
		changed url.Values
		sent    string // "": nothing
	}{
		"nothing":        {nil, ""},
		"the date":       {url.Values{"event_date": {"2027-07-02"}}, `{"event_date":"2027-07-02"}`},
		"the start":      {url.Values{"event_start_time": {"16:00"}}, `{"event_start_time":"16:00"}`},
		"the end":        {url.Values{"event_end_time": {"11:00"}}, `{"event_end_time":"11:00"}`},
		"the last day":   {url.Values{"event_local_end_date": {"2027-07-10"}}, `{"ends_at":"2027-07-10T14:00:00Z"}`},
		"all":            {url.Values{"event_date": {"2027-08-01"}, "event_local_end_date": {"2027-08-03"}, "event_end_time": {"09:00"}}, `{"ends_at":"2027-08-03T13:00:00Z","starts_at":"2027-08-01T19:00:00Z"}`},
		"to one night":   {url.Values{"event_local_end_date": {""}}, `{"ends_at":"2027-07-02T14:00:00Z"}`},
		"to a whole day": {url.Values{"event_start_time": {""}, "event_local_end_date": {""}, "event_end_time": {""}}, `{"event_end_time":null,"event_start_time":null}`},
	} {
		p := newPlatform(t, options{})
		p.setResponse("getBooking", object(nights(t)))
		form := p.fill("staff", path, tc.changed)
		if got := form.Get("event_local_end_date"); tc.changed == nil && got != "2027-07-08" {
			t.Errorf("the form shows the last day %q", got)
		}
		w := p.post("staff", path, form)
		got := ""
		if list := p.written(); len(list) > 0 {
			got = string(list[0].Body)
		}
		if w.Code != http.StatusSeeOther || got != tc.sent {
			t.Errorf("%s: %d, sent %q, want %q", name, w.Code, got, tc.sent)
		}
	}
}

// TestErrorsOfInstants checks that an error of a booking's instants is at the input from which they come.
func TestErrorsOfInstants(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	p.setResponse("getBooking", object(nights(t)))
	p.setResponse("updateBooking", refusal(http.StatusUnprocessableEntity, "invalid_request", map[string][]string{"ends_at": {"A booking lasts at most 366 days."}}))
	path := where + "bookings/bk" + oneID + "/edit"
	doc := parse(t, p.post("staff", path, p.fill("staff", path, url.Values{"event_local_end_date": {"2029-07-10"}})).Body.String())
	if got := messageAt(doc, "event_local_end_date"); got != "A booking lasts at most 366 days." {
		t.Errorf("%q: %s", got, alerts(doc))
	}
}

// TestTheTableShowsTheLastDay checks that the list of bookings shows the last day only of a booking that ends on another day.
func TestTheTableShowsTheLastDay(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{})
	day := exampleObject(t, "getBooking", map[string]any{"event_local_date": "2027-06-01", "event_local_end_date": "2027-06-01"})
	p.setResponse("listBookings", object(map[string]any{"data": []any{nights(t), day}, "has_more": false, "next_cursor": nil}))
	text := textOf(parse(t, p.get("staff", where+"bookings").Body.String()))
	if strings.Count(text, "8 July 2027") != 1 || strings.Count(text, "1 June 2027") != 1 {
		t.Errorf("%s", text)
	}
}

// TestPastCellsDoNotBook checks that empty cells of the calendar whose time has passed link to the form of a new booking only on
// request.
func TestPastCellsDoNotBook(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, options{}) // it is 12:00 in New York on Monday, 1 March 2027
	p.setResponse("listCalendar", object(map[string]any{"data": []any{}, "timezone": "America/New_York", "truncated": false}))
	unit := exampleObject(t, "getUnit", map[string]any{"opening_hours": nil})
	p.setResponse("listUnits", object(map[string]any{"data": []any{unit}, "has_more": false, "next_cursor": nil}))
	links := func(query string) (dates []string, past bool) {
		for _, a := range all(parse(t, p.get("staff", where+"calendar?"+query).Body.String()), "a") {
			to, err := url.Parse(attr(a, "href"))
			if err != nil {
				t.Fatal(err)
			}
			if q := to.Query(); strings.HasSuffix(to.Path, "bookings/new") && q.Has("event_date") {
				dates = append(dates, strings.TrimSpace(q.Get("event_date")+" "+q.Get("event_start_time")))
			} else if q.Get("past") == "true" && textOf(a) == "Record a past booking" {
				past = true
			}
		}
		slices.Sort(dates)
		return slices.Compact(dates), past
	}
	for query, want := range map[string]struct {
		first, last string
		offers      bool
	}{
		"view=week&date=2027-02-25":           {"", "", true},
		"view=week&date=2027-02-25&past=true": {"2027-02-22", "2027-02-28", false},
		"view=week&date=2027-03-01":           {"2027-03-01", "2027-03-07", false},
		"view=month&date=2027-02-01":          {"", "", true},
		"view=month&date=2027-03-01":          {"2027-03-01", "2027-03-31", false},
		"view=day&date=2027-02-28":            {"", "", true},
		"view=day&date=2027-03-01":            {"2027-03-01 12:00", "2027-03-01 23:00", true},
		"view=day&date=2027-03-01&past=true":  {"2027-03-01 00:00", "2027-03-01 23:00", false},
		"view=day&date=2027-03-02":            {"2027-03-02 00:00", "2027-03-02 23:00", false},
	} {
		dates, offers := links(query)
		first, last := "", ""
		if len(dates) > 0 {
			first, last = dates[0], dates[len(dates)-1]
		}
		if first != want.first || last != want.last || offers != want.offers {
			t.Errorf("%s: from %q to %q, offers %v; want %+v", query, first, last, offers, want)
		}
	}
}
