package peers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast.dev/services/webhooks/internal/domain"
)

// raw is a receiver that writes bytes to connections. It counts the connections that the sender closed.
type raw struct {
	net.Listener
	accepted, closed atomic.Int64
}

// soon is the time within which a sender must close a connection that it cannot reuse. It is well below idleTimeout.
const soon = 3 * time.Second

// listen starts a receiver that calls serve for each connection and then reads until the sender has closed it.
func listen(t *testing.T, serve func(net.Conn)) *raw {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(3 * soon))
				serve(c)
				if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
					r.closed.Add(1)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return r
}

func (r *raw) url(scheme string) string {
	return scheme + "://" + named(r.Addr().String())
}

func port(c net.Conn) string {
	_, port, _ := net.SplitHostPort(c.LocalAddr().String())
	return port
}

// quiet closes the sender and fails the test if one of its connections is not closed in time.
func (r *raw) quiet(t *testing.T, s *Sender, within time.Duration) {
	t.Helper()
	s.Close()
	for end := time.Now().Add(within); r.closed.Load() < r.accepted.Load(); {
		if time.Now().After(end) {
			t.Fatalf("of %d connections %d are closed", r.accepted.Load(), r.closed.Load())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// take reads a whole request.
func take(c net.Conn) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

// says returns a function that reads the request and responds with a text.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		take(c)
		_, _ = io.WriteString(c, text)
	}
}

// over returns a function that responds with a text, and then repeats another one until the connection ends.
func over(first, text string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		take(c)
		_, err := io.WriteString(c, first)
		for err == nil {
			<-time.After(pause)
			_, err = io.WriteString(c, text)
		}
	}
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

const (
	inTime  = "no response in time"
	early   = "the connection was closed before a response arrived"
	ok      = "HTTP/1.1 200 OK\r\n"
	drip    = 100 * time.Millisecond
	tooLong = "server response headers exceeded 32768 bytes"
)

// hostile are receivers with the expected result: a status, or a part of the error.
var hostile = map[string]struct {
	serve  func(net.Conn)
	status int
	err    string
}{
	"never answers":                 {take, 0, inTime},
	"never reads":                   {func(net.Conn) {}, 0, inTime},
	"drips the status line":         {over("H", "T", drip), 0, inTime},
	"drips headers":                 {over(ok, "A: b\r\n", drip), 0, inTime},
	"drips one header":              {over(ok+"A: ", "b", drip), 0, inTime},
	"drips 1xx":                     {over("", "HTTP/1.1 102 Processing\r\n\r\n", drip), 0, inTime},
	"drips the body":                {over(ok+"Content-Length: 1000\r\n\r\n", "a", drip), 200, ""},
	"drips chunks":                  {over(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", drip), 200, ""},
	"drips until it closes":         {over("HTTP/1.0 500 Oh\r\n\r\n", "a", drip), 500, ""},
	"drips the chunk's size":        {over(ok+"Transfer-Encoding: chunked\r\n\r\n", "0", drip), 200, ""},
	"drips trailers":                {over(ok+"Transfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\na\r\n0\r\n", "A: b\r\n", drip), 200, ""},
	"promises a body":               {says(ok + "Content-Length: 5\r\n\r\n"), 200, ""},
	"closes within the body":        {func(c net.Conn) { says(ok + "Content-Length: 5\r\n\r\nab")(c); _ = c.Close() }, 200, ""},
	"resets within the body":        {func(c net.Conn) { says(ok + "Content-Length: 5\r\n\r\nab")(c); reset(c) }, 200, ""},
	"endless headers":               {over(ok, "A: "+strings.Repeat("b", 1000)+"\r\n", 0), 0, tooLong},
	"an endless header":             {over(ok+"A: ", strings.Repeat("b", 1000), 0), 0, tooLong},
	"an endless status line":        {over("HTTP/1.1 200 ", strings.Repeat("K", 1000), 0), 0, tooLong},
	"endless 1xx":                   {over("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0), 0, tooLong},
	"endless 100":                   {over("", "HTTP/1.1 100 Continue\r\n\r\n", 0), 0, tooLong},
	"endless trailers":              {over(ok+"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "A: bbbbbbbbbbbbbbbbb\r\n", 0), 200, ""},
	"an endless chunk extension":    {over(ok+"Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("a", 1000), 0), 200, ""},
	"chunks with long extensions":   {over(ok+"Transfer-Encoding: chunked\r\n\r\n", "1;"+strings.Repeat("a", 1000)+"\r\na\r\n", 0), 200, ""},
	"a chunk of nonsense":           {says(ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 200, ""},
	"a chunk of a huge size":        {says(ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\na"), 200, ""},
	"switches protocols":            {says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), 101, ""},
	"switches protocols, and talks": {over("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n", "a", drip), 101, ""},
	"101 without an upgrade":        {says("HTTP/1.1 101 Switching Protocols\r\n\r\n"), 101, ""},
	"HTTP/0.9":                      {func(c net.Conn) { says("hello")(c); _ = c.Close() }, 0, `malformed HTTP response "hello"`},
	"a banner":                      {says("SSH-2.0-OpenSSH_9.6\r\n"), 0, `malformed HTTP response "SSH-2.0-OpenSSH_9.6"`},
	"a banner before the request":   {func(c net.Conn) { _, _ = io.WriteString(c, "220 mail ESMTP\r\n") }, 0, "HTTP"},
	"endless NUL":                   {over("", strings.Repeat("\x00", 1000), 0), 0, tooLong},
	"an empty line":                 {says("\r\n\r\n"), 0, `malformed HTTP response ""`},
	"HTTP/2":                        {says("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x40\x00\x00\x00\r\n"), 0, "malformed HTTP response"},
	"HTTP/3.7":                      {says("HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, ""},
	"HTTP/x":                        {says("HTTP/x 200 OK\r\n\r\n"), 0, "malformed HTTP version"},
	"a status of two digits":        {says("HTTP/1.1 20 OK\r\n\r\n"), 0, "malformed HTTP status code"},
	"a status of four":              {says("HTTP/1.1 2000 OK\r\n\r\n"), 0, "malformed HTTP status code"},
	"a status in words":             {says("HTTP/1.1 two OK\r\n\r\n"), 0, "malformed HTTP status code"},
	"a negative status":             {says("HTTP/1.1 -20 OK\r\n\r\n"), 0, "malformed HTTP status code"},
	"the status 000":                {says("HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n"), 0, ""},
	"a header without a colon":      {says(ok + "hello\r\n\r\n"), 0, "malformed MIME header"},
	"a NUL in a header":             {says(ok + "a\x00b\r\n\r\n"), 0, "malformed MIME header"},
	"no UTF-8 in a long header":     {says(ok + strings.Repeat("\xff\x00é😀", 500) + "\r\n\r\n"), 0, "malformed MIME header"},
	"a header begins with a space":  {says(ok + " a: b\r\n\r\n"), 0, "malformed MIME header"},
	"two lengths":                   {says(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 0, "Content-Length"},
	"a length below zero":           {says(ok + "Content-Length: -1\r\n\r\n"), 0, "Content-Length"},
	"a huge length":                 {says(ok + "Content-Length: 99999999999999999999\r\n\r\n"), 0, "Content-Length"},
	"an unknown encoding":           {says(ok + "Transfer-Encoding: gzip\r\n\r\n"), 0, "transfer encoding"},
	"a control in a header":         {says(ok + "A: \x1b[31mb\r\n\r\n"), 0, "malformed MIME header"},
	"answers before it reads all": {func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")
	}, 413, ""},
	"says two things":               {says(ok + "Content-Length: 1\r\n\r\na" + ok + "Content-Length: 1\r\n\r\nb"), 200, ""},
	"asks to continue":              {says("HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n"), 200, ""},
	"closes at once":                {func(c net.Conn) { _ = c.Close() }, 0, "connection"},
	"resets at once":                {reset, 0, "connection"},
	"closes after the request":      {func(c net.Conn) { take(c); _ = c.Close() }, 0, early},
	"half-closes after the request": {func(c net.Conn) { take(c); _ = c.(*net.TCPConn).CloseWrite() }, 0, early},
	"half-closes at once":           {func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }, 0, "closed"},
	"resets after the request":      {func(c net.Conn) { take(c); reset(c) }, 0, "connection"},
	"resets within the headers":     {func(c net.Conn) { says(ok + "A: b")(c); reset(c) }, 0, "connection"},
	"closes within the headers":     {func(c net.Conn) { says(ok + "A: b")(c); _ = c.Close() }, 0, early},
}

// tame fails the test if a response contains forbidden content.
func tame(t *testing.T, a domain.Response) {
	t.Helper()
	for _, secret := range []string{"127.0.0.1", "::1", "->", "receiver.test:", "goroutine", "0x"} {
		if strings.Contains(a.Err, secret) {
			t.Errorf("%q reveals %q", a.Err, secret)
		}
	}
	if len(a.Err) > 4*maxErrorText || utf8.RuneCountInString(a.Err) > maxErrorText || !utf8.ValidString(a.Err) || strings.Contains(a.Err, "\x00") {
		t.Errorf("%d bytes, not to be stored: %q", len(a.Err), a.Err)
	}
	if line := a.Attempt(1); !a.OK() && (line.Error == nil || *line.Error == "") {
		t.Error("a failure without a reason")
	}
}

func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := listen(t, tc.serve), testSender(t)
			a := send(t, s, domain.Outgoing{URL: l.url("http"), Body: []byte(`{"id":"evt_1"}`)})
			if a.Status != tc.status || !strings.Contains(a.Err, tc.err) || (a.Err == "") != (tc.err == "") {
				t.Errorf("%d %q, want %d %q", a.Status, a.Err, tc.status, tc.err)
			}
			if a.Took > attempt+attempt/2 || len(a.Body) > domain.MaxResponseBuffered {
				t.Errorf("after %v, %d bytes", a.Took, len(a.Body))
			}
			tame(t, a)
			l.quiet(t, s, soon)
		})
	}
}

// MaxResponseRead bytes of an endless response are read and MaxResponseBuffered bytes are stored. The system's buffers can accept
// more bytes from the receiver.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	const buffers = 16 << 20
	for name, head := range map[string]string{
		"10 GB": "Content-Length: 10737418240\r\n\r\n", "until it closes": "Connection: close\r\n\r\n", "gzip": "Content-Encoding: gzip\r\nContent-Length: 10737418240\r\n\r\n", "chunks": "Transfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written atomic.Int64
			block := strings.Repeat("a", 64<<10)
			if name == "chunks" {
				block = "10000\r\n" + block + "\r\n"
			}
			l := listen(t, func(c net.Conn) {
				take(c)
				_, err := io.WriteString(c, ok+head)
				for err == nil {
					var n int
					n, err = io.WriteString(c, block)
					written.Add(int64(n))
				}
			})
			s := testSender(t)
			a := send(t, s, domain.Outgoing{URL: l.url("http")})
			if a.Status != 200 || !bytes.Equal(a.Body, bytes.Repeat([]byte("a"), domain.MaxResponseBuffered)) {
				t.Errorf("%d %q, %d bytes", a.Status, a.Err, len(a.Body))
			}
			l.quiet(t, s, soon)
			if n := written.Load(); n > buffers {
				t.Errorf("%d bytes could be written", n)
			}
		})
	}
}

// greet makes the TLS handshake with a certificate for example.com, which a sender accepts after trust, and then calls serve.
func greet(of *httptest.Server, change func(*tls.Config), serve func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		cfg := of.TLS.Clone()
		cfg.NextProtos = nil
		if change != nil {
			change(cfg)
		}
		secured := tls.Server(c, cfg)
		ctx, cancel := context.WithTimeout(context.Background(), attempt)
		defer cancel()
		if secured.HandshakeContext(ctx) == nil {
			serve(secured)
		}
	}
}

func TestHostileTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		serve func(net.Conn)
		trust bool
		err   string
	}{
		"garbage":                   {func(c net.Conn) { _, _ = io.WriteString(c, strings.Repeat("nonsense", 100)) }, true, "tls: first record does not look like a TLS handshake"},
		"NUL":                       {func(c net.Conn) { _, _ = c.Write(make([]byte, 1000)) }, true, "tls: "},
		"HTTP in the clear":         {says("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), true, "tls: first record does not look like a TLS handshake"},
		"HTTP in the clear at once": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, true, "tls: first record does not look like a TLS handshake"},
		"silence":                   {func(net.Conn) {}, true, inTime},
		"a huge record":             {func(c net.Conn) { _, _ = io.WriteString(c, "\x16\x03\x03\xff\xff"+strings.Repeat("a", 70_000)) }, true, "tls: "},
		"an alert":                  {func(c net.Conn) { _, _ = io.WriteString(c, "\x15\x03\x03\x00\x02\x02\x28") }, true, "tls: handshake failure"},
		"endless alerts":            {over("", strings.Repeat("\x15\x03\x03\x00\x02\x01\x5a", 100), 0), true, "tls: "},
		"closes":                    {func(c net.Conn) { _ = c.Close() }, true, "connection"},
		"resets":                    {reset, true, "connection"},
		"an unknown authority":      {greet(server, nil, take), false, "certificate signed by unknown authority"},
		"another's certificate":     {greet(server, nil, take), true, "certificate is valid for example.com"},
		"TLS 1.1":                   {greet(server, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, take), true, "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := listen(t, tc.serve), testSender(t)
			if tc.trust {
				trust(s, server)
			} else {
				s.transport.TLSClientConfig.ServerName = "example.com"
			}
			a := send(t, s, domain.Outgoing{URL: l.url("https"), Live: true, Body: []byte("{}")})
			if a.Status != 0 || !strings.Contains(a.Err, tc.err) || a.Err == "" || a.Took > attempt+attempt/2 {
				t.Errorf("%d %q after %v, want %q", a.Status, a.Err, a.Took, tc.err)
			}
			tame(t, a)
			l.quiet(t, s, soon)
		})
	}
}

// The limits for slow and hostile receivers also apply with TLS.
func TestHostileWithinTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, name := range []string{"never answers", "drips headers", "drips the body", "endless headers", "switches protocols", "closes after the request", "says two things"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc, s := hostile[name], testSender(t)
			trust(s, server)
			s.transport.TLSClientConfig.ServerName = "example.com"
			l := listen(t, greet(server, nil, func(c net.Conn) {
				tc.serve(c)
				if strings.HasPrefix(name, "closes") {
					return
				}
				_, _ = io.Copy(io.Discard, c)
			}))
			a := send(t, s, domain.Outgoing{URL: l.url("https"), Live: true, Body: []byte("{}")})
			if a.Status != tc.status || !strings.Contains(a.Err, tc.err) || a.Took > attempt+attempt/2 {
				t.Errorf("%d %q after %v, want %d %q", a.Status, a.Err, a.Took, tc.status, tc.err)
			}
			tame(t, a)
			l.quiet(t, s, soon)
		})
	}
}
