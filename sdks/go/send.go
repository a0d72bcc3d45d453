package holdfast

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// The times between attempts.
const (
	firstWait     = 500 * time.Millisecond
	maxWait       = 8 * time.Second
	maxRetryAfter = time.Minute
)

// attempts are the attempts of one request.
type attempts struct {
	client   *Client
	call     call
	settings settings
	target   string
	header   http.Header
	body     []byte
	key      string
	stream   bool // the body is read by the caller

	sent      int
	refreshed bool
}

// read sends a request and returns the body of the response.
func (c *Client) read(ctx context.Context, request call, options []Option) ([]byte, error) {
	a, err := c.prepare(request, options)
	if err != nil {
		return nil, err
	}
	r, err := a.run(ctx)
	return r.text, err
}

// open sends a request and returns the response with an open body.
func (c *Client) open(ctx context.Context, request call, options []Option) (result, error) {
	a, err := c.prepare(request, options)
	if err != nil {
		return result{}, err
	}
	a.stream = true
	return a.run(ctx)
}

// result is a successful response.
type result struct {
	status int
	header http.Header
	text   []byte // the body, if the client has read it
	body   *body  // otherwise the open body
}

// prepare returns the attempts of a request. All of them have the same body and the same Idempotency-Key.
func (c *Client) prepare(request call, options []Option) (*attempts, error) {
	a := &attempts{client: c, call: request, settings: c.settings.with(options)}
	q := newQuery(request.params)
	var err error
	if a.target, err = request.target(q); err != nil {
		return nil, err
	}
	a.header = q.header
	a.header.Set("User-Agent", c.agent)
	if request.accept != "" {
		a.header.Set("Accept", request.accept)
	}
	if request.body != nil {
		if a.body, err = json.Marshal(request.body); err != nil {
			return nil, fmt.Errorf("holdfast: %s %s: %w", request.method, request.path, err)
		}
		a.header.Set("Content-Type", "application/json")
	}
	if request.key {
		if a.key = a.settings.key; a.key == "" {
			a.key = newKey()
		}
		a.header.Set("Idempotency-Key", a.key)
	}
	if request.strict && !a.settings.lenient {
		a.header.Set("Prefer", "handling=strict")
	}
	if a.settings.ifMatch != "" {
		a.header.Set("If-Match", a.settings.ifMatch)
	}
	for name, values := range a.settings.header {
		a.header[name] = values
	}
	return a, nil
}

// run sends the request until it succeeds, fails for good, or the retries or the time are used up.
func (a *attempts) run(ctx context.Context) (result, error) {
	deadline := time.Now().Add(a.settings.timeout)
	for retry := 0; ; retry++ {
		r, err := a.attempt(ctx, deadline)
		if err == nil {
			return r, nil
		}
		if a.refresh(err) {
			retry--
			continue
		}
		wait, again := a.again(err, retry)
		if !again || retry >= a.settings.retries || time.Now().Add(wait).After(deadline) || ctx.Err() != nil {
			return result{}, a.failed(ctx, err)
		}
		if sleep(ctx, wait) != nil {
			return result{}, a.failed(ctx, err)
		}
	}
}

// attempt sends the request once. An error is an *Error or the cause of a failed connection.
func (a *attempts) attempt(ctx context.Context, deadline time.Time) (result, error) {
	token, err := a.client.tokens.Token(ctx)
	if err != nil {
		return result{}, localError{err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(min(a.settings.attemptTimeout, time.Until(deadline)), func() { cancel(errTimeout) })
	done := func() {
		timer.Stop()
		cancel(nil)
	}
	a.sent++
	request, err := http.NewRequestWithContext(ctx, a.call.method, a.client.baseURL+a.target, bytes.NewReader(a.body))
	if err != nil {
		done()
		return result{}, localError{err}
	}
	request.Header = a.header.Clone()
	request.Header.Set("Authorization", "Bearer "+token)
	r, err := a.client.http.Do(request)
	if err != nil {
		defer done()
		return result{}, cause(ctx, err)
	}
	if a.stream && (r.StatusCode < 300 || r.StatusCode == http.StatusNotModified) {
		timer.Stop()
		a.report(r, nil)
		return result{status: r.StatusCode, header: r.Header, body: &body{ReadCloser: r.Body, close: done}}, nil
	}
	defer done()
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return result{}, cause(ctx, err)
	}
	a.report(r, text)
	if r.StatusCode >= 300 {
		return result{}, newError(r, text)
	}
	return result{status: r.StatusCode, header: r.Header, text: text}, nil
}

// body is the body of a response that the caller closes.
type body struct {
	io.ReadCloser

	close func()
}

// Close ends the request's context, which interrupts a concurrent read, and closes the body.
func (b *body) Close() error {
	b.close()
	return b.ReadCloser.Close()
}

// cause returns why an attempt failed: its time was over, or the connection's error.
func cause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return errTimeout
	}
	return err
}

// localError is an error that occurred before the request was sent, such as that of the token source. It is not repeated.
type localError struct{ error }

// Unwrap returns the cause.
func (e localError) Unwrap() error { return e.error }

// report stores the response for the caller.
func (a *attempts) report(r *http.Response, text []byte) {
	if a.settings.response == nil {
		return
	}
	*a.settings.response = Response{
		Status: r.StatusCode, Header: r.Header, Body: text, Attempts: a.sent, IdempotencyKey: a.key,
		RequestID: r.Header.Get("X-Request-Id"), Replayed: r.Header.Get("Idempotent-Replayed") == "true",
	}
}

// refresh reports whether the access token has expired and the source can replace it. Each request refreshes once.
func (a *attempts) refresh(err error) bool {
	source, ok := a.client.tokens.(interface{ Expire() })
	if !ok || a.refreshed || !errors.Is(err, ErrExpiredCredential) {
		return false
	}
	a.refreshed = true
	source.Expire()
	return true
}

// again reports whether the same request can succeed later, and how long to wait before it.
func (a *attempts) again(err error, retry int) (time.Duration, bool) {
	if e := (*Error)(nil); errors.As(err, &e) {
		if !temporary(e) || !a.repeatable() {
			return 0, false
		}
		if after, ok := retryAfter(e.Header.Get("Retry-After")); ok {
			return after, after <= maxRetryAfter
		}
		return backoff(retry), true
	}
	if permanent(err) || !a.repeatable() && !unsent(err) {
		return 0, false
	}
	return backoff(retry), true
}

// repeatable reports whether a repetition has no second effect.
func (a *attempts) repeatable() bool {
	return a.key != "" || a.call.method == http.MethodGet || a.call.method == http.MethodDelete
}

// temporary reports whether the platform can accept the same request later.
func temporary(e *Error) bool {
	if e.Header.Get("Service-Should-Retry") == "false" {
		return false
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict:
		return e.Code == ErrIdempotencyInProgress
	}
	return false
}

// permanent reports whether each attempt would fail in the same way.
func permanent(err error) bool {
	var local localError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &local) || errors.As(err, &certificate)
}

// unsent reports whether the connection failed before the request was sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// backoff returns a random time up to 0.5 s, doubled with each retry, at most 8 s.
func backoff(retry int) time.Duration {
	limit := maxWait
	if retry < 4 {
		limit = min(firstWait<<retry, maxWait)
	}
	return rand.N(limit) //nolint:gosec // not a secret
}

// retryAfter reads the header Retry-After: seconds or a date.
func retryAfter(value string) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<20)) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

// sleep waits unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// failed returns the error for the caller.
func (a *attempts) failed(ctx context.Context, err error) error {
	if local := (localError{}); errors.As(err, &local) {
		return fmt.Errorf("holdfast: %s %s: %w", a.call.method, a.call.path, local.error)
	}
	if e := (*Error)(nil); errors.As(err, &e) && ctx.Err() == nil {
		return e
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &ConnectionError{Method: a.call.method, Path: a.call.path, Attempts: a.sent, IdempotencyKey: a.key, Err: err}
}
