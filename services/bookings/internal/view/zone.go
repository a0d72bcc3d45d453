package view

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast.dev/services/bookings/internal/domain"
)

// calendarZone is a time zone of a calendar's events, with the time from the first to the last of these events.
type calendarZone struct {
	loc      *time.Location
	from, to time.Time
}

// zonesOf returns the time zones of a calendar by name: the operator's, and those of bookings that were created in another one.
func zonesOf(c domain.Calendar) []calendarZone {
	zones := map[string]calendarZone{}
	extend := func(loc *time.Location, from, to time.Time) {
		z, ok := zones[loc.String()]
		if !ok {
			z = calendarZone{loc: loc, from: from, to: to}
		}
		if from.Before(z.from) {
			z.from = from
		}
		if to.After(z.to) {
			z.to = to
		}
		zones[loc.String()] = z
	}
	extend(c.Loc, c.Today.UTC(), c.Today.UTC())
	for _, e := range c.Entries {
		if e.Timed() {
			extend(e.Loc, *e.StartsAt, *e.EndsAt)
		}
	}
	var out []calendarZone
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		out = append(out, zones[name])
	}
	return out
}

// zone writes a VTIMEZONE with one observance for each clock change and no recurrence rules. It writes all known changes, including
// those that follow no rule.
func (w *calendarWriter) zone(z calendarZone) {
	w.line("BEGIN", "VTIMEZONE")
	w.line("TZID", z.loc.String())
	for at := z.from.In(z.loc); ; {
		since, until := at.ZoneBounds()
		w.observance(at, since)
		if until.IsZero() || until.After(z.to) {
			break
		}
		at = until
	}
	w.line("END", "VTIMEZONE")
}

// observance writes the offset at an instant, and since when it applies. A zero time means always.
func (w *calendarWriter) observance(at, since time.Time) {
	kind := "STANDARD"
	if at.IsDST() {
		kind = "DAYLIGHT"
	}
	name, offset := at.Zone()
	before, onset := offset, time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	if !since.IsZero() {
		_, before = since.Add(-time.Second).Zone()
		onset = since.UTC().Add(time.Duration(before) * time.Second) // in the local time before the change
	}
	w.line("BEGIN", kind)
	w.line("DTSTART", onset.Format(formLocal))
	w.line("TZOFFSETFROM", utcOffset(before))
	w.line("TZOFFSETTO", utcOffset(offset))
	w.line("TZNAME", escape(name))
	w.line("END", kind)
}

// utcOffset returns an offset in the format of RFC 5545. It includes seconds only if they are not zero.
func utcOffset(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	text := fmt.Sprintf("%c%02d%02d", sign, seconds/3600, seconds/60%60)
	if seconds%60 != 0 {
		text += fmt.Sprintf("%02d", seconds%60)
	}
	return text
}
