package domain

import (
	"time"

	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/money"
)

// Tenant contains what determines the bookings of an operator.
type Tenant struct {
	Policy Policy
	Taxes  TaxDefaults // of a service without taxes of its own
}

// Policy contains the operator's rules for bookings. A nil number means no limit.
type Policy struct {
	AutoConfirm      bool `json:"auto_confirm"`
	HoldTTLMinutes   *int `json:"hold_ttl_minutes"`
	MinNoticeMinutes *int `json:"min_notice_minutes"`
	MaxAdvanceDays   *int `json:"max_advance_days"`
	ConfirmOnDeposit bool `json:"confirm_on_deposit"`
	// RefundRules specifies the refund after a cancellation, in descending order of hours; nil means not specified. Snapshots in
	// bookings that are older than these fields have no rules.
	RefundRules        []RefundRule `json:"refund_rules"`
	AutoRefund         bool         `json:"auto_refund"`
	RefundLatePayments bool         `json:"refund_late_payments"`
}

// RefundRule specifies the share of the money that is refunded after a cancellation at least the given number of hours before the
// start.
type RefundRule struct {
	HoursBefore int `json:"hours_before"`
	Percent     int `json:"percent"`
}

// RefundPercent returns the share of the money that is refunded if a booking is canceled the given time before its start. It returns
// false if the policy does not specify this.
func (p Policy) RefundPercent(before time.Duration) (percent int64, ok bool) {
	for _, r := range p.RefundRules {
		if Minutes(60*r.HoursBefore) <= before {
			return int64(r.Percent), true
		}
	}
	return 0, p.RefundRules != nil
}

// Refund returns the share of an amount that is refunded, as RefundPercent does, rounded down to a multiple of the currency's step. A
// share of 100% returns the amount unchanged.
func (p Policy) Refund(of money.Amount, before time.Duration) (due int64, ok bool) {
	percent, ok := p.RefundPercent(before)
	amount := max(0, of.Minor)
	if percent == 100 {
		return amount, ok
	}
	part := amount/100*percent + amount%100*percent/100
	return part - part%money.Step(of.Currency), ok
}

// longest is longer than the span of all dates, but still fits a time.Duration.
const longest = 150_000_000 * time.Minute

// Minutes returns n minutes, limited to the range of time.Duration.
func Minutes(n int) time.Duration {
	return time.Duration(min(n, int(longest/time.Minute))) * time.Minute
}

// Earliest returns the first instant at which a timed event can start. It returns false if there is no limit.
func (p Policy) Earliest(now time.Time) (time.Time, bool) {
	if p.MinNoticeMinutes == nil {
		return time.Time{}, false
	}
	return now.Add(Minutes(*p.MinNoticeMinutes)), true
}

// LastDay returns the last operator-local day on which an event can start. It returns false if there is no limit.
func (p Policy) LastDay(now time.Time, loc *time.Location) (civil.Date, bool) {
	if p.MaxAdvanceDays == nil {
		return civil.Date{}, false
	}
	return civil.DateOf(now.In(loc)).AddDays(*p.MaxAdvanceDays), true
}

// Refuses returns the error on event_date if a schedule is too soon or too late. It compares a timed event by its start, and a
// whole day by its date.
func (p Policy) Refuses(s Schedule, now time.Time, loc *time.Location) error {
	if earliest, limited := p.Earliest(now); limited {
		late := s.Day.Before(civil.DateOf(earliest.In(loc)))
		if s.Timed() {
			late = s.StartsAt.Before(earliest)
		}
		if late {
			return field("event_date", "Must be at least %d minutes from now.", *p.MinNoticeMinutes)
		}
	}
	if last, limited := p.LastDay(now, loc); limited && last.Before(s.Day) {
		return field("event_date", "Must be on or before %s.", last)
	}
	return nil
}
