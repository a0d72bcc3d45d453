// Package civil provides local dates and times of day. It handles days and times that a time zone skips or repeats when its clocks
// change.
package civil

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones of operators, independent of the machine
)

// Date is a day of the proleptic Gregorian calendar, without a time zone. Before defines the order.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// Errors of dates and local times. A caller attaches them to a field.
var (
	ErrDateFormat = errors.New("Must be an RFC 3339 datetime with an offset, or a date YYYY-MM-DD.") //nolint:staticcheck // shown as it stands
	ErrDateRange  = errors.New("Must be between 1900-01-01 and 2199-12-31.")                         //nolint:staticcheck // shown as it stands
	ErrNoSuchDay  = errors.New("This date does not exist in the operator's time zone.")              //nolint:staticcheck // shown as it stands
	ErrNoSuchTime = errors.New("This time does not exist on that day in the operator's time zone.")  //nolint:staticcheck // shown as it stands
)

const (
	firstYear = 1900
	lastYear  = 2199
)

// ParseDate reads YYYY-MM-DD within 1900–2199.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, ErrDateFormat
	}
	return inRange(DateOf(t))
}

// ParseDay parses an RFC 3339 datetime or a bare date as a day in loc. The day must exist there. For a datetime it also returns the
// instant in UTC, to the microsecond.
func ParseDay(s string, loc *time.Location) (Date, *time.Time, error) {
	var at *time.Time
	d, err := ParseDate(s)
	if errors.Is(err, ErrDateFormat) {
		var t time.Time
		if t, err = parseInstant(s); err == nil {
			at = &t
			d, err = inRange(DateOf(t.In(loc)))
		}
	}
	if err != nil {
		return Date{}, nil, err
	}
	if _, ok := d.Start(loc); !ok {
		return Date{}, nil, ErrNoSuchDay
	}
	return d, at, nil
}

// ParseInstant reads an RFC 3339 datetime, or a bare date as the first instant of that day in loc. The
// result is in UTC, to the microsecond.
func ParseInstant(s string, loc *time.Location) (time.Time, error) {
	d, err := ParseDate(s)
	if err == nil {
		t, ok := d.Start(loc)
		if !ok {
			return time.Time{}, ErrNoSuchDay
		}
		return t, nil
	}
	if !errors.Is(err, ErrDateFormat) {
		return time.Time{}, err
	}
	t, err := parseInstant(s)
	if err != nil {
		return time.Time{}, err
	}
	if _, err := inRange(DateOf(t.In(loc))); err != nil {
		return time.Time{}, err
	}
	return t, nil
}

// parseInstant also accepts the lower-case t and z that RFC 3339 allows.
func parseInstant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
	if err != nil || strings.Contains(s, ",") {
		return time.Time{}, ErrDateFormat
	}
	return t.UTC().Truncate(time.Microsecond), nil
}

func inRange(d Date) (Date, error) {
	if err := d.Check(); err != nil {
		return Date{}, err
	}
	return d, nil
}

// Check returns ErrDateRange for a day outside 1900 to 2199.
func (d Date) Check() error {
	if d.Year < firstYear || d.Year > lastYear {
		return ErrDateRange
	}
	return nil
}

// DateOf returns the day of t in its own location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{Year: y, Month: m, Day: d}
}

// String returns YYYY-MM-DD.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// AddDays adds calendar days, regardless of their length in hours.
func (d Date) AddDays(n int) Date {
	return DateOf(time.Date(d.Year, d.Month, d.Day+n, 0, 0, 0, 0, time.UTC))
}

// Before reports whether d is an earlier day than o.
func (d Date) Before(o Date) bool { return d.UTC().Before(o.UTC()) }

// DaysUntil returns the number of days from d to o.
func (d Date) DaysUntil(o Date) int { return int(o.UTC().Sub(d.UTC()) / (24 * time.Hour)) }

// UTC returns the day's midnight in UTC. It is a label for counting and storing, not an instant in the operator's time zone.
func (d Date) UTC() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }

// Value implements driver.Valuer for a date column; nil is null.
func (d *Date) Value() (driver.Value, error) {
	if d == nil {
		return nil, nil // A nil value is null.
	}
	return d.UTC(), nil
}

// Scan implements sql.Scanner for a date column.
func (d *Date) Scan(src any) error {
	t, ok := src.(time.Time)
	if !ok {
		return fmt.Errorf("scan date from %T", src)
	}
	*d = DateOf(t.UTC())
	return nil
}

// Start returns the day's first instant in loc, in UTC. It returns false if the day does not exist there. If midnight is skipped,
// the day starts at the instant after the gap. If midnight occurs twice, the day starts at the first one.
func (d Date) Start(loc *time.Location) (time.Time, bool) {
	midnight := d.UTC()
	var first time.Time
	found := false
	for _, z := range zonesAround(midnight, loc) {
		at := midnight.Add(-z.offset)
		if at.Before(z.start) {
			at = z.start
		}
		if !at.Before(z.end) || DateOf(at.In(loc)) != d {
			continue
		}
		if !found || at.Before(first) {
			first, found = at, true
		}
	}
	return first, found
}

// End returns the first instant of the next day that exists in loc, so that there is no gap between whole days.
func (d Date) End(loc *time.Location) time.Time {
	for next := d.AddDays(1); ; next = next.AddDays(1) {
		if t, ok := next.Start(loc); ok {
			return t
		}
	}
}

// At returns the instant at which the clock of loc shows c on this day, the first one if it does so twice. It returns false if the
// clock never shows c.
func (d Date) At(c Clock, loc *time.Location) (time.Time, bool) {
	wall := d.UTC().Add(time.Duration(c.Minutes()) * time.Minute)
	var first time.Time
	found := false
	for _, z := range zonesAround(wall, loc) {
		at := wall.Add(-z.offset)
		if at.Before(z.start) || !at.Before(z.end) {
			continue
		}
		if !found || at.Before(first) {
			first, found = at, true
		}
	}
	return first, found
}

// Reach returns the first instant at which the clock of loc reaches or skips the given number of minutes after 00:00 of the day.
// More than 24 hours extend into the next day.
func (d Date) Reach(minutes int, loc *time.Location) time.Time {
	wall := d.UTC().Add(time.Duration(minutes) * time.Minute)
	zones := zonesAround(wall, loc)
	for _, z := range zones {
		at := wall.Add(-z.offset)
		if at.Before(z.start) {
			at = z.start
		}
		if at.Before(z.end) {
			return at
		}
	}
	return zones[len(zones)-1].end // not reached: the clock passes wall within these periods
}

// Skips reports whether text is a local time that the clock of loc skips: its date and time are in a gap, and its offset is the one
// before or after the gap. A time with Z is not a local time.
func Skips(text string, loc *time.Location) bool {
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil || t.Location() == time.UTC {
		return false
	}
	d, c := DateOf(t), ClockOf(t)
	if _, exists := d.At(c, loc); exists {
		return false
	}
	gap := d.Reach(c.Minutes(), loc)
	_, offset := t.Zone()
	_, before := gap.Add(-time.Nanosecond).In(loc).Zone()
	_, after := gap.In(loc).Zone()
	return offset == before || offset == after
}

// zone is a period in which loc has one offset from UTC.
type zone struct {
	start, end time.Time
	offset     time.Duration
}

// farthest is the largest difference that any wall clock ever had from UTC, with a margin for a skipped day.
const farthest = 40 * time.Hour

// zonesAround returns the zones in which the wall time may occur. The wall time is passed as if it were UTC. It does not use
// time.Date, because time.Date picks an arbitrary side around a change of the offset.
func zonesAround(wall time.Time, loc *time.Location) []zone {
	zones := make([]zone, 0, 3)
	for at := wall.Add(-farthest); !at.After(wall.Add(farthest)); {
		local := at.In(loc)
		_, seconds := local.Zone()
		start, end := local.ZoneBounds()
		z := zone{start: start.UTC(), end: end.UTC(), offset: time.Duration(seconds) * time.Second}
		switch {
		case end.IsZero():
			z.end = wall.Add(10 * farthest)
		case !end.After(at):
			// Beyond the table of a zone, ZoneBounds ends the last period of every year after 365 days. This adds the 366th.
			z.end = z.end.Add(24 * time.Hour)
		}
		zones = append(zones, z)
		at = z.end
	}
	return zones
}

// Clock is a time of day on the operator's wall clock, as "HH:MM".
type Clock string

// ParseClock reads HH:MM from 00:00 to 23:59.
func ParseClock(s string) (Clock, bool) {
	if len(s) != 5 || s[2] != ':' || !digit(s[0]) || !digit(s[1]) || !digit(s[3]) || !digit(s[4]) {
		return "", false
	}
	return Clock(s), s[:2] <= "23" && s[3:] <= "59"
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

// ClockOf returns the time of day of t in its own location, to the minute.
func ClockOf(t time.Time) Clock { return Clock(fmt.Sprintf("%02d:%02d", t.Hour(), t.Minute())) }

// Minutes returns the number of minutes since 00:00.
func (c Clock) Minutes() int {
	if len(c) != 5 {
		return 0
	}
	return int(c[0]-'0')*600 + int(c[1]-'0')*60 + int(c[3]-'0')*10 + int(c[4]-'0')
}

var locations sync.Map // IANA name → *time.Location; bounded by the number of zones, because only known names are added

// Location returns the zone of an IANA name. Each zone is parsed once, because parsing takes longer than computing a price.
func Location(name string) (*time.Location, error) {
	if loc, ok := locations.Load(name); ok {
		return loc.(*time.Location), nil // The map holds no other type.
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("timezone %q is unknown", name)
	}
	locations.Store(name, loc)
	return loc, nil
}

// ZoneColumn is a text column with the IANA name of a zone.
type ZoneColumn struct{ loc **time.Location }

// ZoneOf returns the column of a zone.
func ZoneOf(loc **time.Location) *ZoneColumn { return &ZoneColumn{loc} }

// Value implements driver.Valuer.
func (c *ZoneColumn) Value() (driver.Value, error) { return (*c.loc).String(), nil }

// Scan implements sql.Scanner.
func (c *ZoneColumn) Scan(src any) (err error) {
	name, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan timezone from %T", src)
	}
	*c.loc, err = Location(name)
	return err
}
