package domain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CalendarBooking is a booking in a response of bookings for a calendar.
type CalendarBooking struct {
	ID             string     `json:"id"`
	Number         string     `json:"number"`
	Status         string     `json:"status"`
	CustomerName   *string    `json:"customer_name"`
	UnitID         *string    `json:"unit_id"`
	GuestCount     *int       `json:"guest_count"`
	Exclusive      bool       `json:"exclusive"`
	EventLocalDate string     `json:"event_local_date"`
	StartsAt       *time.Time `json:"starts_at"`
	EndsAt         *time.Time `json:"ends_at"`
	EventStartTime *string    `json:"event_start_time"`
	EventEndTime   *string    `json:"event_end_time"`
	HoldExpiresAt  *time.Time `json:"hold_expires_at"`
	Version        int64      `json:"version"`

	Departure *Departure `json:"-"` // nil: a booking
}

// Departure contains the bookings of a slot of a unit in seats mode whose guests take seats.
type Departure struct {
	Bookings, Taken, Seats int
}

// TakesSeats reports whether the guests of a booking with that status are expected or were present. Guests who did not show up
// take no seats.
func TakesSeats(status string) bool {
	return status == "pending" || status == "confirmed" || status == "completed"
}

// Add counts a booking. Without a number of guests, it has one.
func (d *Departure) Add(status string, guests int, exclusive bool) {
	switch {
	case !TakesSeats(status):
		return
	case exclusive:
		d.Taken = d.Seats
	default:
		d.Taken += max(1, guests)
	}
	d.Bookings++
}

// Span is a range of days that a calendar shows.
type Span string

// The ranges.
const (
	DaySpan   Span = "day"
	WeekSpan  Span = "week"
	MonthSpan Span = "month"
)

// Range returns the first and the last day of the range around a day; a week begins on Monday.
func (s Span) Range(day time.Time) (from, to time.Time) {
	switch s {
	case DaySpan:
		return day, day
	case WeekSpan:
		from = day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
		return from, from.AddDate(0, 0, 6)
	default:
		from = time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)
		return from, from.AddDate(0, 1, -1)
	}
}

// Move returns a day of the range after, or with a negative n before, the range around a day.
func (s Span) Move(day time.Time, n int) time.Time {
	from, _ := s.Range(day)
	switch s {
	case DaySpan:
		return day.AddDate(0, 0, n)
	case WeekSpan:
		return from.AddDate(0, 0, 7*n)
	default:
		return from.AddDate(0, n, 0)
	}
}

// Bookings holds the bookings of a range of days.
type Bookings struct {
	Data      []CalendarBooking `json:"data"`
	Truncated bool              `json:"truncated"` // there are more than the response contains
	Closures  []CalendarClosure `json:"closures"`
}

// CalendarClosure is a closure in a response of bookings for a calendar.
type CalendarClosure struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	UnitIDs  []string  `json:"unit_ids"` // nil: all units
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

// Closes reports whether the closure closes a unit.
func (c CalendarClosure) Closes(unit string) bool {
	return unit != "" && (c.UnitIDs == nil || slices.Contains(c.UnitIDs, unit))
}

// Quarters is how many columns a day has.
const Quarters = 96

// Slot is a booking at its position in a calendar.
type Slot struct {
	CalendarBooking

	Column, Width int    // in quarters of an hour, in the view of a day
	Track         int    // in the view of a day, from 0: slots that overlap are in different tracks
	Start         string // HH:MM on this day, "" for a whole day
	First         bool   // the first day of the booking: it can be moved only there
}

// CalendarRow is a unit with its bookings on each day of a calendar.
type CalendarRow struct {
	UnitID, Name, Status string
	Days                 [][]Slot
	More                 []int               // for each day, the number of omitted bookings
	Open                 [][Quarters]bool    // for each day, the quarters of an hour in which the unit is open
	Closed               [][]CalendarClosure // for each day, the closures that name the unit
}

// Unit holds the data of a unit that a calendar needs.
type Unit struct {
	ID, Name, Status string
	Hours            Object // by weekday; nil: always open
	Seats            int    // of a slot, in seats mode; 0: exclusive
}

// departures replaces the bookings that share a slot of a unit with seats by one for all of them.
func departures(units []Unit, bookings []CalendarBooking) []CalendarBooking {
	seats := map[string]int{}
	for _, u := range units {
		if u.Seats > 0 {
			seats[u.ID] = u.Seats
		}
	}
	if len(seats) == 0 {
		return bookings
	}
	type slot struct {
		unit     string
		from, to int64
	}
	shared, out := map[slot]*Departure{}, make([]CalendarBooking, 0, len(bookings))
	for _, b := range bookings {
		if b.UnitID == nil || seats[*b.UnitID] == 0 || b.StartsAt == nil || b.EndsAt == nil {
			out = append(out, b)
			continue
		}
		at := slot{*b.UnitID, b.StartsAt.UnixMicro(), b.EndsAt.UnixMicro()}
		if shared[at] == nil {
			shared[at] = &Departure{Seats: seats[*b.UnitID]}
			b.Departure, b.HoldExpiresAt = shared[at], nil
			out = append(out, b)
		}
		guests := 0
		if b.GuestCount != nil {
			guests = *b.GuestCount
		}
		shared[at].Add(b.Status, guests, b.Exclusive)
	}
	return out
}

// CalendarRows places bookings on the units and days of a calendar. Bookings without a unit are in a separate first row.
func CalendarRows(units []Unit, bookings []CalendarBooking, days []time.Time, zone *time.Location) []CalendarRow {
	rows := make([]CalendarRow, len(units)+1)
	at := map[string]int{}
	for i, u := range units {
		rows[i+1] = CalendarRow{UnitID: u.ID, Name: u.Name, Status: u.Status, Days: make([][]Slot, len(days)), More: make([]int, len(days)), Open: u.open(days)}
		at[u.ID] = i + 1
	}
	rows[0].Days, rows[0].More, rows[0].Open = make([][]Slot, len(days)), make([]int, len(days)), Unit{}.open(days)
	for _, b := range departures(units, bookings) {
		i := 0
		if b.UnitID != nil {
			var shown bool
			if i, shown = at[*b.UnitID]; !shown {
				continue
			}
		}
		rows[i].place(b, days, zone)
	}
	for _, l := range rows {
		for _, slots := range l.Days {
			slices.SortStableFunc(slots, func(a, b Slot) int { return cmp.Compare(a.Column, b.Column) })
			setTracks(slots)
		}
	}
	if !slices.ContainsFunc(rows[0].Days, func(s []Slot) bool { return len(s) > 0 }) {
		return rows[1:]
	}
	return rows
}

// MostTracks is the maximum number of tracks of a row. Further slots share the last track.
const MostTracks = 40

// setTracks puts each of the slots, which are sorted by column, in the first free track.
func setTracks(slots []Slot) {
	var free []int // for each track, the first free column
	for i := range slots {
		s := &slots[i]
		track := slices.IndexFunc(free, func(column int) bool { return column <= s.Column })
		if track < 0 && len(free) < MostTracks {
			track, free = len(free), append(free, 0)
		}
		if track < 0 {
			track = MostTracks - 1
		}
		s.Track, free[track] = track, s.Column+s.Width
	}
}

// Tracks returns the number of tracks of a day, at least one.
func (l CalendarRow) Tracks(day int) int {
	tracks := 1
	for _, s := range l.Days[day] {
		tracks = max(tracks, s.Track+1)
	}
	return tracks
}

// NameShown is how many bytes of a customer's name a calendar shows.
const NameShown = 20

// Label returns a calendar's label for a booking: the customer's name, else its number. For a departure, it is the seats taken.
func (b CalendarBooking) Label() string {
	if d := b.Departure; d != nil {
		return strconv.Itoa(d.Taken) + "/" + strconv.Itoa(d.Seats)
	}
	if b.CustomerName == nil {
		return b.Number
	}
	return Short(*b.CustomerName, NameShown)
}

// Short returns a text of at most that many bytes. A shortened text ends with an ellipsis.
func Short(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// place adds a booking to each day that it touches.
func (l *CalendarRow) place(b CalendarBooking, days []time.Time, zone *time.Location) {
	if len(days) == 0 {
		return
	}
	origin := dayNumber(days[0])
	if b.StartsAt == nil || b.EndsAt == nil {
		if date, err := time.Parse(time.DateOnly, b.EventLocalDate); err == nil {
			if i := dayNumber(date) - origin; i >= 0 && i < len(days) {
				l.Days[i] = append(l.Days[i], Slot{CalendarBooking: b, Width: Quarters, First: true})
			}
		}
		return
	}
	start, end := b.StartsAt.In(zone), b.EndsAt.In(zone)
	first, last, ending := dayNumber(start)-origin, dayNumber(end.Add(-time.Nanosecond))-origin, dayNumber(end)-origin
	for i := max(first, 0); i <= min(last, len(days)-1); i++ {
		s := Slot{CalendarBooking: b, Width: Quarters, First: i == first}
		if i == first {
			s.Column, s.Start = quarter(start), start.Format("15:04")
		}
		stop := Quarters
		if i == last && ending == i {
			stop = quarter(end.Add(14 * time.Minute))
		}
		if b.EventStartTime == nil && s.Column == 0 {
			s.Start = ""
		}
		s.Width = max(1, stop-s.Column)
		l.Days[i] = append(l.Days[i], s)
	}
}

// Close closes the units of the rows for the time of the closures. It returns the closures of all units for each day.
func Close(rows []CalendarRow, closures []CalendarClosure, days []time.Time, zone *time.Location) [][]CalendarClosure {
	all := make([][]CalendarClosure, len(days))
	for i := range rows {
		rows[i].Closed = make([][]CalendarClosure, len(days))
	}
	for _, c := range closures {
		start, end := c.StartsAt.In(zone), c.EndsAt.In(zone)
		for i, day := range days {
			first, last := dayNumber(start)-dayNumber(day), dayNumber(end.Add(-time.Nanosecond))-dayNumber(day)
			if first > 0 || last < 0 {
				continue
			}
			if c.UnitIDs == nil {
				all[i] = append(all[i], c)
			}
			from, to := 0, Quarters
			if first == 0 {
				from = quarter(start)
			}
			if dayNumber(end) == dayNumber(day) {
				to = quarter(end.Add(14 * time.Minute))
			}
			for k := range rows {
				rows[k].close(c, i, from, to)
			}
		}
	}
	return all
}

// close closes the quarters of an hour of a day if the closure closes the row's unit.
func (l *CalendarRow) close(c CalendarClosure, day, from, to int) {
	if !c.Closes(l.UnitID) {
		return
	}
	for q := from; q < to; q++ {
		l.Open[day][q] = false
	}
	if c.UnitIDs != nil {
		l.Closed[day] = append(l.Closed[day], c)
	}
}

// dayNumber counts days by the date that t has in its zone.
func dayNumber(t time.Time) int {
	return int(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

func quarter(t time.Time) int { return t.Hour()*4 + t.Minute()/15 }

// open reports the open quarters of an hour of each day.
func (u Unit) open(days []time.Time) [][Quarters]bool {
	var week [7][Quarters]bool
	for day := range week {
		for q := range Quarters {
			week[day][q] = u.Status != "maintenance" && u.Status != "retired" && (u.Hours == nil || u.openAt(time.Weekday(day), q))
		}
	}
	out := make([][Quarters]bool, len(days))
	for i, day := range days {
		out[i] = week[day.Weekday()]
	}
	return out
}

func (u Unit) openAt(day time.Weekday, q int) bool {
	return u.opened(day, q*15) || u.opened((day+6)%7, q*15+24*60) // opening hours can extend past midnight
}

// opened reports whether the opening hours of a weekday contain a time, in minutes from that day's midnight.
func (u Unit) opened(day time.Weekday, at int) bool {
	ranges, _ := u.Hours[Weekdays[(int(day)+6)%7]].([]any)
	for _, one := range ranges {
		pair, _ := one.([]any)
		if len(pair) != 2 {
			continue
		}
		from, to := minutes(pair[0]), minutes(pair[1])
		if to <= from {
			to += 24 * 60
		}
		if at >= from && at < to {
			return true
		}
	}
	return false
}

func minutes(v any) int {
	s, _ := v.(string)
	h, m, _ := strings.Cut(s, ":")
	hours, _ := strconv.Atoi(h)
	rest, _ := strconv.Atoi(m)
	return hours*60 + rest
}

// AnyOpen reports whether a unit is open at all on a day of the row.
func (l CalendarRow) AnyOpen(day int) bool { return slices.Contains(l.Open[day][:], true) }

// Days returns the days from the first to the last.
func Days(from, to time.Time) []time.Time {
	var out []time.Time
	for d := from; !d.After(to); d = d.AddDate(0, 0, 1) {
		out = append(out, d)
	}
	return out
}

// HolidayOn returns the name of the first active rule that applies on a day; "" for none.
func HolidayOn(rules []Object, day time.Time) string {
	date := day.Format(time.DateOnly)
	for _, r := range rules {
		from, to := r.Text("date_from"), r.Text("date_to")
		if r.Text("recurrence") == "yearly" && len(from) == 10 && len(to) == 10 {
			d := date[5:]
			if from[5:] <= to[5:] && d >= from[5:] && d <= to[5:] || from[5:] > to[5:] && (d >= from[5:] || d <= to[5:]) {
				return r.Text("name")
			}
			continue
		}
		if date >= from && date <= to {
			return r.Text("name")
		}
	}
	return ""
}
