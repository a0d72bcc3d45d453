package view_test

import (
	"slices"
	"testing"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/view"
)

// TestCompact checks that days with many bookings retain their first ones, the same number on each day, up to the maximum size of
// the page.
func TestCompact(t *testing.T) {
	t.Parallel()
	name := "Ada"
	rowsOf := func(counts ...int) []domain.CalendarRow {
		rows := make([]domain.CalendarRow, len(counts))
		for i, n := range counts {
			rows[i].Days, rows[i].More = [][]domain.Slot{make([]domain.Slot, n)}, []int{0}
			for k := range n {
				rows[i].Days[0][k] = domain.Slot{Column: k, CalendarBooking: domain.CalendarBooking{CustomerName: &name}}
			}
		}
		return rows
	}
	many := func(rows, each int) []int { return slices.Repeat([]int{each}, rows) }
	for name, tc := range map[string]struct {
		span   domain.Span
		counts []int
		shown  int // of each day and unit
	}{
		"nothing":             {domain.WeekSpan, []int{0, 0}, 1},
		"all fit":             {domain.WeekSpan, []int{3, 900, 0}, 900},
		"to the last one":     {domain.MonthSpan, many(1000, 3), 3},
		"one too many":        {domain.MonthSpan, many(1000, 4), 3},
		"a day has less room": {domain.DaySpan, many(1000, 4), 1},
		"never none":          {domain.MonthSpan, many(9000, 2), 1},
		"one with very many":  {domain.MonthSpan, append(many(1000, 1), 9000), 2914},
	} {
		rows := rowsOf(tc.counts...)
		view.Compact(rows, tc.span)
		for i, l := range rows {
			want := min(tc.counts[i], tc.shown)
			if got := len(l.Days[0]); got != want || l.More[0] != tc.counts[i]-want {
				t.Errorf("%s: row %d shows %d and %d more, want %d of %d", name, i, got, l.More[0], want, tc.counts[i])
				break
			}
			for k, s := range l.Days[0] {
				if s.Column != k {
					t.Errorf("%s: the first ones do not stay", name)
					break
				}
			}
		}
	}
}
