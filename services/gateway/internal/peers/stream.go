package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/caller"
	"holdfast.dev/libs/obs"

	"holdfast.dev/services/gateway/internal/domain"
)

const (
	// idleStreams connections are kept: a stream that has ended leaves its own to the next one.
	idleStreams = 16
	// cutTimeout is how long the last bytes of a stream that is cut short may take.
	cutTimeout = time.Second
)

// passedHeaders are the headers of a stream's answer that clients see; everything else, all X-Internal-* among it, ends here.
var passedHeaders = [...]string{"Content-Type", "Cache-Control", "Retry-After", "Www-Authenticate"}

// newStreams makes the connections for streams: each holds one for minutes, which fasthttp's bounds on calls
// and answers would not allow. Nothing bounds their number here; app.Streams bounds those of a credential.
func newStreams(timeout time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: timeout,
		MaxIdleConnsPerHost: idleStreams, IdleConnTimeout: idle, DisableCompression: true,
	}
}

// Stream sends one call and passes the answer on to w as it comes, until one of the two sides ends it, or ctx
// does. An error means that nothing was written; they are Do's. A service that breaks off panics with
// http.ErrAbortHandler, by which the client's answer breaks off too.
func (u *Upstream) Stream(ctx context.Context, w http.ResponseWriter, call *domain.Call) error {
	signed, err := u.signer.SignEncoded(call.Encoded, call.Statement(u.target), time.Now())
	if err != nil {
		return fmt.Errorf("sign call: %w", err)
	}
	// The proxy gets a request of our own: of the client's there is nothing in it to take away.
	in, err := http.NewRequestWithContext(ctx, call.Method, u.scheme+"://"+u.host+call.Path, nil)
	if err != nil {
		return fmt.Errorf("call %s: %w", u.target, err)
	}
	if err := u.acquirePermit(); err != nil {
		return err
	}
	var failure error
	proxy := &httputil.ReverseProxy{
		// The proxy drops X-Forwarded-For and the parts of a query that it cannot read before it asks for this.
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Header, p.Out.URL.RawQuery = streamHeader(call, signed), call.Query
		},
		Transport: streamTransport{u}, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failure = err },
	}
	out := &streamWriter{w: w, control: http.NewResponseController(w), header: http.Header{}, writeTimeout: u.writeTimeout}
	defer out.finish()
	defer context.AfterFunc(ctx, out.cut)()
	proxy.ServeHTTP(out, in)
	if errors.Is(failure, context.Canceled) {
		return nil // the client has gone
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
	return h
}

// streamTransport is the Upstream as ReverseProxy uses it: up to the header of the answer.
type streamTransport struct{ *Upstream }

// RoundTrip implements http.RoundTripper with Do's errors.
func (t streamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	res, err := t.streams.RoundTrip(r)
	if err != nil && ctx.Err() == nil {
		t.record(err)
		return nil, t.failed(err)
	}
	t.record(nil) // a client that has gone says nothing about the service
	switch {
	case errors.Is(context.Cause(ctx), domain.ErrStopping):
		err = apperr.ErrUnavailable.WithCause(domain.ErrStopping)
	case err == nil && res.StatusCode == http.StatusUnauthorized:
		err = t.refused()
	case err == nil:
		res.Body = &streamBody{ReadCloser: res.Body, ctx: ctx}
		return res, nil
	}
	if res != nil {
		_ = res.Body.Close()
	}
	return nil, err
}

// streamBody is the body of a stream.
type streamBody struct {
	io.ReadCloser
	ctx context.Context
}

// Read turns our own stop into an end like any other, behind which clients resume. That a service broke off is
// for the log.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(context.Cause(b.ctx), domain.ErrStopping):
		err = io.EOF
	case b.ctx.Err() == nil:
		obs.Add(b.ctx, slog.String("error", "the stream broke off: "+err.Error()))
	}
	return n, err //nolint:wrapcheck // a reader passes its error on
}

// streamWriter is the client's side of a stream. Its headers are its own, so that neither what the service says
// nor its trailers and early hints get to the client unasked; the gateway's headers stay as they are. The
// server's write time-out is meant for whole answers: here each write has one of its own, and a client that
// reads nothing is held no longer than that.
type streamWriter struct {
	w            http.ResponseWriter
	control      *http.ResponseController
	header       http.Header
	writeTimeout time.Duration
	mu           sync.Mutex
	ended        bool // guarded by mu: the stream was cut
	finished     bool // guarded by mu: the request is over
}

func (p *streamWriter) Header() http.Header { return p.header }

func (p *streamWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	for _, name := range passedHeaders {
		if values := p.header[name]; len(values) > 0 {
			p.w.Header()[name] = values[:1:1]
		}
	}
	p.w.WriteHeader(status)
}

func (p *streamWriter) Write(b []byte) (int, error) {
	p.extend()
	return p.w.Write(b) //nolint:wrapcheck // a writer passes its error on
}

func (p *streamWriter) FlushError() error {
	p.extend()
	return p.control.Flush() //nolint:wrapcheck // as above
}

// extend gives the next write its time, unless the stream was cut.
func (p *streamWriter) extend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.writeTimeout)) // what has no deadlines needs none
	}
}

// cut ends the write that is under way, and leaves little time to those that follow.
func (p *streamWriter) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finished {
		p.ended = true
		_ = p.control.SetWriteDeadline(time.Now().Add(cutTimeout))
	}
}

// finish gives the end of the answer its time, because it may come long after its last byte. No cut comes after it: the
// writer then belongs to another request.
func (p *streamWriter) finish() {
	p.extend()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
}
