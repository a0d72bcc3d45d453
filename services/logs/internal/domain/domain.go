// Package domain contains the request log's types and rules. It does no I/O and reads no clock.
package domain

import (
	"strconv"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
)

// ErrRequestLogNotFound reports that no request with an id is in the log.
var ErrRequestLogNotFound = apperr.New(apperr.NotFound, "request_log_not_found", "Request log not found. Most successful reads are not logged.")

// RequestID is the id of a request, which is the id of its log.
type RequestID = ids.ID[ids.RequestPrefix]

// RequestLog is a logged request. The contract describes the fields. The time in ID is the time at which the request arrived.
type RequestLog struct {
	TenantID           ids.Tenant
	Livemode           bool
	ID                 RequestID
	Status             int
	Method             string
	Route              string
	Path               string
	QueryNames         []string
	Code               *string
	Param              *string
	CredentialID       string
	CredentialType     string
	ObjectID           *string
	DurationMS         int64
	ClientNetwork      *string
	UserAgent          *string
	SDKVersion         *string
	IdempotencyKeyHash []byte
	Replayed           bool
}

// StatusFilter selects requests by an HTTP status or by a class of statuses. The zero value selects all.
type StatusFilter struct {
	Exact int // such as 409, or 0
	Class int // the first digit, such as 4, or 0
}

// ParseStatus reads a filter in the form of the contract, such as 409 or 4xx. Any other text selects all requests.
func ParseStatus(s string) StatusFilter {
	if len(s) == 3 && s[1:] == "xx" {
		return StatusFilter{Class: int(s[0] - '0')}
	}
	n, _ := strconv.Atoi(s)
	return StatusFilter{Exact: n}
}

// MaxAhead is how far in the future the time of a request can be, because clocks differ.
const MaxAhead = 24 * time.Hour

// Stores reports whether a request that arrived at a time is stored at the time now.
func Stores(at, now time.Time, retention time.Duration) bool {
	return !at.Before(now.Add(-retention)) && at.Before(now.Add(MaxAhead))
}
