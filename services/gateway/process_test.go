package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/libs/service"
)

// process runs the gateway as main does, with the server's own limits, and returns its address. Its tests change the environment,
// so they cannot run in parallel. They are in this file.
func (w *world) process(t *testing.T, env map[string]string) (address string) {
	t.Helper()
	address, stop := w.run(t, env)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// run is process for tests that stop the gateway themselves.
func (w *world) run(t *testing.T, env map[string]string) (address string, stop func() error) {
	t.Helper()
	t.Setenv("HTTP_ADDR", "127.0.0.1:0")
	for name, value := range env {
		t.Setenv(name, value)
	}
	started := make(chan *service.Runtime, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- service.Run(ctx, service.App{Name: "gateway", Serve: func(_ context.Context, rt *service.Runtime) error {
			if w.limits != nil {
				w.limits(&rt.Common.HTTP)
			}
			started <- rt
			return wire(rt, w.cfg)
		}}, []string{"serve"}, io.Discard)
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	select {
	case rt := <-started:
		eventually(t, "the gateway listens", func() bool { return rt.Addr("127.0.0.1:0") != nil })
		return rt.Addr("127.0.0.1:0").String(), stop
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return "", nil
	}
}

func shortTimeouts(l *service.HTTPLimits) {
	l.WriteTimeout, l.ReadTimeout = 200*time.Millisecond, 200*time.Millisecond
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(maxWait))
	return conn
}

// readResponse reads a response from conn, and reports whether the connection ends after it.
func readResponse(t *testing.T, conn net.Conn) (res *http.Response, body string, closed bool) {
	t.Helper()
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil {
		_, err = in.ReadByte()
	}
	// A server that closes before it has read all our bytes resets the connection.
	return res, string(b), errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// A body that arrives byte by byte holds its connection until the time limit of a request, and a header until its own, even
// if bytes keep arriving.
func TestSlowClientsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.limits = func(l *service.HTTPLimits) {
		l.ReadTimeout, l.ReadHeaderTimeout = 600*time.Millisecond, 300*time.Millisecond
	}
	address := w.process(t, nil)
	start := time.Now()
	trickle := func(conn net.Conn) { // for longer than maxWait
		for range 4000 {
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	within := func(what string, from, to time.Duration) { // to is below the standard limit
		t.Helper()
		if took := time.Since(start); took < from || took > to {
			t.Errorf("%s ended after %s", what, took)
		}
	}
	upload := dial(t, address)
	_, _ = fmt.Fprintf(upload, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
		customers, w.identity.newKey())
	go trickle(upload)
	header := dial(t, address)
	_, _ = io.WriteString(header, "GET "+oneCu+" HTTP/1.1\r\nHost: x\r\nX-Long: ")
	go trickle(header)

	_, _ = io.Copy(io.Discard, header)
	within("the header", 250*time.Millisecond, 4500*time.Millisecond)
	res, body, closed := readResponse(t, upload)
	within("the body", 500*time.Millisecond, 25*time.Second)
	if res.StatusCode != 400 || !strings.Contains(body, `"malformed_json"`) || !closed {
		t.Errorf("%d %s, closed %v", res.StatusCode, body, closed)
	}
	if handled, _ := w.service.calls(); handled != 0 {
		t.Error("half a body reached the service")
	}
}

// Over the limit of headers the server itself responds, before the request can have an id.
func TestEnormousHeader(t *testing.T) {
	w := newWorld(t)
	address := w.process(t, nil)
	key := w.identity.newKey()
	for _, c := range []struct {
		name, target string
		header       int
		status       int
	}{
		{"a long one that fits", oneCu, 30 << 10, 200},
		{"header", oneCu, 64 << 10, 431},
		{"address", oneCu + "?x=" + strings.Repeat("x", 64<<10), 0, 431},
	} {
		conn := dial(t, address)
		go func() { // the server stops reading before the end
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Long: %s\r\nConnection: close\r\n\r\n",
				c.target, key, strings.Repeat("x", c.header))
		}()
		if res, body, closed := readResponse(t, conn); res.StatusCode != c.status || !closed {
			t.Errorf("%s: %d %.80s, closed %v", c.name, res.StatusCode, body, closed)
		}
	}
}

// At most MaxConnections of ten thousand idle connections are open at the same time. The others wait until open ones have been
// idle for IdleTimeout, so that a new client is served in bounded time. The waiting connections fit into the system's own
// queue.
func TestIdleConnectionsAreBounded(t *testing.T) {
	const limit, clients, idle = 6500, 10_000, 4 * time.Second
	w := newWorld(t)
	w.limits = func(l *service.HTTPLimits) { l.MaxConnections, l.IdleTimeout, l.ReadHeaderTimeout = limit, idle, idle }
	address := w.process(t, nil)
	var served atomic.Int64
	start := time.Now()
	for range clients { // each makes one request and then holds its connection
		conn := dial(t, address)
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				served.Add(1)
			}
		}()
	}
	eventually(t, "the first ones are served", func() bool { return served.Load() >= limit })
	if took := time.Since(start); took < idle && served.Load() != limit {
		t.Errorf("%d connections were served within %s, the bound is %d", served.Load(), took, limit)
	}
	res, err := (&http.Client{Timeout: maxWait}).Get("http://" + address + oneCu)
	if err != nil {
		t.Fatalf("a new client: %v", err)
	}
	_ = res.Body.Close()
	if took := time.Since(start); res.StatusCode != 401 || took < idle {
		t.Errorf("a new client: %d after %s", res.StatusCode, took)
	}
}

// Without this, Go's own server would respond to the request.
func TestOptionsOfTheWholeServer(t *testing.T) {
	w := newWorld(t)
	conn := dial(t, w.process(t, nil))
	_, _ = io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, body, _ := readResponse(t, conn)
	if id := res.Header.Get("X-Request-Id"); res.StatusCode != 404 || !strings.HasPrefix(id, "req_") || !strings.Contains(body, id) {
		t.Errorf("%d %q %s", res.StatusCode, id, body)
	}
}
