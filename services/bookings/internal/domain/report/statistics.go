package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"holdfast.dev/libs/civil"

	"holdfast.dev/services/bookings/internal/domain"
)

// Bounds of statistics, as in proto/internal/bookings.yaml.
const (
	MaxStatisticsDays = 92
	MaxBooked         = 100_000
)

// Booked contains the data of a booking for statistics. The booking is neither canceled nor expired.
type Booked struct {
	Day                   civil.Date
	Status                domain.Status
	Currency              string
	Gross, Paid, Refunded int64
	Unit                  domain.UnitID // zero: none
	Timed                 bool          // false: a whole day
	During                domain.Span   // of a booking with a unit, without buffers
}

// Day contains the totals of a day.
type Day struct {
	Date          civil.Date
	Bookings      int
	Revenue, Paid int64         // in the operator's currency
	Booked, Open  time.Duration // of all units together
}

// Statistics sums up the days. The units are the active ones and those of the bookings. Statistics stops when ctx ends.
func Statistics(ctx context.Context, d Days, currency string, units []domain.Unit, list []Booked) ([]Day, error) {
	s := newSummary(d)
	openings := make(map[domain.UnitID][][]domain.Span, len(units))
	for _, u := range units {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		open, err := s.openings(u.OpeningHours)
		if err != nil {
			return nil, err
		}
		openings[u.ID] = open
		if u.Status == domain.UnitActive {
			for i := range s.days {
				s.days[i].Open += length(open[i+1])
			}
		}
	}
	booked := make(map[occupied]bool)
	for _, b := range list {
		s.count(b, currency)
		open, known := openings[b.Unit]
		at := occupied{b.Unit, b.During.From.UnixMicro(), b.During.To.UnixMicro()}
		if known && !booked[at] {
			booked[at] = true
			s.book(b, open)
		}
	}
	return s.days, nil
}

// occupied is the time of a booking, which the bookings of a session share. It counts once.
type occupied struct {
	unit     domain.UnitID
	from, to int64 // in microseconds
}

// summary sums up days. Its lists by day begin one day before the days of the report, because openings can continue into the first
// day, and end one day after them.
type summary struct {
	days  []Day
	first civil.Date  // the day before the report
	begin []time.Time // start of each day, and the end of the last one; a day that does not exist has no length
	loc   *time.Location
	known map[string][][]domain.Span // openings by hours, because most units have the same hours
}

func newSummary(d Days) *summary {
	s := &summary{days: make([]Day, d.Days()), first: d.From.AddDays(-1), loc: d.Loc, known: map[string][][]domain.Span{}}
	for n := range len(s.days) + 3 {
		s.begin = append(s.begin, s.first.AddDays(n-1).End(d.Loc))
	}
	for n := range s.days {
		s.days[n].Date = d.From.AddDays(n)
	}
	return s
}

// openings returns the openings of each day.
func (s *summary) openings(h domain.OpeningHours) ([][]domain.Span, error) {
	key, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("opening hours: %w", err)
	}
	if open, known := s.known[string(key)]; known {
		return open, nil
	}
	open := make([][]domain.Span, len(s.begin)-1)
	for n := range open {
		open[n] = h.On(s.first.AddDays(n), s.loc)
	}
	s.known[string(key)] = open
	return open, nil
}

// count adds a booking and its money to its day.
func (s *summary) count(b Booked, currency string) {
	n := s.first.DaysUntil(b.Day) - 1
	if n < 0 || n >= len(s.days) {
		return
	}
	day := &s.days[n]
	day.Bookings++
	if b.Currency == currency && (b.Status == domain.Confirmed || b.Status == domain.Completed) {
		day.Revenue += b.Gross
		day.Paid += b.Paid - b.Refunded
	}
}

// book adds the time of a booking of a unit. The time within an opening counts for the day of that opening. The rest counts for the
// calendar days.
func (s *summary) book(b Booked, open [][]domain.Span) {
	if !b.Timed {
		if n := s.first.DaysUntil(b.Day); n >= 0 && n < len(open) {
			s.add(n, length(open[n]))
		}
		return
	}
	at, end := latest(b.During.From, s.begin[0]), earliest(b.During.To, s.begin[len(s.begin)-1])
	for n := max(s.dayOf(at)-1, 0); n < len(open) && s.begin[n].Before(end); n++ {
		for _, o := range open[n] {
			from, to := latest(at, o.From), earliest(end, o.To)
			if !from.Before(to) {
				continue
			}
			s.spread(at, from)
			s.add(n, to.Sub(from))
			at = to
		}
	}
	s.spread(at, end)
}

// spread adds the time to the calendar days.
func (s *summary) spread(from, to time.Time) {
	for n := s.dayOf(from); from.Before(to); n++ {
		next := earliest(to, s.begin[n+1])
		s.add(n, next.Sub(from))
		from = next
	}
}

func (s *summary) add(n int, booked time.Duration) {
	if n > 0 && n <= len(s.days) {
		s.days[n-1].Booked += booked
	}
}

// dayOf returns the index of the day that contains an instant.
func (s *summary) dayOf(t time.Time) int {
	n, exact := slices.BinarySearchFunc(s.begin, t, time.Time.Compare)
	if !exact {
		n--
	}
	return n
}

func length(spans []domain.Span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.To.Sub(s.From)
	}
	return sum
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
