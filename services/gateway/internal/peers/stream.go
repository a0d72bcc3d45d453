package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/obs"
	"holdfast.dev/libs/peer"

	"holdfast.dev/services/gateway/internal/domain"
)

const (
	// idleStreams connections are kept open: a new stream uses the connection of one that has ended.
	idleStreams = 16
	// cutTimeout is how long the last bytes of an aborted stream may take.
	cutTimeout = time.Second
)

// passedHeaders are the headers of a stream's response that clients get. All others, such as X-Internal-*, are dropped.
var passedHeaders = []string{"Content-Type", "Cache-Control", "Retry-After", "Www-Authenticate"}

// newStreams creates the connections for streams: each is used for minutes, which fasthttp's limits on calls and responses
// do not allow. Their number is not limited here; app.Streams limits the streams of a credential.
func newStreams(timeout time.Duration) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return peer.Dial(ctx, network, address, min(peer.ConnectLimit, timeout))
		},
		TLSHandshakeTimeout: placeTimeout, ResponseHeaderTimeout: timeout,
		MaxIdleConnsPerHost: idleStreams, IdleConnTimeout: idle, DisableCompression: true,
	}
}

// Stream sends one call and forwards the response to w while it arrives, until the client or the service ends it, or ctx
// ends. An error means that nothing was written; errors are the same as Do's. When the service breaks off, Stream panics
// with http.ErrAbortHandler, which breaks off the client's response too.
func (u *Upstream) Stream(ctx context.Context, w http.ResponseWriter, call *domain.Call) error {
	signed, err := u.signer.SignEncoded(call.Encoded, call.Statement(u.target), time.Now())
	if err != nil {
		return fmt.Errorf("sign call: %w", err)
	}
	// The proxy gets a new request, which has nothing of the client's to remove.
	in, err := http.NewRequestWithContext(ctx, call.Method, u.scheme+"://"+u.host+call.Path, nil)
	if err != nil {
		return fmt.Errorf("call %s: %w", u.target, err)
	}
	if err := u.acquirePermit(); err != nil {
		return err
	}
	var failure error
	proxy := &httputil.ReverseProxy{
		// The proxy removes X-Forwarded-For and invalid parts of the query before it calls this.
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Header, p.Out.URL.RawQuery = streamHeader(call, signed), call.Query
		},
		Transport: streamTransport{u, call}, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failure = err },
	}
	out := &streamWriter{w: w, control: http.NewResponseController(w), header: http.Header{}, passed: passedHeaders, writeTimeout: u.writeTimeout}
	if call.Passed != nil {
		out.passed = append(slices.Clone(passedHeaders), append(pageHeaders[:], "Location")...)
	}
	defer out.finish()
	defer context.AfterFunc(ctx, out.cut)()
	proxy.ServeHTTP(out, in)
	if errors.Is(failure, context.Canceled) {
		return nil // the client is gone
	}
	return failure
}

func streamHeader(call *domain.Call, signed string) http.Header {
	h := http.Header{caller.Header: {signed}, "X-Request-Id": {call.Caller.RequestID}, "X-Forwarded-For": {call.Address}}
	for name, value := range map[string]string{
		"Traceparent": call.Traceparent, "Accept": call.Accept, "Last-Event-Id": call.LastEventID,
	} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	maps.Copy(h, call.Passed)
	return h
}

// streamTransport makes Upstream an http.RoundTripper for ReverseProxy, until the response's header.
type streamTransport struct {
	*Upstream

	call *domain.Call
}

// RoundTrip implements http.RoundTripper with Do's errors.
func (t streamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	res, err := t.streams.RoundTrip(r)
	if err != nil && ctx.Err() == nil {
		t.record(t.call, err)
		return nil, t.failed(err)
	}
	t.record(t.call, nil) // a client that is gone says nothing about the service
	switch {
	case errors.Is(context.Cause(ctx), domain.ErrStopping):
		err = apperr.ErrUnavailable.WithCause(domain.ErrStopping)
	case err == nil && res.StatusCode == http.StatusUnauthorized:
		err = t.refused()
	case err == nil:
		res.Body = &streamBody{ReadCloser: res.Body, ctx: ctx, whole: t.call.Whole}
		return res, nil
	}
	if res != nil {
		_ = res.Body.Close()
	}
	return nil, err
}

// streamBody is the body of a stream's response.
type streamBody struct {
	io.ReadCloser
	ctx   context.Context
	whole bool
}

// Read returns a normal end when the gateway stops, so that clients resume; a whole response is broken off instead. It logs
// when the service broke off.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(context.Cause(b.ctx), domain.ErrStopping) && !b.whole:
		err = io.EOF
	case b.ctx.Err() == nil:
		obs.Add(b.ctx, slog.String("error", "the stream broke off: "+err.Error()))
	}
	return n, err
}

// streamWriter writes a stream to the client. It has its own headers, so that the service's headers, trailers and early
// hints are not forwarded unchecked; the gateway's headers stay. The server's write time-out is for whole responses: here
// each write has a time-out of its own, after which a client that does not read is dropped.
type streamWriter struct {
	w            http.ResponseWriter
	control      *http.ResponseController
	header       http.Header
	passed       []string // headers that the client gets
	writeTimeout time.Duration
	mu           sync.Mutex
	ended        bool // guarded by mu: the stream was aborted
	finished     bool // guarded by mu: the request has ended
}

func (p *streamWriter) Header() http.Header { return p.header }

func (p *streamWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	for _, name := range p.passed {
		if values := p.header[name]; len(values) > 0 {
			p.w.Header()[name] = values[:1:1]
		}
	}
	p.w.WriteHeader(status)
}

func (p *streamWriter) Write(b []byte) (int, error) {
	p.extend()
	return p.w.Write(b)
}

func (p *streamWriter) FlushError() error {
	p.extend()
	return p.control.Flush()
}

// extend sets the deadline of the next write, unless the stream was aborted.
func (p *streamWriter) extend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.writeTimeout)) // a connection without deadlines needs none
	}
}

// cut ends the current write, and gives later ones little time.
func (p *streamWriter) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.ended = true
		_ = p.control.SetWriteDeadline(time.Now().Add(cutTimeout))
	}
}

// finish sets the deadline for the end of the response, which may come long after its last byte. cut must not follow,
// because the writer then belongs to another request.
func (p *streamWriter) finish() {
	p.extend()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
}
