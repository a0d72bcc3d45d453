package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"
)

const stream = events + "/stream"

// source is a service whose streams send the test's events.
type source struct {
	events chan string   // "" breaks the connection; closing it ends the stream
	ended  chan struct{} // one for each stream whose request has ended
	noise  http.Header   // headers that clients must not see
	over   <-chan struct{}
}

// streaming makes the fake service respond with streams of a source.
func (f *fakeService) streaming(t testing.TB) *source {
	s := &source{events: make(chan string), ended: make(chan struct{}, 100), over: t.Context().Done()}
	f.set(func(f *fakeService) { f.handle = s.serve })
	return s
}

func (s *source) serve(w http.ResponseWriter, r *http.Request) bool {
	defer func() { s.ended <- struct{}{} }()
	h := w.Header()
	if s.noise != nil { // as early hints, as headers and as trailers
		maps.Copy(h, s.noise)
		w.WriteHeader(http.StatusEarlyHints)
		for name, values := range s.noise {
			h[http.TrailerPrefix+name] = values
		}
	}
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	for out := http.NewResponseController(w); ; {
		_ = out.Flush()
		select {
		case <-r.Context().Done():
			return true
		case <-s.over:
			return true
		case e, more := <-s.events:
			if !more {
				return true
			}
			if e == "" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, e)
		}
	}
}

// listener is a client of one stream.
type listener struct {
	*http.Response
	lines *bufio.Reader
	leave context.CancelFunc
}

// listen opens a stream and returns after its header.
func (g *gateway) listen(t testing.TB, edits ...edit) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+stream, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		e(req)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return &listener{Response: res, lines: bufio.NewReader(res.Body), leave: cancel}
}

func (l *listener) hears(t testing.TB, want string) {
	t.Helper()
	if got, err := l.lines.ReadString('\n'); err != nil || got != want {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
}

// ends reads to the end of the stream, which must arrive soon.
func (l *listener) ends(t testing.TB) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, l.lines); ended <- err }()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the stream goes on")
		return nil
	}
}

func (s *source) sends(t testing.TB, event string) {
	t.Helper()
	select {
	case s.events <- event:
	case <-time.After(10 * time.Second):
		t.Fatal("no stream takes an event")
	}
}

func (s *source) ends(t testing.TB) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the service goes on")
	}
}

func TestAStreamIsForwardedAsItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.service.streaming(t)
	l := g.listen(t, bearer(w.identity.newKey())) // the header arrives before the first event
	for _, event := range []string{"data: 1\n", "data: 2\n"} {
		service.sends(t, event)
		l.hears(t, event)
	}
	if n := count(g.server.Pipeline.Metrics.Streams); n != 1 {
		t.Errorf("%v open streams", n)
	}
	close(service.events)
	if err := l.ends(t); err != nil {
		t.Error(err)
	}
	g.checker.Check(t, l.Request, l.Response, []byte("data: 1\ndata: 2\n"))
	eventually(t, "no stream is open", func() bool { return count(g.server.Pipeline.Metrics.Streams) == 0 })
}

func TestWhatAStreamCarries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.service.streaming(t)
	service.noise = http.Header{
		"Server": {"fake"}, "Set-Cookie": {"a=b"}, "X-Internal-Anything": {"secret"}, "X-Request-Id": {"forged"},
		"X-Service-Scope": {"forged"}, "Ratelimit-Limit": {"1"}, "Location": {"/"},
	}
	key := w.identity.newKey("read:webhooks")
	hinted := false
	hints := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { hinted = true; return nil }}
	l := g.listen(t, bearer(key), header("Accept", "text/event-stream"), header("Last-Event-ID", "evt_1"), header("Te", "trailers"),
		header("X-Caller", "gateway.k1.forged"), header("X-Internal-Tenant", "t"), header("Connection", "X-Caller, Last-Event-ID"),
		header("Cookie", "a=b"), header("X-Request-Id", "mine"), header("X-Forwarded-For", "6.6.6.6"), header("Forwarded", "for=6.6.6.6"),
		header("Upgrade", "websocket"), header("Connection", "Upgrade"), header("User-Agent", "client/1"), header("Idempotency-Key", "k"),
		func(r *http.Request) {
			r.URL.RawQuery = "types=booking.created&b=;c&a=%zz"
			*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), hints))
		})

	r := w.service.last
	got := r.Header.Clone()
	for name, value := range map[string]string{
		"Accept": "text/event-stream", "Last-Event-Id": "evt_1", "X-Forwarded-For": "127.0.0.1", "X-Request-Id": l.Header.Get("X-Request-Id"),
	} {
		if got.Get(name) != value {
			t.Errorf("%s %q, want %q", name, got.Get(name), value)
		}
		got.Del(name)
	}
	if tp := got.Get("Traceparent"); len(tp) != 55 {
		t.Errorf("traceparent %q", tp)
	}
	got.Del("Traceparent")
	got.Del(caller.Header) // the fake has verified it
	if len(got) > 0 || r.URL.RawQuery != "types=booking.created&b=;c&a=%zz" {
		t.Errorf("these went through: %v, query %q", got, r.URL.RawQuery)
	}
	if who := w.service.caller; who.Credential != w.identity.id(key) || who.RequestID != l.Header.Get("X-Request-Id") {
		t.Errorf("caller %+v", who)
	}

	close(service.events)
	if err := l.ends(t); err != nil {
		t.Error(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Service-Scope": "read:webhooks", "Ratelimit-Limit": "600",
		"Ratelimit-Remaining": "599", "Ratelimit-Reset": "60", "Ratelimit": `"default";r=599;t=60`, "Ratelimit-Policy": `"default";q=600;w=60`,
	} {
		if got := l.Header[name]; len(got) != 1 || got[0] != value {
			t.Errorf("%s %q, want %q", name, got, value)
		}
		l.Header.Del(name)
	}
	if id := l.Header["X-Request-Id"]; len(id) != 1 || !strings.HasPrefix(id[0], "req_") {
		t.Errorf("X-Request-Id %q", id)
	}
	l.Header.Del("X-Request-Id")
	l.Header.Del("Date")
	if len(l.Header) > 0 || len(l.Trailer) > 0 || hinted {
		t.Errorf("these came through: %v, trailers %v, hints %v", l.Header, l.Trailer, hinted)
	}
}

// The service does not see a refusal by the gateway; a refusal by the service is forwarded unchanged.
func TestRefusedStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	limited := w.start(t, func(c *Config) { c.RateLimit = 1 })
	revoked, spent := w.identity.newKey(), w.identity.newKey()
	w.identity.change(revoked, func(p *internalapi.Principal) { p.Revoked = true })
	limited.send(t, "GET", oneCu, "", bearer(spent))
	handled, _ := w.service.calls()
	want(t, g.send(t, "GET", stream+"?api_key=x", ""), 400, "query_api_key_unsupported")
	want(t, g.send(t, "GET", stream, ""), 401, "missing_credential")
	want(t, g.send(t, "GET", stream, "", bearer(revoked)), 401, "revoked_credential")
	want(t, g.send(t, "GET", stream, "", bearer(w.identity.newKey("write:webhooks"))), 403, "insufficient_scope")
	want(t, limited.send(t, "GET", stream, "", bearer(spent)), 429, "rate_limited")
	if after, _ := w.service.calls(); after != handled {
		t.Errorf("the service was called %d times", after-handled)
	}

	refuse := func(status int, body string) {
		w.service.set(func(f *fakeService) {
			f.handle = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				if status == http.StatusServiceUnavailable {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, body, r.Header.Get("X-Request-Id"))
				return true
			}
		})
	}
	refuse(422, `{"message":"types: No.","errors":{"types":["No."]},"error":{"type":"validation_error","code":"invalid_request","message":"types: No.","param":"types","doc_url":"https://booking.test/docs/errors#invalid_request","request_id":%q}}`)
	a := g.send(t, "GET", stream, "", bearer(w.identity.newKey()))
	want(t, a, 422, "invalid_request")
	if a.Header.Get("RateLimit-Limit") != "600" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.Header)
	}
	refuse(503, `{"error":{"type":"api_error","code":"unavailable","message":"Later.","doc_url":"https://booking.test/docs/errors#unavailable","request_id":%q}}`)
	a = g.send(t, "GET", stream, "", bearer(w.identity.newKey()))
	want(t, a, 503, "unavailable")
	if a.Header.Get("Retry-After") != "7" || !strings.Contains(a.body, `"Later."`) {
		t.Errorf("headers %v, body %s", a.Header, a.body)
	}
	refuse(401, `{"error":{"code":"invalid_caller","request_id":%q}}`)
	want(t, g.send(t, "GET", stream, "", bearer(w.identity.newKey())), 500, "internal_error")
}

func TestAClientLeavesAStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.service.streaming(t)
	l := g.listen(t, bearer(w.identity.newKey()))
	service.sends(t, "data: 1\n")
	l.leave()
	service.ends(t)

	// A client that leaves before the response is not a failure of the service.
	requested := make(chan struct{})
	w.service.set(func(f *fakeService) {
		f.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			requested <- struct{}{}
			<-r.Context().Done()
			service.ended <- struct{}{}
			return true
		}
	})
	for range 30 { // more than enough to open the breaker
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-requested; cancel() }()
		_, err := g.raw("GET", stream, "", bearer(w.identity.newKey()), func(r *http.Request) { *r = *r.WithContext(ctx) })
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		service.ends(t)
	}
	if text := g.log.String(); strings.Contains(text, "circuit breaker") || strings.Contains(text, `"status":5`) {
		t.Error(text)
	}
}

func TestDeadAndSlowServiceOfStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.start(t, at("webhooks", nowhere))
	a := dead.send(t, "GET", stream, "", bearer(w.identity.newKey()))
	want(t, a, 503, "unavailable")
	if a.Header.Get("Retry-After") == "" || a.Header.Get("X-Service-Scope") == "" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.Header)
	}
	slow := w.start(t, func(c *Config) { c.UpstreamTimeout = 2 * time.Second })
	service := w.service.streaming(t)
	w.service.set(func(f *fakeService) { f.delay = 6 * time.Second })
	want(t, slow.send(t, "GET", stream, "", bearer(w.identity.newKey())), 504, "upstream_timeout")
	// The time-out applies to the header: an open stream can be silent for longer.
	w.service.set(func(f *fakeService) { f.delay = 0 })
	l := slow.listen(t, bearer(w.identity.newKey()))
	time.Sleep(2500 * time.Millisecond)
	service.sends(t, "data: 1\n")
	l.hears(t, "data: 1\n")
}

func TestAServiceBreaksAStreamOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	service := w.service.streaming(t)
	l := g.listen(t, bearer(w.identity.newKey()))
	service.sends(t, "data: 1\n")
	l.hears(t, "data: 1\n")
	service.sends(t, "")
	if err := l.ends(t); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}
	eventually(t, "its line", func() bool {
		return strings.Contains(lastLine(g), `"/events/stream"`) && strings.Contains(lastLine(g), "broke off")
	})
	w.service.set(func(f *fakeService) { f.handle = nil })
	want(t, g.send(t, "GET", oneCu, "", bearer(w.identity.newKey())), 200, "")
}

func TestStreamsOfOneCredentialAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t, func(c *Config) { c.StreamsPerCredential = 2 })
	service := w.service.streaming(t)
	key := w.identity.newKey()
	first := g.listen(t, bearer(key))
	g.listen(t, bearer(key))
	handled, _ := w.service.calls()
	a := g.send(t, "GET", stream, "", bearer(key))
	want(t, a, 429, "rate_limited")
	if a.Header.Get("Retry-After") != "5" || !strings.Contains(a.body, "2 open streams") || a.Header.Get("RateLimit-Remaining") != "597" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if after, _ := w.service.calls(); after != handled {
		t.Error("the service was called")
	}
	if other := g.listen(t, bearer(w.identity.newKey())); other.StatusCode != 200 {
		t.Errorf("another credential: %d", other.StatusCode)
	}
	first.leave()
	service.ends(t)
	eventually(t, "a place is free", func() bool {
		l := g.listen(t, bearer(key))
		return l.StatusCode == 200
	})
}

// The time-outs of a request and its response must not end a stream, nor its last bytes after a silence.
func TestAStreamOutlivesTheServersTimeouts(t *testing.T) {
	w := newWorld(t)
	w.cfg.StreamWriteTimeout = 200 * time.Millisecond
	w.limits = shortTimeouts
	g := &gateway{world: w, url: "http://" + w.process(t, nil)}
	service := w.service.streaming(t)
	for _, body := range []string{"", "{}"} {
		l := g.listen(t, bearer(w.identity.newKey()), func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		})
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			service.sends(t, "data: 1\n")
			l.hears(t, "data: 1\n")
		}
		l.leave()
		service.ends(t)
	}
	l := g.listen(t, bearer(w.identity.newKey()))
	time.Sleep(300 * time.Millisecond)
	close(service.events)
	if err := l.ends(t); err != nil {
		t.Error(err)
	}
}

// flood is a service that sends endlessly.
type flood struct {
	sent  atomic.Int64  // chunks
	ended chan struct{} // one value when its request ends
}

func (f *fakeService) flooding() *flood {
	s := &flood{ended: make(chan struct{}, 1)}
	f.set(func(f *fakeService) {
		f.handle = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "text/event-stream")
			for chunk := []byte(strings.Repeat("data: 1\n", 8<<10)); r.Context().Err() == nil; s.sent.Add(1) {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			s.ended <- struct{}{}
			return true
		}
	})
	return s
}

// stuck reports whether no chunk was sent for a while.
func (s *flood) stuck() bool {
	before := s.sent.Load()
	time.Sleep(100 * time.Millisecond)
	return before > 0 && s.sent.Load() == before
}

func TestAClientThatReadsNothingIsCut(t *testing.T) {
	w := newWorld(t)
	w.cfg.StreamWriteTimeout = 300 * time.Millisecond
	address := w.process(t, nil)
	service := w.service.flooding()
	conn := dial(t, address)
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", stream, w.identity.newKey())
	select {
	case <-service.ended:
	case <-time.After(10 * time.Second):
		t.Error("the service is still sending")
	}
}

// A stop waits for running requests, but not for streams: silent, blocked, or not yet begun.
func TestAStopEndsStreams(t *testing.T) {
	w := newWorld(t)
	w.cfg.UpstreamTimeout = time.Minute
	address, stop := w.run(t, map[string]string{"STOP_TIMEOUT": "60s"})
	g := &gateway{world: w, url: "http://" + address}
	flood := w.service.flooding()
	conn := dial(t, address)
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", stream, w.identity.newKey())
	handledCalls := func(n int) func() bool {
		return func() bool { handled, _ := w.service.calls(); return handled == n }
	}
	eventually(t, "the first stream is stuck", flood.stuck)
	w.service.set(func(f *fakeService) {
		f.handle = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	})
	waiting := make(chan *response, 1)
	key := w.identity.newKey()
	go func() { a, _ := g.try(t, "GET", stream, "", bearer(key)); waiting <- a }()
	eventually(t, "the second stream", handledCalls(2))
	service := w.service.streaming(t)
	silent := g.listen(t, bearer(w.identity.newKey()))
	service.sends(t, "data: 1\n")
	silent.hears(t, "data: 1\n")

	start := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 50*time.Second {
		t.Errorf("the stop took %s, as if it had waited for streams", took)
	}
	if err := silent.ends(t); err != nil {
		t.Errorf("the silent stream ended with %v", err)
	}
	if a := <-waiting; a == nil {
		t.Error("the stream that had not begun has no response")
	} else {
		want(t, a, 503, "unavailable")
	}
}

// Streams use the same breaker as other calls and return its permits: a client that leaves during the breaker's trial
// must not leave it half-open.
func TestTheCircuitOfStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(t)
	respondWith := func(handle func(*http.Request)) {
		w.service.set(func(f *fakeService) {
			f.handle = func(_ http.ResponseWriter, r *http.Request) bool { handle(r); return true }
		})
	}
	respondWith(func(*http.Request) { panic(http.ErrAbortHandler) })
	for range 25 {
		want(t, g.send(t, "GET", stream, "", bearer(w.identity.newKey())), 503, "unavailable")
	}
	if handled, _ := w.service.calls(); handled == 25 || !strings.Contains(g.log.String(), `"state":"open"`) {
		t.Errorf("a service that sends no response was called %d times", handled)
	}
	respondWith(func(r *http.Request) { <-r.Context().Done() })
	left := 0
	eventually(t, "the service is tried again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := g.raw("GET", stream, "", bearer(w.identity.newKey()), func(r *http.Request) { *r = *r.WithContext(ctx) }); err != nil {
			left++
		}
		return left == 5
	})
	w.service.streaming(t)
	eventually(t, "a stream", func() bool { return g.listen(t, bearer(w.identity.newKey())).StatusCode == http.StatusOK })
}
