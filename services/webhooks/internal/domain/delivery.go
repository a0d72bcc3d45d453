package domain

import (
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/libs/ids"
)

// DeliveryStatus is how a delivery stands.
type DeliveryStatus string

// The states of a delivery. Delivering is a pending one with an attempt on its way.
const (
	Pending    DeliveryStatus = "pending"
	Delivering DeliveryStatus = "delivering"
	Succeeded  DeliveryStatus = "succeeded"
	Failed     DeliveryStatus = "failed"
)

// FailureReason says why a failed delivery is not attempted again.
type FailureReason string

// The reasons.
const (
	AttemptsExhausted FailureReason = "attempts_exhausted" // MaxAttempts of them
	Expired           FailureReason = "expired"            // after MaxAge, or the event is gone
	EndpointDisabled  FailureReason = "endpoint_disabled"  // or deleted
)

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID            DeliveryID
	EndpointID    EndpointID
	EventID       ids.Event
	EventType     string
	Status        DeliveryStatus
	FailureReason *FailureReason
	Attempts      []Attempt
	NextAttemptAt *time.Time
	UpdatedAt     time.Time
}

// Attempt is one POST to the endpoint, as the log shows it and the table keeps it.
type Attempt struct {
	Number       int       `json:"number"`
	At           time.Time `json:"at"`
	StatusCode   *int      `json:"status_code"` // nil when nothing was answered
	DurationMS   int64     `json:"duration_ms"`
	Error        *string   `json:"error"`         // why it failed
	ResponseBody *string   `json:"response_body"` // the first KeptAnswer bytes
}

// Outgoing is one attempt: what is sent where, and in which mode the endpoint is.
type Outgoing struct {
	URL     string
	Live    bool
	Headers map[string]string
	Body    []byte
}

// What is taken of a receiver's answer.
const (
	ReadAnswer = 64 << 10
	KeptAnswer = 4 << 10
	HeldAnswer = KeptAnswer + utf8.UTFMax // until it is written: the last character may be cut
)

// Text makes what a receiver has sent storable and showable: at most KeptAnswer bytes, valid UTF-8, no NUL.
func Text(raw []byte) string {
	s := strings.ReplaceAll(strings.ToValidUTF8(string(raw), "\uFFFD"), "\x00", "\uFFFD") // may be longer than raw
	if len(s) <= KeptAnswer {
		return s
	}
	end := KeptAnswer
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Answer is what came of an attempt.
type Answer struct {
	Status     int // 0: none
	Body       []byte
	RetryAfter time.Duration
	Err        string // why nothing was answered
	At         time.Time
	Took       time.Duration
}

// OK reports a success: any 2xx.
func (a Answer) OK() bool { return a.Status/100 == 2 }

// Outcome is what the answer means for the endpoint.
func (a Answer) Outcome() Outcome { return Outcome{OK: a.OK(), Gone: a.Status == 410} }

// Attempt is the log's line of the answer to the n-th attempt.
func (a Answer) Attempt(n int) Attempt {
	out := Attempt{Number: n, At: a.At.UTC().Truncate(time.Microsecond), DurationMS: a.Took.Milliseconds()}
	if a.Status != 0 {
		out.StatusCode, out.ResponseBody = new(a.Status), new(Text(a.Body))
	}
	switch {
	case a.Err != "":
		out.Error = new(a.Err)
	case a.Status/100 == 3:
		out.Error = new("a redirect, which is not followed")
	case !a.OK():
		out.Error = new("the answer is no 2xx")
	}
	return out
}
