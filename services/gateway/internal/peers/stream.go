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
	// idleStreams is the number of idle connections that are kept open, so that a new stream can reuse the connection of an ended
	// one.
	idleStreams = 16
	// cutTimeout is how long the last bytes of an aborted stream may take.
	cutTimeout = time.Second
)

// passedHeaders are the headers of a stream's response that are forwarded to clients. All others, such as X-Internal-*, are
// dropped.
var passedHeaders = []string{"Content-Type", "Cache-Control", "Retry-After", "Www-Authenticate"}

// newStreams creates the transport for streams. Each connection is used for minutes, which fasthttp's limits on calls and responses
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

// Stream sends one call and forwards the response to w while it arrives, until the client or the service ends it, or ctx ends. An
// error means that nothing was written. The errors are the same as those of Do. If the service aborts the response, Stream panics
// with http.ErrAbortHandler, which also aborts the client's response.
func (u *Upstream) Stream(ctx context.Context, w http.ResponseWriter, call *domain.Call) error {
	signed, err := u.signer.SignEncoded(call.Encoded, call.Statement(u.target), time.Now())
	if err != nil {
		return fmt.Errorf("sign call: %w", err)
	}
	// The proxy gets a new request, so nothing from the client's request must be removed.
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
		return nil // the client has disconnected
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

// RoundTrip implements http.RoundTripper with the errors of Do.
func (t streamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	res, err := t.streams.RoundTrip(r)
	if err != nil && ctx.Err() == nil {
		t.record(t.call, err)
		return nil, t.failed(err)
	}
	t.record(t.call, nil) // a disconnected client does not mean that the service failed
	switch {
	case errors.Is(context.Cause(ctx), domain.ErrStopping):
		err = apperr.ErrUnavailable.WithCause(domain.ErrStopping)
	case errors.Is(context.Cause(ctx), domain.ErrEnded):
		err = context.Cause(ctx)
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

// Read returns io.EOF when the gateway stops or the credential has ended, so that clients resume. A response with Whole is aborted
// instead. Read logs when the service aborts the response.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case endedHere(b.ctx) && !b.whole:
		err = io.EOF
	case b.ctx.Err() == nil:
		obs.Add(b.ctx, slog.String("error", "the stream broke off: "+err.Error()))
	}
	return n, err
}

// endedHere reports whether the gateway ended the stream.
func endedHere(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, domain.ErrStopping) || errors.Is(cause, domain.ErrEnded)
}

// streamWriter writes a stream to the client. It has its own headers, so that the service's headers, trailers and early hints are
// not forwarded unchecked and the gateway's headers are preserved. The server's write time-out applies to whole responses. Here
// each write has its own time-out, after which a client that does not read is disconnected.
type streamWriter struct {
	w            http.ResponseWriter
	control      *http.ResponseController
	header       http.Header
	passed       []string // headers that are forwarded to the client
	writeTimeout time.Duration
	mu           sync.Mutex
	ended        bool // guarded by mu: the stream was aborted
	finished     bool // guarded by mu: the request ended
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
		_ = p.control.SetWriteDeadline(time.Now().Add(p.writeTimeout)) // not every connection supports deadlines
	}
}

// cut ends the current write, and shortens the time-out of later ones.
func (p *streamWriter) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.ended = true
		_ = p.control.SetWriteDeadline(time.Now().Add(cutTimeout))
	}
}

// finish sets the deadline for the end of the response, which may be long after its last byte. cut must not be effective
// afterwards, because the writer then belongs to another request.
func (p *streamWriter) finish() {
	p.extend()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
}
