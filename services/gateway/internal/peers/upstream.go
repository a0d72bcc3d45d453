package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/peer"
	"holdfast.dev/libs/quota"

	"holdfast.dev/services/gateway/internal/domain"
)

// Upstream is one service that handles clients' requests.
type Upstream struct {
	target  string
	signer  *caller.Signer
	timeout time.Duration
	scheme  string
	host    string
	client  *fasthttp.HostClient
	breaker *peer.Breaker
	places  *quota.Places

	streams      *http.Transport
	writeTimeout time.Duration
}

// UpstreamOptions are the options of NewUpstream.
type UpstreamOptions struct {
	Timeout            time.Duration // from the call to the end of the response, or to a stream's header
	MaxConns           int           // connections to the service without streams; further calls wait for one
	ClientCalls        int           // of a tenant, or of an address without a credential, at once; its further calls wait
	StreamWriteTimeout time.Duration // for one write to a stream's client
	Changed            func(target, state string)
}

const (
	maxResponse = 16 << 20
	// placeTimeout is how long a call waits for one of the service's connections, and how long a stream waits for the TLS
	// handshake.
	placeTimeout = time.Second
	// idle is shorter than the services' own time limit (service.HTTPLimits), so that no connection is used while the service closes it.
	idle = 30 * time.Second
)

// NewUpstream prepares calls to the service target at base, http(s)://host:port.
func NewUpstream(target, base string, signer *caller.Signer, opt UpstreamOptions) (*Upstream, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("address of %s: want http://host:port, got %q", target, base)
	}
	if len(signer.Keys.For(target)) == 0 {
		return nil, fmt.Errorf("no caller key for target %q", target)
	}
	up := &Upstream{
		target: target, signer: signer, timeout: opt.Timeout, scheme: u.Scheme, host: u.Host,
		streams: newStreams(opt.Timeout), writeTimeout: opt.StreamWriteTimeout, places: quota.NewPlaces(opt.MaxConns, opt.ClientCalls),
		breaker: peer.NewBreaker(func(state string) { opt.Changed(target, state) }),
	}
	up.client = &fasthttp.HostClient{
		Addr: u.Host, IsTLS: u.Scheme == "https", MaxConns: opt.MaxConns, MaxConnWaitTimeout: placeTimeout,
		MaxIdleConnDuration: idle, MaxResponseBodySize: maxResponse, NoDefaultUserAgentHeader: true,
		DisablePathNormalizing: true, MaxIdemponentCallAttempts: 2, RetryIfErr: up.again,
		DialTimeout: func(addr string, timeout time.Duration) (net.Conn, error) {
			return peer.Dial(context.Background(), "tcp", addr, min(peer.ConnectLimit, timeout))
		},
	}
	return up, nil
}

// again allows a second attempt if a connection breaks, for a read or for a write that the service recognizes by its key, but never
// after the deadline. The other idle connections have probably broken too.
func (u *Upstream) again(req *fasthttp.Request, _ int, err error) (resetTimeout, retry bool) {
	if errors.Is(err, fasthttp.ErrTimeout) || !req.Header.IsGet() && len(req.Header.Peek("Idempotency-Key")) == 0 {
		return false, false
	}
	u.client.CloseIdleConnections()
	return false, true
}

// Do sends one call when a connection is free. It returns ErrUnavailable if there is no response, and ErrTimeout if it is too late.
// A response that the service should never return, such as a rejected signature or a body that is too large, is an internal error.
func (u *Upstream) Do(ctx context.Context, call *domain.Call) (domain.Response, error) {
	deadline := time.Now().Add(u.timeout)
	client := clientOf(call)
	if err := u.acquirePlace(ctx, client, deadline); err != nil {
		return domain.Response{}, err
	}
	defer u.places.Release(client)
	signed, err := u.signer.SignEncoded(call.Encoded, call.Statement(u.target), time.Now())
	if err != nil {
		return domain.Response{}, fmt.Errorf("sign call: %w", err)
	}
	if err := u.acquirePermit(); err != nil {
		return domain.Response{}, err
	}
	req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(res)
	u.fill(req, call, signed)
	began := time.Now()
	err = u.client.DoDeadline(req, res, deadline)
	if late(err) && deadline.Sub(began) < u.timeout/2 {
		u.record(call, nil) // most of its time passed before the call was sent
		return domain.Response{}, apperr.ErrTimeout.WithCause(fmt.Errorf("call %s after a wait for a connection: %w", u.target, err))
	}
	if u.record(call, err); err != nil {
		return domain.Response{}, u.failed(err)
	}
	if res.StatusCode() == fasthttp.StatusUnauthorized && (call.Passed == nil || !bytes.HasPrefix(res.Header.Peek("WWW-Authenticate"), basic)) {
		return domain.Response{}, u.refused()
	}
	a := read(res)
	if call.Passed != nil {
		a.Passed = readPassed(res)
	}
	return a, nil
}

// acquirePlace reserves a place among the running calls. If all are in use, or all of the client, it waits until the deadline, in the
// order of arrival, but not for a service whose breaker is open.
func (u *Upstream) acquirePlace(ctx context.Context, client string, deadline time.Time) error {
	if u.places.TryAcquire(client) {
		return nil
	}
	if u.breaker.Open() {
		return u.open()
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := u.places.Acquire(ctx, client); err != nil {
		all, each := u.places.Limits()
		return apperr.ErrTimeout.WithCause(fmt.Errorf("%s: all %d connections were taken, or %d by this client: %w", u.target, all, each, err))
	}
	return nil
}

// acquirePermit acquires a permit of the breaker. record releases it.
func (u *Upstream) acquirePermit() error {
	if u.breaker.Begin() != nil {
		return u.open()
	}
	return nil
}

func (u *Upstream) open() error {
	return apperr.ErrUnavailable.WithCause(fmt.Errorf("%s: %w", u.target, peer.ErrOpen))
}

// record reports the result of a call to the breaker.
func (u *Upstream) record(call *domain.Call, err error) {
	switch {
	case !unreachable(err):
		u.breaker.Responded()
	case !late(err) || peer.Unconnected(err):
		u.breaker.Unavailable()
	default:
		u.breaker.Late(clientOf(call))
	}
}

// clientOf returns the tenant of a call, or the client's address if the call has no tenant.
func clientOf(call *domain.Call) string {
	if call.Caller.Tenant.IsZero() {
		return call.Address
	}
	return call.Caller.Tenant.String()
}

// unreachable reports whether a connection was refused or broken, or the response was late. Every other result is a response, even
// if it is too large or malformed. The data of one tenant can cause such a response, and it must not block the service for all.
func unreachable(err error) bool {
	if err == nil { // the usual case
		return false
	}
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	return late(err) || errors.As(err, &network) || errors.As(err, &certificate) || errors.Is(err, fasthttp.ErrConnectionClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

func late(err error) bool {
	if err == nil {
		return false
	}
	var timed interface{ Timeout() bool }
	return errors.As(err, &timed) && timed.Timeout()
}

func (u *Upstream) refused() error {
	return fmt.Errorf("%s refused the signed caller", u.target)
}

func (u *Upstream) fill(req *fasthttp.Request, call *domain.Call, signed string) {
	h := &req.Header
	h.SetMethod(call.Method)
	target := call.Path
	if call.Query != "" {
		target += "?" + call.Query
	}
	if u.scheme == "https" { // otherwise fasthttp sends the call without TLS
		target = u.scheme + "://" + u.host + target
	}
	h.SetRequestURI(target)
	h.SetHost(u.host)
	h.Set(caller.Header, signed)
	h.Set("X-Request-Id", call.Caller.RequestID)
	h.Set("X-Forwarded-For", call.Address)
	if call.Traceparent != "" {
		h.Set("Traceparent", call.Traceparent)
	}
	if call.Key != "" {
		h.Set("Idempotency-Key", call.Key)
	}
	if call.Signature != "" {
		h.Set("Stripe-Signature", call.Signature)
	}
	for _, v := range call.Prefer {
		h.Add("Prefer", v)
	}
	for _, v := range call.IfMatch {
		h.Add("If-Match", v)
	}
	for _, v := range call.IfNoneMatch {
		h.Add("If-None-Match", v)
	}
	for name, values := range call.Passed {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	if len(call.Body) > 0 {
		h.SetContentType(call.ContentType)
		req.SetBodyRaw(call.Body)
	}
}

// failed returns the error of a call without a response that can be forwarded. The process may have been replaced, so all idle
// connections are closed. Then at most the running calls use a dead one.
func (u *Upstream) failed(err error) error {
	cause := fmt.Errorf("call %s: %w", u.target, err)
	switch {
	case errors.Is(err, fasthttp.ErrNoFreeConns):
		return apperr.ErrUnavailable.WithCause(cause)
	case !unreachable(err):
		return cause
	case late(err) && !peer.Unconnected(err):
		return apperr.ErrTimeout.WithCause(cause)
	}
	u.client.CloseIdleConnections()
	u.streams.CloseIdleConnections()
	return apperr.ErrUnavailable.WithCause(cause)
}

// read copies the parts that clients may see. All other headers, such as X-Internal-*, are dropped.
func read(res *fasthttp.Response) domain.Response {
	h := &res.Header
	a := domain.Response{
		Status:          res.StatusCode(),
		Location:        string(h.Peek("Location")),
		ETag:            string(h.Peek("ETag")),
		CacheControl:    string(h.Peek("Cache-Control")),
		WWWAuthenticate: string(h.Peek("WWW-Authenticate")),
		RetryAfter:      string(h.Peek("Retry-After")),
		ShouldRetry:     string(h.Peek(httpx.HeaderShouldRetry)),
		Replayed:        string(h.Peek("Idempotent-Replayed")) == "true",
		IgnoredFields:   string(h.Peek(httpx.HeaderIgnored)),
		Applied:         string(h.Peek(httpx.HeaderApplied)),
		Body:            res.SwapBody(nil),
		Private:         string(h.Peek(httpx.HeaderIdempotencyCache)) == "no",
	}
	if len(a.Body) > 0 {
		a.ContentType = string(h.ContentType())
	}
	if expires, err := strconv.ParseInt(string(h.Peek(httpx.HeaderIdempotencyExpires)), 10, 64); err == nil {
		a.RecordExpiresAt = time.Unix(expires, 0)
	}
	return a
}

// basic is the scheme with which OAuth's endpoints challenge an unknown app. A rejected signed caller is challenged with another
// scheme.
var basic = []byte("Basic ")

// pageHeaders are the headers that a page has in addition to those of every response.
var pageHeaders = [...]string{
	"Content-Security-Policy", "Content-Language", "Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options", "Vary", "Pragma",
	"Access-Control-Allow-Origin", "Content-Disposition", "Content-Encoding",
}

// readPassed copies the headers of a page, and its cookies.
func readPassed(res *fasthttp.Response) http.Header {
	out := http.Header{}
	for _, name := range pageHeaders {
		if v := res.Header.Peek(name); len(v) > 0 {
			out.Set(name, string(v))
		}
	}
	for _, cookie := range res.Header.Cookies() { // the name and the whole cookie
		out.Add("Set-Cookie", string(cookie))
	}
	return out
}
