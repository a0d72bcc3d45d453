package holdfast

import (
	"net/http"
	"strconv"
	"time"
)

// settings are the settings of one request.
type settings struct {
	retries        int
	retriesSet     bool // the caller gave the number
	timeout        time.Duration
	attemptTimeout time.Duration
	key            string
	ifMatch        string
	lenient        bool
	header         http.Header
	response       *Response
}

// with returns the settings with options.
func (s settings) with(options []Option) settings {
	s.header = s.header.Clone()
	for _, option := range options {
		option(&s)
	}
	return s
}

// Option changes one request.
type Option func(*settings)

// WithIdempotencyKey sets the Idempotency-Key of a write, at most 255 characters. Without this option, the client generates a UUID. Pass
// a key of your own, such as the ID of your order, if your program can stop before it has stored the result: when it runs again, it
// sends the same key and gets the same object.
func WithIdempotencyKey(key string) Option {
	return func(s *settings) { s.key = key }
}

// WithIfMatch performs the write only if the resource has this version. Otherwise, the error is [ErrVersionMismatch].
func WithIfMatch(version int64) Option {
	return func(s *settings) { s.ifMatch = `"` + strconv.FormatInt(version, 10) + `"` }
}

// WithMaxRetries sets how many times a failed request is repeated. The default is 2. With 0, each request is sent once. A stream
// reconnects without a limit unless you set one: then it ends after this number of failures in a row.
func WithMaxRetries(n int) Option {
	return func(s *settings) { s.retries, s.retriesSet = max(n, 0), true }
}

// WithTimeout sets the maximum duration of a request with all of its attempts. The default is 2 minutes. It does not limit how long you
// read a document or a stream.
func WithTimeout(d time.Duration) Option {
	return func(s *settings) { s.timeout = d }
}

// WithAttemptTimeout sets the maximum duration of one attempt. The default is 30 seconds.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) { s.attemptTimeout = d }
}

// WithHeader sets a header of the request.
func WithHeader(name, value string) Option {
	return func(s *settings) {
		if s.header == nil {
			s.header = http.Header{}
		}
		s.header.Set(name, value)
	}
}

// WithLenientHandling accepts body fields that the API does not know, which are then ignored. By default, the client sends
// Prefer: handling=strict, and the API rejects them.
func WithLenientHandling() Option {
	return func(s *settings) { s.lenient = true }
}

// WithResponse stores the status, the headers and the body of the response in r, also after an error of the API.
func WithResponse(r *Response) Option {
	return func(s *settings) { s.response = r }
}

// Response is the raw response to a request.
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte // empty for documents and streams
	RequestID string // for support
	Replayed  bool   // the API repeated the response of an earlier request with the same Idempotency-Key
	Attempts  int    // how many times the request was sent

	// IdempotencyKey is the key that was sent, or "" if the operation takes none.
	IdempotencyKey string
}
