// Package peer calls another service of the platform: signed on behalf of the caller in the context, with a deadline, a circuit
// breaker, and retries of requests that are safe to repeat.
package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"go.opentelemetry.io/otel/trace"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
)

const (
	defaultTimeout = 3 * time.Second
	maxResponse    = 8 << 20
	maxRefusal     = 1 << 20
)

// Client calls the service Target at BaseURL. Create one per target and share it, because it holds the breaker and the connections.
// Timeout limits one Do with all its retries, unless the call has the option Within. Zero means 3 s.
type Client struct {
	Target  string
	BaseURL string // http://host:port
	Signer  *caller.Signer
	Timeout time.Duration
	HTTP    *http.Client       // nil: a client for peers
	Now     func() time.Time   // nil: time.Now
	Changed func(state string) // called with the breaker's new state: closed, open, half-open; nil: only logged

	once    sync.Once
	client  *http.Client
	breaker *Breaker
	again   failsafe.Executor[response]
}

type response struct {
	status     int
	retryAfter string
	final      bool // the target says that a retry cannot succeed
	body       []byte
}

// responseOf returns what the client reads of a response with this body.
func responseOf(r *http.Response, body []byte) response {
	return response{status: r.StatusCode, retryAfter: r.Header.Get("Retry-After"), final: r.Header.Get(httpx.HeaderShouldRetry) == "false", body: body}
}

// Option changes one call.
type Option func(*call)

// call contains what options change.
type call struct {
	timeout time.Duration
	header  http.Header
}

// IdempotencyKey makes a write safe to repeat for the caller of Do. Do itself only repeats reads.
func IdempotencyKey(key string) Option { return Header("Idempotency-Key", key) }

// Header sets an additional header.
func Header(name, value string) Option {
	return func(to *call) { to.header.Set(name, value) }
}

// Within replaces the Timeout of the client for this call.
func Within(timeout time.Duration) Option {
	return func(to *call) { to.timeout = timeout }
}

// Do sends in as JSON (nil: no body) to path, which can contain a query, and decodes a 2xx response into out (nil: the body is
// ignored). Any other response is returned as its *apperr.Error. It returns apperr.ErrUnavailable if the peer cannot be reached or
// its breaker is open, and apperr.ErrTimeout if it is too slow.
func (c *Client) Do(ctx context.Context, method, path string, in, out any, options ...Option) error {
	c.once.Do(c.prepare)
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request to %s: %w", c.Target, err)
		}
	}
	defer obs.Since(ctx, "peer_ms", time.Now())
	with := c.with(options)
	limited, cancel := context.WithTimeout(ctx, with.timeout)
	defer cancel()
	send := func() (response, error) { return c.send(limited, method, path, body, with.header) }
	var got response
	var err error
	if method == http.MethodGet {
		got, err = c.again.WithContext(limited).Get(send)
	} else {
		got, err = send()
	}
	if err != nil {
		return c.failed(ctx, limited, err)
	}
	if got.status < 200 || got.status > 299 {
		return c.refused(got)
	}
	if out == nil || len(got.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(got.body, out); err != nil {
		return fmt.Errorf("decode response of %s: %w", c.Target, err)
	}
	return nil
}

// Open sends a GET to path and returns the response unread if its status is 200. It is for large or long-lasting responses. The
// caller must close the body. ctx limits the whole response, and the time-out the wait for its header. Open returns the same errors as
// Do.
func (c *Client) Open(ctx context.Context, path string, options ...Option) (*http.Response, error) {
	c.once.Do(c.prepare)
	limited, cancel := context.WithCancel(ctx)
	with := c.with(options)
	late := time.AfterFunc(with.timeout, cancel)
	req, err := c.request(limited, http.MethodGet, path, nil, with.header)
	if err != nil {
		cancel()
		return nil, err
	}
	res, err := c.client.Do(req)
	if !late.Stop() && err != nil && ctx.Err() == nil {
		cancel()
		return nil, apperr.ErrTimeout.WithCause(err)
	}
	if err != nil {
		cancel()
		return nil, c.failed(ctx, ctx, err)
	}
	res.Body = &closing{res.Body, cancel}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	if err != nil {
		return nil, c.failed(ctx, ctx, err)
	}
	return nil, c.refused(responseOf(res, body))
}

// closing is a body that releases its request when it is closed.
type closing struct {
	io.ReadCloser
	release context.CancelFunc
}

// Close implements io.Closer.
func (b *closing) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

func (c *Client) timeout() time.Duration {
	if c.Timeout == 0 {
		return defaultTimeout
	}
	return c.Timeout
}

// with returns the options of a call.
func (c *Client) with(options []Option) call {
	to := call{timeout: c.timeout(), header: http.Header{}}
	for _, change := range options {
		change(&to)
	}
	return to
}

func (c *Client) prepare() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.client = c.HTTP; c.client == nil {
		c.client = &http.Client{
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					return Dial(ctx, network, address, min(ConnectLimit, c.timeout()*2/3)) // not the whole time-out: a dead peer is unavailable, not late
				},
				MaxIdleConnsPerHost: 64,
				IdleConnTimeout:     60 * time.Second, // shorter than the peers' time-out, so that no connection is used while the peer closes it
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	c.breaker = NewBreaker(func(state string) {
		slog.Warn("circuit breaker", slog.String("peer", c.Target), slog.String("state", state))
		if c.Changed != nil {
			c.Changed(state)
		}
	})
	retry := retrypolicy.NewBuilder[response]().
		HandleIf(func(a response, err error) bool { return retryable(a, err) }).
		WithMaxRetries(2).
		WithBackoff(20*time.Millisecond, 200*time.Millisecond).
		WithJitterFactor(0.3).
		ReturnLastFailure().
		Build()
	c.again = failsafe.With[response](retry)
}

// retryable reports whether a retry may succeed. It cannot succeed after the deadline or with an open breaker, nor without a
// connection, because Dial already retried.
func retryable(a response, err error) bool {
	if err == nil {
		return a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable
	}
	return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, ErrOpen) && !errors.Is(err, errOwn) && !Unconnected(err)
}

// errOwn marks errors of this process that occur before anything is sent.
var errOwn = errors.New("request cannot be sent")

// send makes one attempt, unless the breaker is open, and reports its result to the breaker.
func (c *Client) send(ctx context.Context, method, path string, body []byte, header http.Header) (response, error) {
	if err := c.breaker.Begin(); err != nil {
		return response{}, err
	}
	got, err := c.attempt(ctx, method, path, body, header)
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errOwn):
		c.breaker.Responded()
	case ctx.Err() == nil || Unconnected(err):
		c.breaker.Unavailable()
	default:
		client := ""
		if tenant := caller.FromContext(ctx).Tenant; !tenant.IsZero() {
			client = tenant.String()
		}
		c.breaker.Late(client)
	}
	return got, err
}

func (c *Client) attempt(ctx context.Context, method, path string, body []byte, header http.Header) (_ response, err error) {
	ctx, end := obs.Span(ctx, method+" "+c.Target, trace.SpanKindClient)
	defer func() { end(err) }()
	obs.Count(ctx, "peer_calls", 1)
	req, err := c.request(ctx, method, path, body, header)
	if err != nil {
		return response{}, fmt.Errorf("%w: %w", errOwn, err)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return response{}, fmt.Errorf("call %s: %w", c.Target, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	if err != nil {
		return response{}, fmt.Errorf("read response of %s: %w", c.Target, err)
	}
	if len(b) > maxResponse {
		return response{}, fmt.Errorf("%w: response of %s is above %d bytes", errOwn, c.Target, maxResponse)
	}
	return responseOf(res, b), nil
}

func (c *Client) request(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Request, error) {
	who, err := caller.Require(ctx)
	if err != nil {
		return nil, err
	}
	bare, _, _ := strings.Cut(path, "?")
	signed, err := c.Signer.Sign(who, c.Target, method, bare, c.Now())
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("peer request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if tp := obs.Traceparent(ctx); tp != "" {
		req.Header.Set("Traceparent", tp)
	}
	if who.RequestID != "" {
		req.Header.Set("X-Request-Id", who.RequestID)
	}
	maps.Copy(req.Header, header)
	req.Header.Set(caller.Header, signed)
	return req, nil
}

// failed returns the error of a call without a response. If the caller itself gave up, it returns the caller's own error.
func (c *Client) failed(ctx, limited context.Context, err error) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("call %s: %w", c.Target, ctx.Err())
	case errors.Is(err, errOwn):
		return err
	case Unconnected(err):
		return apperr.ErrUnavailable.WithCause(err)
	case limited.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return apperr.ErrTimeout.WithCause(err)
	default:
		return apperr.ErrUnavailable.WithCause(err)
	}
}
