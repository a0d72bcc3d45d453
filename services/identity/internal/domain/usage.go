package domain

import (
	"slices"
	"strings"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/civil"
	"holdfast.dev/libs/ids"
)

// PlatformTenant is the tenant of what belongs to no tenant: idempotency records of the platform API, and events about the platform. No
// tenant has this id.
var PlatformTenant = ids.FromUUID[ids.TenantPrefix]([16]byte{15: 1})

// ErrUsageNotRecorded reports that a day has no complete usage.
var ErrUsageNotRecorded = apperr.New(apperr.NotFound, "usage_not_recorded", "The usage of this day is not recorded yet.")

// Usage is what a tenant used in one mode on a day, in UTC.
type Usage struct {
	TenantID         ids.Tenant
	Livemode         bool
	Day              time.Time
	RequestsRead     int64
	RequestsWrite    int64
	RequestsExport   int64
	RequestsStream   int64
	RequestsRejected int64
	Bookings         int64
	Events           int64
	Deliveries       int64
	StoredRows       *int64 // nil: a service could not count them in time; so for StoredBytes
	StoredBytes      *int64
	Payments         []Volume
	MeasuredAt       time.Time

	RequestsUnauthenticated int64 // also in RequestsRejected
}

// Volume is the sum of the movements of money in one currency, in its smallest unit.
type Volume struct {
	Currency string `json:"currency"`
	Charged  int64  `json:"charged"`
	Refunded int64  `json:"refunded"`
	Disputed int64  `json:"disputed"`
}

// Add adds what another service measured for the same tenant, mode and day.
func (u *Usage) Add(o Usage) {
	u.RequestsRead += o.RequestsRead
	u.RequestsWrite += o.RequestsWrite
	u.RequestsExport += o.RequestsExport
	u.RequestsStream += o.RequestsStream
	u.RequestsRejected += o.RequestsRejected
	u.RequestsUnauthenticated += o.RequestsUnauthenticated
	u.Bookings += o.Bookings
	u.Events += o.Events
	u.Deliveries += o.Deliveries
	u.StoredRows, u.StoredBytes = sum(u.StoredRows, o.StoredRows), sum(u.StoredBytes, o.StoredBytes)
	for _, v := range o.Payments {
		u.addVolume(v)
	}
	slices.SortFunc(u.Payments, func(a, b Volume) int { return strings.Compare(a.Currency, b.Currency) })
}

// sum is unknown if one of the numbers is.
func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// NoUsage is the usage of a tenant before the services have been asked.
func NoUsage(tenant ids.Tenant, livemode bool, day time.Time) Usage {
	return Usage{TenantID: tenant, Livemode: livemode, Day: day, StoredRows: new(int64), StoredBytes: new(int64)}
}

func (u *Usage) addVolume(v Volume) {
	i := slices.IndexFunc(u.Payments, func(known Volume) bool { return known.Currency == v.Currency })
	if i < 0 {
		u.Payments = append(u.Payments, v)
		return
	}
	p := &u.Payments[i]
	p.Charged, p.Refunded, p.Disputed = p.Charged+v.Charged, p.Refunded+v.Refunded, p.Disputed+v.Disputed
}

// UsageCollection is the recording of a day: the usage of the tenants up to Cursor is recorded.
type UsageCollection struct {
	Day         time.Time
	Cursor      ids.Tenant
	Rows        int64
	LeasedUntil *time.Time
	CompletedAt *time.Time
}

// UsageSettles is how long after its end a day is recorded at the earliest. It is longer than a stream or a download that began on the
// day, and than the difference of clocks.
const UsageSettles = 10 * time.Minute

const usageDay = 24 * time.Hour // a day in UTC

// Due reports whether a process can record the day now.
func (c UsageCollection) Due(now time.Time) bool {
	due, _ := UnrecordedDays(c.Day, now)
	return due > 0 && (c.LeasedUntil == nil || !now.Before(*c.LeasedUntil))
}

// UnrecordedDays returns the number of days that can be recorded at a time, if first is the first one without usage, and how long first
// could have been recorded; 0 and 0 if none can be recorded yet.
func UnrecordedDays(first, now time.Time) (days int, since time.Duration) {
	since = now.Sub(first) - usageDay - UsageSettles
	if since < 0 {
		return 0, 0
	}
	return int(since/usageDay) + 1, since
}

// maxUsageDays is the maximum number of days of one request.
const maxUsageDays = 92

// ParseUsageDays parses the first and the last day of a period of at most maxUsageDays days.
func ParseUsageDays(from, to string) (first, last time.Time, err error) {
	first, err = ParseUsageDay("from", from)
	last, err2 := ParseUsageDay("to", to)
	if err = apperr.Join(err, err2); err != nil {
		return first, last, err
	}
	if days := int(last.Sub(first)/usageDay) + 1; days < 1 || days > maxUsageDays {
		return first, last, apperr.Field("to", "Must be from 0 to %d days after from.", maxUsageDays-1)
	}
	return first, last, nil
}

// ParseUsageDay parses the day of a field, as midnight in UTC.
func ParseUsageDay(field, text string) (time.Time, error) {
	d, err := civil.ParseDate(text)
	if err != nil {
		return time.Time{}, apperr.Field(field, "Must be a date YYYY-MM-DD.").WithCause(err)
	}
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC), nil
}

// Waiting is background work of one kind and mode in a service.
type Waiting struct {
	Kind     string
	Livemode bool
	Count    int
	More     bool // there are more than Count
	OldestAt *time.Time
}
