package view

import (
	"sort"
	"unicode/utf8"

	"holdfast.dev/services/console/internal/domain"
)

// budget holds approximate numbers of bytes on a compressed page: of one booking without its name, and the maximum of all
// bookings.
type budget struct{ each, all int }

func budgetOf(span domain.Span) budget {
	if span == domain.DaySpan {
		return budget{60, 105_000}
	}
	return budget{33, 137_000}
}

// Compact omits bookings of units that have many on a day, the later ones first and the same number on each day, so that the page
// stays below 150 KB. The first booking of each day stays.
func Compact(rows []domain.CalendarRow, span domain.Span) {
	room := budgetOf(span)
	most := 1
	for _, l := range rows {
		for _, slots := range l.Days {
			most = max(most, len(slots))
		}
	}
	shown := 1 + sort.Search(most-1, func(n int) bool { return room.taken(rows, n+2) > room.all })
	for _, l := range rows {
		for i, slots := range l.Days {
			if l.More[i] = max(0, len(slots)-shown); l.More[i] > 0 {
				l.Days[i] = slots[:shown]
			}
		}
	}
}

// taken returns the approximate number of bytes of a page that shows that many bookings of each day and unit.
func (b budget) taken(rows []domain.CalendarRow, shown int) int {
	sum := 0
	for _, l := range rows {
		for _, slots := range l.Days {
			for _, s := range slots[:min(shown, len(slots))] {
				sum += b.each + compressed(s.Label())
			}
		}
	}
	return sum
}

// compressed returns the approximate number of bytes of a name on a compressed page. Non-ASCII letters take more.
func compressed(name string) int {
	quarters := 0
	for i := range len(name) {
		if quarters += 3; name[i] >= utf8.RuneSelf {
			quarters += 2
		}
	}
	return quarters / 4
}
