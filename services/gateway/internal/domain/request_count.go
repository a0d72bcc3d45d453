package domain

import "holdfast.dev/libs/ids"

// RequestCount is a number of requests of a tenant and mode, of one class, that arrived on one day.
type RequestCount struct {
	Counted

	Requests int64
}

// Counted is what one number counts.
type Counted struct {
	Tenant ids.Tenant
	Live   bool
	Day    int32  // since 1970-01-01
	Class  string // one of the classes of RequestClass
}
