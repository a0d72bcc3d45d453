package domain

import (
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/libs/ids"
)

// DeliveryStatus is the status of a delivery.
type DeliveryStatus string

// The statuses of a delivery. Delivering is a pending delivery with an attempt in flight.
const (
	Pending    DeliveryStatus = "pending"
	Delivering DeliveryStatus = "delivering"
	Succeeded  DeliveryStatus = "succeeded"
	Failed     DeliveryStatus = "failed"
)

// FailureReason is the reason why a failed delivery is not attempted again.
type FailureReason string

// The reasons why a delivery failed.
const (
	AttemptsExhausted FailureReason = "attempts_exhausted" // MaxAttempts attempts failed
	Expired           FailureReason = "expired"            // MaxAge is over, or the log no longer contains the event
	EndpointDisabled  FailureReason = "endpoint_disabled"  // the endpoint is disabled or deleted
)

// Delivery is the delivery of one event to one endpoint.
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

// Attempt is one POST to the endpoint, in the form in which the log stores and shows it.
type Attempt struct {
	Number       int       `json:"number"`
	At           time.Time `json:"at"`
	StatusCode   *int      `json:"status_code"` // nil if there was no response
	DurationMS   int64     `json:"duration_ms"`
	Error        *string   `json:"error"`         // the reason for the failure
	ResponseBody *string   `json:"response_body"` // the first MaxResponseLogged bytes
}

// Outgoing is the request of one attempt, with the mode of its endpoint.
type Outgoing struct {
	URL     string
	Live    bool
	Own     EndpointHeaders   // of the endpoint; Headers replace those with the same name
	Headers map[string]string // of the platform
	Body    []byte
}

// The number of bytes of a receiver's response that are used.
const (
	MaxResponseRead     = 64 << 10                        // are read, so that the connection can be reused
	MaxResponseLogged   = 4 << 10                         // are written into the log
	MaxResponseBuffered = MaxResponseLogged + utf8.UTFMax // are in memory until then, because Text can cut off the last character
)

// The limits of the failing deliveries that the operators' console shows, as in proto/internal/webhooks.yaml.
const (
	ShownFailing    = 10
	SearchedFailing = 200                // per endpoint, among the waiting ones
	RecentlyFailed  = 7 * 24 * time.Hour // how long they are shown
)

// Text returns a response as valid UTF-8 of at most MaxResponseLogged bytes without NUL, which the log can store.
func Text(raw []byte) string {
	s := strings.ReplaceAll(strings.ToValidUTF8(string(raw), "\uFFFD"), "\x00", "\uFFFD") // can be longer than raw
	if len(s) <= MaxResponseLogged {
		return s
	}
	end := MaxResponseLogged
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Response is the result of an attempt.
type Response struct {
	Status     int // 0 if there was no response
	Body       []byte
	RetryAfter time.Duration
	Err        string // the reason why there was no response
	At         time.Time
	Took       time.Duration
}

// OK reports whether the attempt was a success, which is any 2xx.
func (a Response) OK() bool { return a.Status/100 == 2 }

// Outcome returns the outcome of the attempt for its endpoint.
func (a Response) Outcome() Outcome { return Outcome{OK: a.OK(), Gone: a.Status == 410} }

// Attempt returns the log's record of the n-th attempt.
func (a Response) Attempt(n int) Attempt {
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
		out.Error = new("the response status is not 2xx")
	}
	return out
}
