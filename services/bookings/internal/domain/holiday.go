package domain

import (
	"cmp"
	"slices"
)

// Recurrence says whether a holiday rule comes back each year.
type Recurrence string

// A rule holds once, or each year.
const (
	Once   Recurrence = "none"
	Yearly Recurrence = "yearly"
)

// HolidayRule multiplies the price of events on some days. Empty ServiceIDs and PackageIDs mean all.
type HolidayRule struct {
	ID            HolidayID
	Name          string
	From          Date `db:"date_from"` // at the operator's; of a yearly rule only month and day matter
	To            Date `db:"date_to"`   // inclusive
	Recurrence    Recurrence
	MultiplierBps int64 // 11500 is a factor of 1.15
	ServiceIDs    []ServiceID
	PackageIDs    []PackageID
	Priority      int
	Stackable     bool
	Active        bool
}

// Covers reports whether the rule holds on the day. A yearly range may run over New Year; one that ends on
// 29 February ends on the 28th of a common year, and one that is 29 February alone skips common years.
func (r HolidayRule) Covers(d Date) bool {
	if r.Recurrence != Yearly {
		return !d.Before(r.From) && !r.To.Before(d)
	}
	if r.From.DaysUntil(r.To) >= daysOfYear {
		return true
	}
	from, to, at := r.From.yearDay(), r.To.yearDay(), d.yearDay()
	if from <= to {
		return from <= at && at <= to
	}
	return at >= from || at <= to
}

const daysOfYear = 365

// yearDay orders the days within any year, 29 February included.
func (d Date) yearDay() int { return int(d.Month)*32 + d.Day }

// AppliesTo reports whether the rule concerns the package.
func (r HolidayRule) AppliesTo(p Package) bool {
	switch r.narrowness() {
	case byPackage:
		return slices.Contains(r.PackageIDs, p.ID)
	case byService:
		return slices.Contains(r.ServiceIDs, p.ServiceID)
	default:
		return true
	}
}

const (
	byPackage = iota
	byService
	byAll
)

func (r HolidayRule) narrowness() int {
	switch {
	case len(r.PackageIDs) > 0:
		return byPackage
	case len(r.ServiceIDs) > 0:
		return byService
	default:
		return byAll
	}
}

// Matching returns the active rules that concern the package on the day, the deciding one first: highest
// priority, then package before service before all, then the shortest range, then the lowest id.
func Matching(rules []HolidayRule, p Package, d Date) []HolidayRule {
	found := make([]HolidayRule, 0, len(rules))
	for _, r := range rules {
		if r.Active && r.Covers(d) && r.AppliesTo(p) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b HolidayRule) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.narrowness(), b.narrowness()),
			cmp.Compare(a.days(), b.days()),
			cmp.Compare(a.ID.String(), b.ID.String()),
		)
	})
	return found
}

// days is the length of the range; a yearly one over New Year counts through it.
func (r HolidayRule) days() int {
	n := r.From.DaysUntil(r.To)
	if n < 0 {
		n += daysOfYear
	}
	return n
}
