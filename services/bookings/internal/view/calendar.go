package view

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// CalendarType is the media type of a calendar.
const CalendarType = "text/calendar; charset=utf-8"

// refresh is the interval at which calendar programs should read a calendar again.
const refresh = "PT15M"

// Formats of RFC 5545.
const (
	formDate  = "20060102"
	formLocal = "20060102T150405"
	formUTC   = "20060102T150405Z"
)

// Calendar returns a calendar in the format of RFC 5545. The same bookings on the same day always result in the same bytes.
func Calendar(c domain.Calendar) []byte {
	w := &calendarWriter{out: make([]byte, 0, 1024+512*len(c.Entries))}
	w.line("BEGIN", "VCALENDAR")
	w.line("VERSION", "2.0")
	w.line("PRODID", "-//Holdfast//Bookings//EN")
	w.line("CALSCALE", "GREGORIAN")
	w.line("NAME", escape(c.Name))
	w.line("X-WR-CALNAME", escape(c.Name))
	w.line("X-WR-TIMEZONE", c.Loc.String())
	w.line("REFRESH-INTERVAL;VALUE=DURATION", refresh)
	w.line("X-PUBLISHED-TTL", refresh)
	for _, z := range zonesOf(c) {
		w.zone(z)
	}
	for _, e := range c.Entries {
		w.event(e)
	}
	for _, k := range c.Closures {
		w.closure(k)
	}
	w.line("END", "VCALENDAR")
	return w.out
}

// calendarWriter writes content lines.
type calendarWriter struct{ out []byte }

func (w *calendarWriter) event(e domain.CalendarEntry) {
	w.line("BEGIN", "VEVENT")
	w.line("UID", e.ID.String())
	w.line("DTSTAMP", e.UpdatedAt.UTC().Format(formUTC))
	w.line("SEQUENCE", strconv.FormatInt(e.Version, 10))
	if e.Timed() {
		w.time("DTSTART", *e.StartsAt, e.Loc)
		w.time("DTEND", *e.EndsAt, e.Loc)
	} else {
		w.date("DTSTART", e.Day)
		w.date("DTEND", e.Day.AddDays(1))
	}
	w.line("STATUS", calendarStatus[e.Status])
	if calendarEnded[e.Status] != "" {
		w.line("TRANSP", "TRANSPARENT")
	}
	w.line("SUMMARY", escape(summary(e)))
	if text := details(e); text != "" {
		w.line("DESCRIPTION", escape(text))
	}
	w.line("END", "VEVENT")
}

// closure writes a closure as busy time. Times are in UTC, so that they need no description of a zone.
func (w *calendarWriter) closure(c domain.Closure) {
	w.line("BEGIN", "VEVENT")
	w.line("UID", c.ID.String())
	w.line("DTSTAMP", c.UpdatedAt.UTC().Format(formUTC))
	w.line("SEQUENCE", strconv.FormatInt(c.Version, 10))
	if c.From != nil {
		w.date("DTSTART", *c.From)
		w.date("DTEND", c.To.AddDays(1))
	} else {
		w.line("DTSTART", c.StartsAt.UTC().Format(formUTC))
		w.line("DTEND", c.EndsAt.UTC().Format(formUTC))
	}
	w.line("STATUS", "CONFIRMED")
	w.line("SUMMARY", escape("Closed: "+c.Name))
	w.line("END", "VEVENT")
}

// calendarStatus maps the status of a booking to the STATUS of its event.
var calendarStatus = map[domain.Status]string{
	domain.Pending: "TENTATIVE", domain.Confirmed: "CONFIRMED", domain.Completed: "CONFIRMED", domain.NoShow: "CONFIRMED",
	domain.Cancelled: "CANCELLED", domain.Expired: "CANCELLED",
}

// calendarEnded is the prefix of an event's title if its booking no longer takes time. Some programs do not show STATUS and treat
// every event as busy time, but still show the title.
var calendarEnded = map[domain.Status]string{domain.Cancelled: "Cancelled: ", domain.Expired: "Expired: "}

// summary returns the name of what is booked and the booking's number.
func summary(e domain.CalendarEntry) string {
	title := calendarEnded[e.Status]
	if e.Title != nil {
		title += *e.Title + " "
	}
	return title + e.Number
}

// details returns the customer's name and the booking's notes.
func details(e domain.CalendarEntry) string {
	var parts []string
	for _, text := range []*string{e.Customer, e.Notes} {
		if text != nil && *text != "" {
			parts = append(parts, *text)
		}
	}
	return strings.Join(parts, "\n")
}

func (w *calendarWriter) date(name string, d civil.Date) {
	w.line(name+";VALUE=DATE", d.UTC().Format(formDate))
}

// time writes an instant in the local time of its zone. A local time that occurs twice means its first occurrence, so the second
// one is written in UTC.
func (w *calendarWriter) time(name string, at time.Time, loc *time.Location) {
	if repeated(at, loc) {
		w.line(name, at.UTC().Format(formUTC))
		return
	}
	w.line(name+";TZID="+loc.String(), at.In(loc).Format(formLocal))
}

// repeated reports whether the local time of an instant occurred before, because the clock was set back.
func repeated(at time.Time, loc *time.Location) bool {
	local := at.In(loc)
	since, _ := local.ZoneBounds()
	if since.IsZero() {
		return false
	}
	_, now := local.Zone()
	_, before := since.Add(-time.Second).Zone()
	return at.Sub(since) < time.Duration(before-now)*time.Second
}

// line writes a content line. It folds the line so that no line exceeds 75 octets and no character is split.
func (w *calendarWriter) line(name, value string) {
	const most = 75
	rest, room := name+":"+value, most
	for len(rest) > room {
		cut := room
		for !utf8.RuneStart(rest[cut]) {
			cut--
		}
		w.out = append(append(w.out, rest[:cut]...), "\r\n "...)
		rest, room = rest[cut:], most-1 // the leading space counts
	}
	w.out = append(append(w.out, rest...), "\r\n"...)
}

var escapes = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`)

// escape returns a value of the type TEXT. It omits control characters, which a calendar must not contain.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	return escapes.Replace(text)
}
