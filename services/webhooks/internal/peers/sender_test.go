package peers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/libs/dnstest"
	"holdfast.dev/libs/egress"

	"holdfast.dev/services/webhooks/internal/domain"
)

// attempt is the time limit of an attempt in these tests.
const attempt = time.Second

// testSender returns a sender that can connect to loopback, with any name that ends in .test.
func testSender(t *testing.T) *Sender {
	t.Helper()
	s := newSender(newGuard(t, "127.0.0.0/8", "::1/128"), dnstest.Zone(here).Resolver())
	t.Cleanup(s.Close)
	return s
}

// send makes one attempt, and fails the test if it does not return in time.
func send(t *testing.T, s *Sender, d domain.Outgoing) domain.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), attempt)
	defer cancel()
	got := make(chan domain.Response, 1)
	go func() { got <- s.Send(ctx, d) }()
	select {
	case a := <-got:
		return a
	case <-time.After(5 * attempt):
		t.Fatal("the attempt does not end")
		return domain.Response{}
	}
}

// named returns a server's URL with another name.
func named(raw string) string { return strings.Replace(raw, "127.0.0.1", "receiver.test", 1) }

func TestRequest(t *testing.T) {
	t.Parallel()
	for name, body := range map[string][]byte{
		"JSON": []byte(`{"a":"<b>&amp; \u003c 😀"}` + "\n"), "empty": {}, "large": bytes.Repeat([]byte("0123456789abcdef"), 1<<16), "no UTF-8": {0xff, 0x00, '\r', '\n'},
	} {
		var got []byte
		var head http.Header
		l := listen(t, func(c net.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			got, _ = io.ReadAll(req.Body)
			head = req.Header
			if req.Method != http.MethodPost || req.RequestURI != "/hook/%7Ea?b=c%20d&e=+" || req.Host != "receiver.test:"+port(c) || req.Proto != "HTTP/1.1" || req.TransferEncoding != nil || req.Close {
				t.Errorf("%s: %s %s of %s, %s, %v, close %v", name, req.Method, req.RequestURI, req.Host, req.Proto, req.TransferEncoding, req.Close)
			}
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		})
		s := testSender(t)
		a := send(t, s, domain.Outgoing{
			URL: l.url("http") + "/hook/%7Ea?b=c%20d&e=+", Body: body, Headers: map[string]string{"Content-Type": "application/json", "Service-Signature": "t=1,v1=ab", "webhook-id": "evt_1"},
			Own: domain.EndpointHeaders{"x-api-key": "own key", "Authorization": "Bearer a", "user-agent": "own", "SERVICE-SIGNATURE": "own", "Webhook-ID": "own"},
		})
		want := http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {domain.UserAgent}, "Content-Length": {fmt.Sprint(len(body))},
			"Service-Signature": {"t=1,v1=ab"}, "Webhook-Id": {"evt_1"}, "X-Api-Key": {"own key"}, "Authorization": {"Bearer a"},
		}
		l.quiet(t, s, soon)
		if a.Status != 204 || a.Err != "" || len(a.Body) != 0 || !bytes.Equal(got, body) {
			t.Errorf("%s: %d %q; %d of %d bytes came", name, a.Status, a.Err, len(got), len(body))
		}
		if !maps.EqualFunc(head, want, slices.Equal) {
			t.Errorf("%s: %v, want %v", name, head, want)
		}
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status, size int
	}{{200, 0}, {200, 100}, {200, 4100}, {200, 4101}, {201, 64 << 10}, {202, 64<<10 + 1}, {400, 10}, {404, 1 << 20}, {410, 0}, {429, 5}, {500, 64<<10 - 1}, {503, 3}, {999, 1}} {
		l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = w.Write(bytes.Repeat([]byte("x"), tc.size))
		}))
		s := testSender(t)
		start := time.Now()
		a := send(t, s, domain.Outgoing{URL: named(l.URL)})
		if a.Status != tc.status || a.Err != "" || len(a.Body) != min(tc.size, domain.MaxResponseBuffered) || a.Took <= 0 || a.Took > time.Since(start) {
			t.Errorf("%d with %d bytes: %d %q with %d, after %v", tc.status, tc.size, a.Status, a.Err, len(a.Body), a.Took)
		}
		s.Close()
		l.Close()
	}
}

func TestLiveIsHTTPSOnly(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	l := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer l.Close()
	s := testSender(t)
	for url, want := range map[string]string{l.URL: "the URL is not https", "": "the URL is not https", "http://%zz": "the URL is not https", "ftp://127.0.0.1": "the URL is not https"} {
		if a := send(t, s, domain.Outgoing{URL: url, Live: true}); a.Status != 0 || a.Err != want {
			t.Errorf("%s: %d %q", url, a.Status, a.Err)
		}
	}
	if reached.Load() != 0 {
		t.Error("it was reached")
	}
}

// trust makes s trust a test server's certificate.
func trust(s *Sender, of *httptest.Server) {
	pool := x509.NewCertPool()
	pool.AddCert(of.Certificate())
	s.transport.TLSClientConfig.RootCAs = pool
}

// The sender does not offer HTTP/2. A receiver with HTTP/2 gets HTTP/1.1.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	var protocol atomic.Value
	l := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { protocol.Store(r.Proto) }))
	l.EnableHTTP2 = true
	l.StartTLS()
	defer l.Close()
	s := testSender(t)
	trust(s, l)
	defer s.Close()
	if a := send(t, s, domain.Outgoing{URL: l.URL, Live: true}); a.Status != 200 || protocol.Load() != "HTTP/1.1" {
		t.Errorf("%d %q, in %v", a.Status, a.Err, protocol.Load())
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	on, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	l := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = l.Listener.Close()
	l.Listener = on
	l.Start()
	defer l.Close()
	s := testSender(t)
	defer s.Close()
	if a := send(t, s, domain.Outgoing{URL: l.URL}); a.Status != 404 {
		t.Errorf("%d %q", a.Status, a.Err)
	}
	refusing := newSender(newGuard(t, "127.0.0.0/8"), dnstest.Zone(here).Resolver())
	defer refusing.Close()
	if a := send(t, refusing, domain.Outgoing{URL: l.URL}); a.Err != egress.ErrRefused.Error() {
		t.Errorf("::1, which is not allowed: %d %q", a.Status, a.Err)
	}
}

// The environment of this test sets a proxy, which the sender must not use.
func TestNoProxyIsUsed(t *testing.T) {
	t.Parallel()
	if p, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodPost, "http://receiver.test/", nil)); p == nil {
		t.Fatalf("the environment names no proxy: %v", err)
	}
	l := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer l.Close()
	s := testSender(t)
	defer s.Close()
	if a := send(t, s, domain.Outgoing{URL: named(l.URL)}); a.Status != 200 || proxied.Load() != 0 {
		t.Errorf("%d %q, %d connections to the proxy", a.Status, a.Err, proxied.Load())
	}
}

// barrier lets callers continue when a number of them have arrived, and can be reused.
type barrier struct {
	mu     sync.Mutex
	size   int
	here   int
	opened chan struct{}
}

func (m *barrier) wait() {
	m.mu.Lock()
	if m.opened == nil {
		m.opened = make(chan struct{})
	}
	opened := m.opened
	if m.here++; m.here == m.size {
		m.here, m.opened = 0, nil
		close(opened)
	}
	m.mu.Unlock()
	<-opened
}

// More than 100 deliveries, 16 at a time, use 16 connections. In sequence they use one.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for atATime, rounds := range map[int]int{1: 100, 16: 7} {
		var opened, requests atomic.Int64
		m := &barrier{size: atATime}
		l := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			m.wait()
			_, _ = io.WriteString(w, strings.Repeat("ok", 100))
		}))
		l.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		l.Start()
		s := testSender(t)
		for range rounds {
			var wg sync.WaitGroup
			for range atATime {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*attempt)
					defer cancel()
					if a := s.Send(ctx, domain.Outgoing{URL: named(l.URL), Body: []byte("{}")}); a.Status != 200 {
						t.Errorf("%d %q", a.Status, a.Err)
					}
				})
			}
			wg.Wait()
		}
		if opened.Load() > int64(atATime) || requests.Load() != int64(rounds*atATime) {
			t.Errorf("%d at a time: %d deliveries over %d connections", atATime, requests.Load(), opened.Load())
		}
		s.Close()
		l.Close()
	}
}

// No part of a response is used for another request.
func TestResponsesAreNotReused(t *testing.T) {
	t.Parallel()
	var heads []http.Header
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads = append(heads, r.Header)
		for name, value := range map[string]string{
			"Set-Cookie": "session=1; Path=/", "Www-Authenticate": `Basic realm="a"`, "Strict-Transport-Security": "max-age=31536000", "Alt-Svc": `h3=":443"`, "Etag": `"1"`, "Cache-Control": "max-age=600",
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader([]int{200, 401, 200}[len(heads)-1])
	}))
	defer l.Close()
	s := testSender(t)
	defer s.Close()
	for _, want := range []int{200, 401, 200} {
		if a := send(t, s, domain.Outgoing{URL: named(l.URL), Body: []byte("{}")}); a.Status != want {
			t.Errorf("%d %q", a.Status, a.Err)
		}
	}
	if len(heads) != 3 || !maps.EqualFunc(heads[0], heads[1], slices.Equal) || !maps.EqualFunc(heads[0], heads[2], slices.Equal) {
		t.Errorf("%v", heads)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var other atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer elsewhere.Close()
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for _, location := range []string{"", "/", "/again", elsewhere.URL, "http://169.254.169.254/", "file:///etc/passwd", "http://%zz", "//", ":", strings.Repeat("a", 10_000)} {
			var requests atomic.Int64
			l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			}))
			s := testSender(t)
			a := send(t, s, domain.Outgoing{URL: named(l.URL), Body: []byte("{}")})
			if a.Status != status || a.Err != "" || a.OK() || requests.Load() != 1 || other.Load() != 0 {
				t.Errorf("%d to %.30q: %d %q, called %d times, the other %d times", status, location, a.Status, a.Err, requests.Load(), other.Load())
			}
			s.Close()
			l.Close()
		}
	}
}

// A compressed response is not decompressed, so a small response cannot become a large one.
func TestGzipIsNotUnpacked(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestCompression)
	zeros := make([]byte, 1<<20)
	for range 3 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}))
	defer l.Close()
	s := testSender(t)
	defer s.Close()
	if a := send(t, s, domain.Outgoing{URL: named(l.URL)}); a.Status != 200 || !bytes.Equal(a.Body, bomb.Bytes()) {
		t.Errorf("%d %q: %d bytes of %d", a.Status, a.Err, len(a.Body), bomb.Len())
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const ages = 2147483647 * time.Second
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "0": 0, "00060": time.Minute, "86400": 24 * time.Hour, "2147483647": ages,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(90 * time.Second).Format(time.ANSIC):      90 * time.Second,
		"Monday, 01-Mar-27 12:01:30 GMT":                  90 * time.Second,
		now.Format(http.TimeFormat):                       0,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		"Fri, 31 Dec 9999 23:59:59 GMT":                   1<<63 - 1,
		"Mon, 01 Jan 0001 00:00:00 GMT":                   0,
		now.Add(90 * time.Second).Format(time.RFC3339):    0,
		"-5": 0, "-9223372036854775808": 0, "1.5": 0, "1e3": 0, "0x10": 0, "1m": 0, "soon": 0, "": 0, " 5": 0, "5, 6": 0, "٥": 0, "-99999999999999999999": 0,
		"2147483648": ages, "99999999999999999999": ages, strings.Repeat("9", 10_000): ages,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%.40q: %v, want %v", value, got, want)
		}
	}
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", map[string]string{"/s": "77", "/date": time.Now().Add(77 * time.Second).UTC().Format(http.TimeFormat), "/no": "never"}[r.URL.Path])
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer l.Close()
	s := testSender(t)
	defer s.Close()
	for path, want := range map[string]time.Duration{"/s": 77 * time.Second, "/date": 77 * time.Second, "/no": 0} {
		if a := send(t, s, domain.Outgoing{URL: named(l.URL) + path}); a.Status != 503 || a.RetryAfter > want || a.RetryAfter < want-3*time.Second {
			t.Errorf("%s: %d %q, %v", path, a.Status, a.Err, a.RetryAfter)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	here := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 4711}
	op := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: here, Err: err} }
	broken := func(err error) error { return fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err) }
	for _, tc := range []struct {
		err  error
		want string
	}{
		{op(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused"},
		{broken(op(os.NewSyscallError("write", syscall.EPIPE))), "broken pipe"},
		{op(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route to host"},
		{op(os.NewSyscallError("connect", syscall.ETIMEDOUT)), "no response in time"},
		{op(os.ErrDeadlineExceeded), "no response in time"},
		{op(egress.ErrRefused), egress.ErrRefused.Error()},
		{op(&net.DNSError{Err: "no such host", Name: "a.test", Server: "10.96.0.10:53"}), "the host's name does not resolve"},
		{op(&net.DNSError{Err: "i/o timeout", Name: "a.test", Server: "10.96.0.10:53", IsTimeout: true}), "no response in time"},
		{op(errors.New("missing address")), "missing address"},
		{broken(io.EOF), "the connection was closed before a response arrived"},
		{io.ErrUnexpectedEOF, "the connection was closed before a response arrived"},
		{errors.New("readLoopPeekFailLocked: %!w(<nil>)"), "no HTTP: the receiver sent data before the request"},
		{errors.New(strings.Repeat("é", 299) + "😀é"), strings.Repeat("é", 299) + "😀"},
		{errors.New("a\x00b\xff"), "a\uFFFDb\uFFFD"},
	} {
		if got := reason(t.Context(), tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}
