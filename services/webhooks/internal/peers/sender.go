// Package peers sends deliveries to receivers, which may be hostile, and limits what a receiver can make the platform do.
package peers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/libs/egress"

	"holdfast.dev/services/webhooks/internal/domain"
)

// The limits of a connection and of a response.
const (
	idleTimeout  = 5 * time.Second // how long an idle connection stays open for the next delivery
	idlePerHost  = 100             // the highest max_in_flight of an endpoint
	maxErrorText = 300             // characters
)

// Sender posts deliveries. It follows no redirects and uses no proxy. It reads at most domain.MaxResponseRead bytes of a response
// and stores the bytes that are shown. It closes the connection when the attempt's time is over.
type Sender struct{ transport *http.Transport }

// NewSender returns a sender that connects only where guard allows it. It trusts the system's certificates.
func NewSender(guard *egress.Guard) *Sender { return newSender(guard, &net.Resolver{PreferGo: true}) }

// newSender is NewSender with a resolver.
func newSender(guard *egress.Guard, resolver *net.Resolver) *Sender {
	transport := guard.Transport(resolver) // HTTP/1.1: deliveries that share an HTTP/2 connection could wait for each other
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.IdleConnTimeout = idlePerHost, 4096, idleTimeout
	return &Sender{transport: transport}
}

// Close closes idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Send implements app.Sender.
func (s *Sender) Send(ctx context.Context, d domain.Outgoing) domain.Response {
	start := time.Now()
	a := s.post(ctx, d)
	a.Took = time.Since(start)
	return a
}

// post sends the request and reads the response.
func (s *Sender) post(ctx context.Context, d domain.Outgoing) domain.Response {
	u, err := url.Parse(d.URL)
	if err != nil || d.Live && u.Scheme != "https" {
		return domain.Response{Err: "the URL is not https"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return domain.Response{Err: "the URL is not valid"}
	}
	for name, value := range d.Own {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", domain.UserAgent)
	for name, value := range d.Headers {
		req.Header.Set(name, value)
	}
	res, err := s.transport.RoundTrip(req) // an http.Client would parse the target of a redirect
	if err != nil {
		return domain.Response{Err: reason(ctx, err)}
	}
	defer res.Body.Close()
	a := domain.Response{Status: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"), time.Now())}
	if a.Status != http.StatusSwitchingProtocols { // its body is the connection, which does not end with ctx
		a.Body, _ = io.ReadAll(io.LimitReader(res.Body, domain.MaxResponseBuffered))             // the status determines whether the attempt is a success
		_, _ = io.CopyN(io.Discard, res.Body, domain.MaxResponseRead-domain.MaxResponseBuffered) // so that the connection can be reused
	}
	return a
}

// retryAfter reads both forms of RFC 9110: a number of seconds, or a date. A number that is too large becomes the largest number.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// reason returns a short text that describes why there was no response. It contains no internal details, such as addresses.
func reason(ctx context.Context, err error) string {
	var name *net.DNSError
	var errno syscall.Errno
	var op *net.OpError
	switch {
	case errors.Is(err, egress.ErrRefused):
		return egress.ErrRefused.Error()
	case ctx.Err() != nil || isTimeout(err):
		return "no response in time"
	case errors.As(err, &name):
		return "the host's name does not resolve"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before a response arrived"
	case strings.Contains(err.Error(), "readLoopPeekFail"): // net/http has no error value for it
		return "no HTTP: the receiver sent data before the request"
	case errors.As(err, &op):
		err = op.Err
	}
	text := []rune(domain.Text([]byte(err.Error()))) // an error can quote data from the receiver
	return string(text[:min(len(text), maxErrorText)])
}

// isTimeout reports whether an error is a timeout.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
