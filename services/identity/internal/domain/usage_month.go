package domain

import (
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
)

// UsageMonth is the sum of the recorded days of a tenant and mode in a month, in UTC. Its Day is the first day of the month, and its
// stored rows are those of the last recorded day.
type UsageMonth struct {
	Usage

	Days        int
	AllPayments [][]Volume // of each day
}

// Sum adds up the payments of all days.
func (m UsageMonth) Sum() UsageMonth {
	m.Payments = []Volume{}
	for _, v := range slices.Concat(m.AllPayments...) {
		m.addVolume(v)
	}
	slices.SortFunc(m.Payments, func(a, b Volume) int { return strings.Compare(a.Currency, b.Currency) })
	m.AllPayments = nil
	return m
}

// Complete reports whether all days of the month are recorded, if through is the last recorded day.
func (m UsageMonth) Complete(through time.Time) bool { return !through.Before(LastDay(m.Day)) }

// LastDay returns the last day of the month that begins on a day.
func LastDay(month time.Time) time.Time { return month.AddDate(0, 1, -1) }

// maxUsageMonths is the maximum number of months of one request.
const maxUsageMonths = 24

// ParseUsageMonths parses the first and the last month of a period of at most maxUsageMonths months.
func ParseUsageMonths(from, to string) (first, last time.Time, err error) {
	first, err = ParseUsageMonth("from", from)
	last, err2 := ParseUsageMonth("to", to)
	if err = apperr.Join(err, err2); err != nil {
		return first, last, err
	}
	if last.Before(first) || !last.Before(first.AddDate(0, maxUsageMonths, 0)) {
		return first, last, apperr.Field("to", "Must be from 0 to %d months after from.", maxUsageMonths-1)
	}
	return first, last, nil
}

// ParseUsageMonth parses the month of a field, as midnight of its first day in UTC.
func ParseUsageMonth(field, text string) (time.Time, error) {
	month, err := time.Parse("2006-01", text)
	if err != nil {
		return time.Time{}, apperr.Field(field, "Must be a month YYYY-MM.").WithCause(err)
	}
	return month, nil
}
