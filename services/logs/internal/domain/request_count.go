package domain

import (
	"time"

	"holdfast.dev/libs/ids"
)

// RequestCount is a number of requests of one class that arrived on one day, as a gateway counted them.
type RequestCount struct {
	Batch    [16]byte // of the gateway's message; each is added once
	TenantID ids.Tenant
	Livemode bool
	Day      time.Time // midnight in UTC
	Class    string
	Requests int64
}

// CountedFor is how long counts are stored after their day, so that days can be measured late.
const CountedFor = 35 * 24 * time.Hour

// Counts reports whether a count of a day is added at the time now. Its day is neither too old nor far in the future.
func (c RequestCount) Counts(now time.Time) bool {
	return c.Requests > 0 && c.Day.Before(now.Add(MaxAhead)) && c.Day.After(now.Add(-CountedFor))
}
