package domain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
)

// Span is a half-open time range.
type Span struct{ From, To time.Time }

// Overlaps reports whether the spans share time. Spans that only touch do not overlap.
func (s Span) Overlaps(o Span) bool { return s.From.Before(o.To) && o.From.Before(s.To) }

// Midnight is the end of a day. It is the only time of day after 23:59, and is valid only as an end.
const Midnight civil.Clock = "24:00"

// Opening is one opening of a weekday, by the operator's clock. It belongs to the day on which it opens. An opening that closes at
// or before its opening time closes on the next day.
type Opening struct{ Open, Close civil.Clock }

// closes returns the minutes from 00:00 of the day to the closing, which can be on the next day.
func (o Opening) closes() int {
	if end := o.Close.Minutes(); end > o.Open.Minutes() {
		return end
	}
	return o.Close.Minutes() + Midnight.Minutes()
}

// OpeningHours contains the openings of each weekday. Nil means always open: one opening per date, 00:00–24:00. Otherwise, a
// missing weekday is closed, like one with an empty list. The openings of one day do not overlap; those of neighboring days can.
type OpeningHours map[time.Weekday][]Opening

// weekdays contains the public names, in the order in which failures are reported.
var weekdays = []struct {
	name string
	day  time.Weekday
}{
	{"mon", time.Monday},
	{"tue", time.Tuesday},
	{"wed", time.Wednesday},
	{"thu", time.Thursday},
	{"fri", time.Friday},
	{"sat", time.Saturday},
	{"sun", time.Sunday},
}

// ParseOpeningHours reads the public form, {"mon": [["09:00", "17:00"]], …}. It returns nil for nil. It reports every failure on
// its dotted field, such as opening_hours.mon.0.
func ParseOpeningHours(table map[string][][]string) (OpeningHours, error) {
	if table == nil {
		return nil, nil // Nil hours mean always open.
	}
	hours := make(OpeningHours, len(table))
	var failed []apperr.FieldError
	known := make(map[string]bool, len(weekdays))
	for _, w := range weekdays {
		known[w.name] = true
		list, given := table[w.name]
		if !given {
			continue
		}
		openings, wrong := parseOpenings("opening_hours."+w.name, list)
		hours[w.day], failed = openings, append(failed, wrong...)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if !known[name] {
			failed = append(failed, apperr.FieldError{
				Field: "opening_hours." + name, Message: "Must be one of mon, tue, wed, thu, fri, sat, sun.",
			})
		}
	}
	if len(failed) > 0 {
		return nil, apperr.Fields(failed)
	}
	return hours, nil
}

// parseOpenings reads one weekday. It does not compare a malformed opening with the others.
func parseOpenings(name string, list [][]string) ([]Opening, []apperr.FieldError) {
	openings := make([]Opening, 0, len(list))
	var failed []apperr.FieldError
	fail := func(field, message string) {
		failed = append(failed, apperr.FieldError{Field: field, Message: message})
	}
	for i, pair := range list {
		field := fmt.Sprintf("%s.%d", name, i)
		if len(pair) != 2 {
			fail(field, `Must be an opening and a closing time, as in ["09:00", "17:00"].`)
			continue
		}
		from, ok := civil.ParseClock(pair[0])
		if !ok {
			fail(field+".0", "Must be a time of day in the format HH:MM.")
		}
		to, okTo := civil.ParseClock(pair[1])
		if pair[1] == string(Midnight) {
			to, okTo = Midnight, true
		}
		if !okTo {
			fail(field+".1", "Must be a time of day in the format HH:MM, or 24:00.")
		}
		if !ok || !okTo {
			continue
		}
		o := Opening{Open: from, Close: to}
		if at := slices.IndexFunc(openings, o.meets); at >= 0 {
			fail(field, fmt.Sprintf("Overlaps the opening hours %s–%s of that day.", openings[at].Open, openings[at].Close))
		}
		openings = append(openings, o)
	}
	return openings, failed
}

// meets reports whether two openings of one day overlap.
func (o Opening) meets(other Opening) bool {
	return o.Open.Minutes() < other.closes() && other.Open.Minutes() < o.closes()
}

// Table returns the public form, with each day's openings in the given order. It returns nil for nil.
func (h OpeningHours) Table() map[string][][]string {
	if h == nil {
		return nil
	}
	table := make(map[string][][]string, len(h))
	for _, w := range weekdays {
		openings, given := h[w.day]
		if !given {
			continue
		}
		list := make([][]string, 0, len(openings))
		for _, o := range openings {
			list = append(list, []string{string(o.Open), string(o.Close)})
		}
		table[w.name] = list
	}
	return table
}

// String returns the openings in the order of weekdays. Two tables with the same openings have the same string. Nil has the string
// "always", unlike a table without openings.
func (h OpeningHours) String() string {
	if h == nil {
		return "always"
	}
	var b strings.Builder
	for _, w := range weekdays {
		for _, o := range h[w.day] {
			b.WriteString(w.name + " " + string(o.Open) + "-" + string(o.Close) + " ")
		}
	}
	return b.String()
}

// MarshalJSON implements json.Marshaler. It returns the public form, and null for nil.
func (h OpeningHours) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(h.Table())
	if err != nil {
		return nil, fmt.Errorf("opening hours: %w", err)
	}
	return raw, nil
}

// UnmarshalJSON implements json.Unmarshaler. It refuses what ParseOpeningHours refuses.
func (h *OpeningHours) UnmarshalJSON(raw []byte) error {
	var table map[string][][]string
	if err := json.Unmarshal(raw, &table); err != nil {
		return fmt.Errorf("opening hours: %w", err)
	}
	parsed, err := ParseOpeningHours(table)
	*h = parsed
	return err
}

// On returns the openings that belong to the date, as instants in order of time. The list is empty if the unit is closed or the
// date does not exist in loc. An end that the clock skips moves to the end of the gap. An opening that lies entirely inside a gap
// is omitted.
func (h OpeningHours) On(d civil.Date, loc *time.Location) []Span {
	start, ok := d.Start(loc)
	if !ok {
		return nil
	}
	if h == nil {
		return []Span{{From: start, To: d.End(loc)}}
	}
	openings := h[d.UTC().Weekday()]
	spans := make([]Span, 0, len(openings))
	for _, o := range openings {
		s := Span{From: d.Reach(o.Open.Minutes(), loc), To: d.Reach(o.closes(), loc)}
		if s.From.Before(s.To) {
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) })
	return spans
}

// Cover reports whether the unit is open during all of s. Openings that touch, such as 00:00–24:00 on two consecutive days, count
// as one.
func (h OpeningHours) Cover(s Span, loc *time.Location) bool {
	if h == nil {
		return true
	}
	open := s.From                                // the unit is open in all of s before this instant
	last := civil.DateOf(s.To.In(loc)).AddDays(1) // if the clock goes back over midnight, an opening can begin before its date starts again
	for d := civil.DateOf(s.From.In(loc)).AddDays(-1); !last.Before(d); d = d.AddDays(1) {
		for _, o := range h.On(d, loc) {
			if o.From.After(open) {
				return false
			}
			if o.To.After(open) {
				open = o.To
			}
			if !open.Before(s.To) {
				return true
			}
		}
	}
	return false
}

// refuses returns the error of a schedule at which the unit is closed. The error names instants if the client gave instants.
func (h OpeningHours) refuses(s Schedule, byInstant bool, loc *time.Location) error {
	switch {
	case h == nil || s.StartsAt == nil:
		return nil
	case !s.Timed() && len(h.On(s.Day, loc)) == 0:
		return field("event_date", "The unit is closed on that day.")
	case !s.Timed() || h.Cover(Span{From: *s.StartsAt, To: *s.EndsAt}, loc):
		return nil
	}
	name := "event_start_time"
	if byInstant {
		name = "starts_at"
	}
	return field(name, "Must be within the unit's opening hours on that day: %s.", h.describe(s.Day))
}

// describe describes a day's openings in a readable form.
func (h OpeningHours) describe(d civil.Date) string {
	openings := h[d.UTC().Weekday()]
	if len(openings) == 0 {
		return "closed"
	}
	texts := make([]string, 0, len(openings))
	for _, o := range openings {
		texts = append(texts, string(o.Open+"–"+o.Close))
	}
	return strings.Join(texts, ", ")
}
